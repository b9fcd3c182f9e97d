"""Which tokens a row attends to: a test for each sentence of the specification, on compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import LAYOUTS
from compiled import arguments_of, check, poisoned, run
from matrix.cases import find
from plain import Arguments, bits, cache_index, plain_tokens, rows_of

import qsmla
from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.packing import ROW_LAYOUTS

Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
by_layout = pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
by_mode = pytest.mark.parametrize("mode", [0, 3])


def kernel(layouts: tuple[str, str], mode: int, block: int = 1) -> KernelSpec:
    return find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=mode, sparse_block_size=block)


def own_tokens(arguments: Arguments) -> Arguments:
    """The call with the keys of request 1 such that column i of its output is the weight of its token i.

    All other cache rows are NaN, and the other requests select nothing.
    """
    kv_len = np.diff(arguments[KV], prepend=0)[1] if arguments["layout_kv"] == "TND" else arguments[KV][1]
    nope = np.zeros((kv_len, 512), np.float32)
    nope[np.arange(kv_len), np.arange(kv_len)] = 1
    rope = np.zeros((kv_len, 64), arguments["query"].dtype)
    packed = qsmla.pack_kv(nope, rope, arguments["kv_dtype"], arguments["byte_order"]).view(np.uint8)
    rows = arguments["key"].view(np.uint8)
    rows[...] = 0xFF
    for token in range(kv_len):
        rows[cache_index(arguments, 1, token)] = packed[token]
    return arguments | {"query": np.zeros_like(arguments["query"])}


def selected_tokens(
    layouts: tuple[str, str],
    ids: list[int],
    *,
    kv_len: int,
    q_len: int = 1,
    s: int = 0,
    block: int = 1,
    mode: int = 0,
) -> list[int]:
    """The tokens that row s of the middle one of three requests attends to, read off its output."""
    spec = kernel(layouts, mode, block)
    arguments = arguments_of(spec, query_counts=(1, q_len, 2), kv_counts=(7, kv_len, 5), selected=len(ids))
    arguments[IDS][...] = -1
    for row, b, place in rows_of(arguments):
        if (b, place) == (1, s):
            arguments[IDS][row] = ids
            chosen = row
    output, lse = run(poisoned(own_tokens(arguments)))
    weights = output[chosen].astype(np.float64)
    np.testing.assert_array_equal(weights, np.broadcast_to(weights[0], weights.shape))
    smallest = weights[0][weights[0] > 0].min(initial=np.inf)
    tokens = [token for token in range(kv_len) for _ in range(round(weights[0, token] / smallest))]
    expected_lse = np.log(len(tokens)) if tokens else -np.inf
    np.testing.assert_allclose(lse[chosen], expected_lse, rtol=1e-6, atol=1e-6)
    return tokens


# The limit.


@by_layout
@pytest.mark.parametrize(("q_len", "s"), [(1, 0), (3, 0), (9, 8)])
def test_limit_of_mode_0_is_the_length(layouts: tuple[str, str], q_len: int, s: int) -> None:
    ids = list(range(9))
    assert selected_tokens(layouts, ids, kv_len=6, q_len=q_len, s=s) == [0, 1, 2, 3, 4, 5]


@by_layout
@pytest.mark.parametrize("s", range(4))
def test_limit_of_mode_3_is_right_down_causal(layouts: tuple[str, str], s: int) -> None:
    """limit = kv_len - q_len + s + 1: the last query token sees everything."""
    ids = list(range(9))
    assert selected_tokens(layouts, ids, kv_len=6, q_len=4, s=s, mode=3) == list(range(3 + s))


@by_layout
@pytest.mark.parametrize("s", range(5))
def test_more_query_tokens_than_cached_ones_in_mode_3(layouts: tuple[str, str], s: int) -> None:
    expected = list(range(max(0, s - 2)))
    assert selected_tokens(layouts, [0, 1, 2], kv_len=2, q_len=5, s=s, mode=3) == expected


# Which ids are skipped.


@by_layout
@by_mode
@pytest.mark.parametrize(
    "ids",
    [
        *([bad, 2] for bad in (-1, -2, INT_MIN, INT_MAX, 6, 7, 0x7FC00000, 2**30)),
        *([2, bad] for bad in (-1, INT_MIN, INT_MAX, 6, 0x7FC00000)),
        [INT_MAX, -1, 2, INT_MIN, 6],
    ],
    ids=str,
)
def test_an_id_below_0_or_at_the_limit_is_skipped(
    layouts: tuple[str, str], mode: int, ids: list[int]
) -> None:
    assert selected_tokens(layouts, ids, kv_len=6, mode=mode) == [2]


@by_layout
@by_mode
@pytest.mark.parametrize("block", [2, 4, 16, 128])
@pytest.mark.parametrize("bad", [-1, INT_MIN, INT_MAX, 0x7FC00000, 2**24, 2**30, 2**31 - 128])
def test_no_block_number_overflows(layouts: tuple[str, str], mode: int, block: int, bad: int) -> None:
    """2**30 times 4 and 2**24 times 128 wrap to 0 in 32 bits."""
    expected = list(range(block, 2 * block))
    assert selected_tokens(layouts, [bad, 1, bad], kv_len=2 * block, block=block, mode=mode) == expected


@by_layout
@pytest.mark.parametrize("ids", [[3, 1, -1, -1], [-1, 3, -1, 1], [3, 99, 1, -5], [-1, -1, 3, 1]], ids=str)
def test_an_invalid_id_anywhere_is_skipped(layouts: tuple[str, str], ids: list[int]) -> None:
    assert selected_tokens(layouts, ids, kv_len=6) == [1, 3]


@by_layout
def test_an_id_is_compared_by_its_token_number_not_by_its_place(layouts: tuple[str, str]) -> None:
    # Six places and a limit of 3: the last places hold the tokens that the row sees.
    ids = [5, 4, 3, 2, 1, 0]
    assert selected_tokens(layouts, ids, kv_len=6, q_len=4, s=0, mode=3) == [0, 1, 2]


# Blocks.


@by_layout
@by_mode
@pytest.mark.parametrize(
    ("ids", "kv_len", "tokens"),
    [
        ([1], 12, [4, 5, 6, 7]),
        ([2, 0], 12, [0, 1, 2, 3, 8, 9, 10, 11]),
        ([2], 9, [8]),
        ([2], 8, []),
        ([2, 1], 11, [4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_a_block_is_its_tokens_up_to_the_length(
    layouts: tuple[str, str], mode: int, ids: list[int], kv_len: int, tokens: list[int]
) -> None:
    assert selected_tokens(layouts, ids, kv_len=kv_len, block=4, mode=mode) == tokens


@by_layout
@pytest.mark.parametrize(
    ("s", "tokens"), [(0, [4]), (1, [4, 5]), (2, [4, 5, 6]), (3, [4, 5, 6, 7]), (4, [4, 5, 6, 7])]
)
def test_the_causal_limit_cuts_a_selected_block(layouts: tuple[str, str], s: int, tokens: list[int]) -> None:
    assert selected_tokens(layouts, [1], kv_len=9, q_len=5, s=s, block=4, mode=3) == tokens


@by_layout
@by_mode
@pytest.mark.parametrize("kv_len", [1, 15, 16, 17, 21, 33])
def test_blocks_of_16_cut_by_the_length(layouts: tuple[str, str], mode: int, kv_len: int) -> None:
    tokens = selected_tokens(layouts, [0, 1, 2], kv_len=kv_len, block=16, mode=mode)
    assert tokens == list(range(kv_len))


# Duplicates and order.


@by_layout
def test_duplicates_count_each_time(layouts: tuple[str, str]) -> None:
    assert selected_tokens(layouts, [2, 1, 2, 2], kv_len=6) == [1, 2, 2, 2]
    assert selected_tokens(layouts, [1, 1, 0], kv_len=3, block=2) == [0, 1, 2, 2]


@by_layout
@by_mode
def test_the_order_changes_rounding_only(layouts: tuple[str, str], mode: int) -> None:
    arguments = arguments_of(kernel(layouts, mode), kv_counts=(300, 290), selected=300)
    mixed = np.random.default_rng(3).permuted(arguments[IDS], axis=-1)
    assert (mixed != arguments[IDS]).any()
    a, b = (check(arguments | {IDS: ids}) for ids in (arguments[IDS], mixed))
    np.testing.assert_allclose(a[1], b[1], rtol=1e-5)


# Nothing outside the row's own sequence, nothing that is not selected.


@by_layout
@by_mode
@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_that_is_not_attended_is_read(
    layouts: tuple[str, str], mode: int, block: int, seed: int
) -> None:
    """Other requests' rows, the tails of pages, spare pages and unselected tokens: NaN or infinite scales."""
    arguments = arguments_of(
        kernel(layouts, mode, block),
        query_counts=(3, 1, 2),
        kv_counts=(290, 19, 70),
        selected=30 if block == 1 else 4,
        seed=seed,
    )
    # In every row an id behind the second request's length, and behind the causal limit of some rows.
    arguments[IDS][..., 1] = 289 // block
    bad = poisoned(arguments)
    assert np.count_nonzero(bad["key"].view(np.uint8) != arguments["key"].view(np.uint8)) > 656
    (output, lse), (bad_output, bad_lse) = check(arguments), check(bad)
    np.testing.assert_array_equal(bits(bad_output), bits(output))
    np.testing.assert_array_equal(bad_lse, lse)
    assert np.isfinite(output.astype(np.float32)).all()


@by_layout
@pytest.mark.parametrize("part", ["codes", "rope", "scales"])
@pytest.mark.parametrize("fill", [0xFF, 0x7F])
def test_no_part_of_an_unselected_row_is_read(layouts: tuple[str, str], part: str, fill: int) -> None:
    """Of one request, every second token is selected; one part of the other rows is NaN at a time."""
    for kv_dtype in CODE_FORMATS:
        spec = find(layout_query=layouts[0], layout_kv=layouts[1], kv_dtype=kv_dtype)
        block = spec.sparse_block_size
        arguments = arguments_of(spec, query_counts=(2, 2), kv_counts=(8 * block, 8 * block), selected=3)
        arguments[IDS][...] = [4, 0, 2]
        output, lse = check(arguments)
        rows = arguments["key"].view(np.uint8)
        for b in range(2):
            for token in range(8 * block):
                if token // block % 2:
                    row = rows[cache_index(arguments, b, token)][0]
                    row[getattr(ROW_LAYOUTS[spec.byte_order], part)] = fill
        bad_output, bad_lse = run(arguments)
        np.testing.assert_array_equal(bits(bad_output), bits(output))
        np.testing.assert_array_equal(bad_lse, lse)


@by_layout
def test_rows_behind_the_length_are_not_read(layouts: tuple[str, str]) -> None:
    """kv_len % 16 != 0 with blocks of 16: the last block of a request runs into NaN."""
    arguments = arguments_of(kernel(layouts, 0, 16), kv_counts=(21, 35), selected=3)
    arguments[IDS][...] = [2, 1, 0]
    output, _ = check(poisoned(arguments))
    assert np.isfinite(output.astype(np.float32)).all()
    assert [len(plain_tokens(arguments, *row)) for row in rows_of(arguments)] == [21] * 3 + [35] * 3


@by_mode
@pytest.mark.parametrize("layouts", LAYOUTS[2:], ids="-".join)
@pytest.mark.parametrize("junk", [-1, 8, INT_MIN, 2_147_480_000])
def test_table_entries_behind_the_last_used_page_are_not_read(
    layouts: tuple[str, str], mode: int, junk: int
) -> None:
    arguments = arguments_of(kernel(layouts, mode), kv_counts=(40, 16), selected=40)
    arguments[IDS][...] = np.arange(40)
    expected = check(arguments)
    table = np.concatenate([arguments[TABLE], np.full((2, 3), junk, np.int32)], axis=1)
    table[1, 1:] = junk
    result = check(arguments | {TABLE: table})
    np.testing.assert_array_equal(bits(result[0]), bits(expected[0]))
    np.testing.assert_array_equal(result[1], expected[1])


@pytest.mark.parametrize("layouts", LAYOUTS[2:], ids="-".join)
def test_requests_may_share_pages(layouts: tuple[str, str]) -> None:
    """A common prefix of two pages, then a page each; the third request is the first one, page by page."""
    arguments = arguments_of(kernel(layouts, 0), query_counts=(2, 2, 2), kv_counts=(48, 48, 48), selected=48)
    table = arguments[TABLE]
    table[1, :2] = table[0, :2]
    table[2] = table[0]
    arguments[IDS][...] = np.arange(48)
    for name in ("query", IDS):
        by_request = arguments[name].reshape(3, 2, *arguments[name].shape[-2:])
        by_request[2] = by_request[0]
    output, lse = check(arguments)
    output, lse = output.reshape(3, -1), lse.reshape(3, -1)
    np.testing.assert_array_equal(bits(output[2]), bits(output[0]))
    np.testing.assert_array_equal(lse[2], lse[0])
    assert (bits(output[1]) != bits(output[0])).any()


# Nothing to attend to.


def assert_zeros(output: Any, lse: Any) -> None:
    assert not bits(np.ascontiguousarray(output)).any()
    assert np.isneginf(lse).all()


@by_layout
@by_mode
@pytest.mark.parametrize(
    "changes",
    [{"ids": -1}, {"ids": 40}, {"ids": INT_MAX}, {"ids": INT_MIN}, {"kv_counts": (0, 0)}],
    ids=str,
)
def test_a_row_with_nothing_to_attend_to_is_exact_zeros(
    layouts: tuple[str, str], mode: int, changes: dict[str, Any]
) -> None:
    arguments = arguments_of(kernel(layouts, mode), kv_counts=changes.get("kv_counts", (40, 40)))
    arguments[IDS][...] = changes.get("ids", 0)
    out = np.full((*arguments["query"].shape[:-1], 512), 7.0, arguments["query"].dtype)
    assert_zeros(*run(poisoned(arguments), out=out))


@by_layout
def test_an_empty_row_between_others(layouts: tuple[str, str]) -> None:
    """One row of six has invalid ids only; its neighbours in the same chunk are as they would be."""
    arguments = arguments_of(kernel(layouts, 0), kv_counts=(40, 40), selected=40)
    empty = rows_of(arguments)[2][0]
    arguments[IDS][empty] = np.resize([-1, 40, INT_MAX, INT_MIN], 40)
    output, lse = check(poisoned(arguments))
    assert_zeros(output[empty], lse[empty])
    assert np.isfinite(lse).sum() == 5 * lse.shape[-1]


@by_layout
def test_rows_in_front_of_the_causal_limit_are_exact_zeros(layouts: tuple[str, str]) -> None:
    arguments = arguments_of(kernel(layouts, 3), query_counts=(5, 5), kv_counts=(2, 40))
    arguments[IDS][...] = 0
    output, lse = check(poisoned(arguments))
    for row, b, s in rows_of(arguments):
        if b == 0 and s < 3:
            assert_zeros(output[row], lse[row])
        else:
            assert np.isfinite(lse[row]).all()
            assert output[row].astype(np.float32).any(axis=-1).all()


@by_layout
@by_mode
@pytest.mark.parametrize("query_lengths", [[0, 2, 0], [2, 0, 0], [0, 0, 0], [4, 0, 3]], ids=str)
def test_rows_that_belong_to_no_request_are_exact_zeros(
    layouts: tuple[str, str], mode: int, query_lengths: list[int]
) -> None:
    """BSND: at or behind q_len; TND: behind the last prefix sum. Some requests have no rows at all."""
    arguments = arguments_of(kernel(layouts, mode), query_counts=(4, 4, 4), kv_counts=(40, 40, 40))
    arguments[IDS][...] = 0
    lengths = np.cumsum(query_lengths) if layouts[0] == "TND" else query_lengths
    arguments[Q] = np.array(lengths, np.int32)
    out = np.full((*arguments["query"].shape[:-1], 512), 7.0, arguments["query"].dtype)
    output, lse = check(poisoned(arguments), out=out)
    own = np.zeros(arguments["query"].shape[:-2], bool)
    for row, _, _ in rows_of(arguments):
        own[row] = True
    assert own.sum() == sum(query_lengths)
    assert_zeros(output[~own], lse[~own])
    assert np.isfinite(lse[own]).all()
    assert output[own].astype(np.float32).any(axis=-1).all()


# Lengths that are easily got wrong.


@by_layout
@by_mode
@pytest.mark.parametrize(
    ("query_counts", "kv_counts"),
    [
        ((0, 5, 0), (0, 5, 0)),
        ((1, 1), (0, 7)),
        ((2, 2), (7, 0)),
        ((1, 0, 3), (40, 9, 1)),
        ((6,), (2,)),
    ],
    ids=str,
)
def test_lengths_of_0_and_queries_longer_than_their_keys(
    layouts: tuple[str, str], mode: int, query_counts: tuple[int, ...], kv_counts: tuple[int, ...]
) -> None:
    arguments = arguments_of(
        kernel(layouts, mode), query_counts=query_counts, kv_counts=kv_counts, selected=8
    )
    arguments[IDS][...] = np.arange(8)
    check(poisoned(arguments))


@by_layout
@pytest.mark.parametrize("rows", [0, 2])
def test_no_requests_or_no_rows(layouts: tuple[str, str], rows: int) -> None:
    arguments = arguments_of(kernel(layouts, 3))
    leading = (0,) if layouts[0] == "TND" else (rows, 0)
    heads = arguments["query"].shape[-2]
    batch = 2 if layouts[0] == "TND" else rows
    arguments |= {
        "query": arguments["query"].reshape(-1)[:0].reshape(*leading, heads, 576),
        IDS: np.zeros((*leading, 1, 5), np.int32),
        Q: arguments[Q][:batch] * 0,
        KV: arguments[KV][:batch],
    }
    if TABLE in arguments:
        arguments[TABLE] = arguments[TABLE][:batch]
    if layouts[1] == "BSND":
        arguments["key"] = arguments["value"] = arguments["key"][:batch]
    output, lse = run(arguments)
    assert (output.shape, lse.shape) == ((*leading, heads, 512), (*leading, heads))


@by_mode
@pytest.mark.parametrize("layouts", [LAYOUTS[0], LAYOUTS[3]], ids="-".join)
@pytest.mark.parametrize("selected", [1, 3, 63, 65, 100, 255, 256, 257, 2049])
def test_numbers_of_ids(layouts: tuple[str, str], mode: int, selected: int) -> None:
    """More than there are keys, too: the longest sequence has 70."""
    arguments = arguments_of(
        kernel(layouts, mode), query_counts=(2, 3), kv_counts=(70, 30), selected=selected
    )
    check(poisoned(arguments))
