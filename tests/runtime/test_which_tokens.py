"""Which tokens a row attends to: a test for each sentence of the specification, on the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import BFLOAT16, LAYOUTS, legal_arguments
from plain import assert_same_bits, bits, poison, rows_of, run

import qsmla
from qsmla.ir.codes import CODE_FORMATS
from qsmla.runtime.checks import check_call
from qsmla.runtime.reference import attend, kv_quant_sparse_flash_attention

PLAIN, RAGGED, PAGED, RAGGED_PAGED = LAYOUTS
Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
by_layout = pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)


def selected_tokens(
    ids: list[int], *, kv_len: int, q_len: int = 1, s: int = 0, block: int = 1, mode: int = 0
) -> list[int]:
    """The tokens a row attends to, read off its output: value i is 1 in column i."""
    nope = np.zeros((kv_len, 1, 512), np.float32)
    nope[np.arange(kv_len), 0, np.arange(kv_len)] = 1
    key = qsmla.pack_kv(nope, np.zeros((kv_len, 1, 64), np.float16), "int8")
    output = kv_quant_sparse_flash_attention(
        np.zeros((q_len, 1, 576), np.float16),
        key,
        key,
        np.array([[ids]] * q_len, np.int32),
        1.0,
        layout_query="TND",
        layout_kv="TND",
        actual_seq_lengths_query=[q_len],
        actual_seq_lengths_kv=[kv_len],
        sparse_block_size=block,
        sparse_mode=mode,
    )
    weights = output[s, 0].astype(np.float64)
    smallest = weights[weights > 0].min(initial=np.inf)
    return [token for token in range(kv_len) for _ in range(round(weights[token] / smallest))]


def test_limit_of_mode_0_is_the_length() -> None:
    assert selected_tokens(list(range(9)), kv_len=6) == [0, 1, 2, 3, 4, 5]
    assert selected_tokens(list(range(9)), kv_len=6, q_len=3, s=0) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("s", range(4))
def test_limit_of_mode_3_is_right_down_causal(s: int) -> None:
    """limit = kv_len - q_len + s + 1: the last query token sees everything."""
    assert selected_tokens(list(range(9)), kv_len=6, q_len=4, s=s, mode=3) == list(range(3 + s))


@pytest.mark.parametrize("s", range(5))
def test_more_query_tokens_than_cached_ones_in_mode_3(s: int) -> None:
    assert selected_tokens([0, 1, 2], kv_len=2, q_len=5, s=s, mode=3) == list(range(max(0, s - 2)))


@pytest.mark.parametrize(
    "ids", [[-1, 2], [2, -2], [-(2**31), 2], [2**31 - 1, 2], [6, 2], [0x7FC00000, 2], [2, 7]]
)
def test_an_id_below_0_or_at_the_limit_is_skipped(ids: list[int]) -> None:
    assert selected_tokens(ids, kv_len=6) == [2]


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
def test_a_block_is_its_tokens_up_to_the_length(ids: list[int], kv_len: int, tokens: list[int]) -> None:
    assert selected_tokens(ids, kv_len=kv_len, block=4) == tokens


@pytest.mark.parametrize(
    ("s", "tokens"), [(0, [4]), (1, [4, 5]), (2, [4, 5, 6]), (3, [4, 5, 6, 7]), (4, [4, 5, 6, 7])]
)
def test_the_causal_limit_cuts_a_selected_block(s: int, tokens: list[int]) -> None:
    assert selected_tokens([1], kv_len=9, q_len=5, s=s, block=4, mode=3) == tokens


def test_a_block_of_16_cut_by_the_length() -> None:
    assert selected_tokens([0, 1, 2], kv_len=21, block=16) == list(range(21))


@pytest.mark.parametrize("ids", [[3, 1, -1, -1], [-1, 3, -1, 1], [3, 99, 1, -5], [-1, -1, 3, 1]])
def test_an_invalid_id_anywhere_is_skipped(ids: list[int]) -> None:
    assert selected_tokens(ids, kv_len=6) == [1, 3]


def test_an_id_is_compared_by_its_token_number_not_by_its_place() -> None:
    # Six places and a limit of 3: the last places hold the tokens that the row sees.
    assert selected_tokens([5, 4, 3, 2, 1, 0], kv_len=6, q_len=4, s=0, mode=3) == [0, 1, 2]


def test_duplicates_count_each_time() -> None:
    assert selected_tokens([2, 1, 2, 2], kv_len=6) == [1, 2, 2, 2]
    assert selected_tokens([1, 1, 0], kv_len=3, block=2) == [0, 1, 2, 2]


@by_layout
def test_the_order_changes_rounding_only(layouts: tuple[str, str]) -> None:
    arguments = legal_arguments(*layouts, selected=40, sparse_mode=3)
    mixed = np.random.default_rng(3).permuted(arguments[IDS], axis=-1)
    a, b = (attend(check_call(**arguments | {IDS: ids})) for ids in (arguments[IDS], mixed))
    np.testing.assert_allclose(a.output, b.output, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(a.lse, b.lse, rtol=1e-13)


@by_layout
@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
@pytest.mark.parametrize("mode", [0, 3])
def test_nothing_that_is_not_attended_is_read(layouts: tuple[str, str], kv_dtype: str, mode: int) -> None:
    """Other requests' rows, the rest of a page, spare pages and unselected tokens are NaN."""
    arguments = legal_arguments(*layouts, kv_counts=(40, 19), kv_dtype=kv_dtype, sparse_mode=mode)
    arguments[IDS][..., 1] = (
        39  # behind the second request's length, and behind the causal limit of some rows
    )
    assert_same_bits(arguments, poison(arguments))


def test_rows_of_a_page_behind_the_length_are_not_read() -> None:
    arguments = legal_arguments(*PAGED, kv_counts=(21, 21), sparse_block_size=16, selected=2)
    arguments[IDS][...] = [0, 1]
    assert_same_bits(arguments, poison(arguments))


@pytest.mark.parametrize("junk", [-1, 8, 2_147_480_000])
def test_table_entries_behind_the_last_used_page_are_not_read(junk: int) -> None:
    arguments = legal_arguments(*RAGGED_PAGED, kv_counts=(40, 16), selected=40)
    arguments[IDS][...] = np.arange(40)
    table = np.concatenate([arguments[TABLE], np.full((2, 3), junk, np.int32)], axis=1)
    table[1, 1:] = junk
    assert_same_bits(arguments, arguments | {TABLE: table})


def test_requests_may_share_pages() -> None:
    arguments = legal_arguments(*PAGED)
    arguments[TABLE][1] = arguments[TABLE][0]
    for name in ("query", IDS):
        arguments[name][1] = arguments[name][0]
    output, _ = run(arguments)
    np.testing.assert_array_equal(bits(output[0]), bits(output[1]))


@by_layout
@pytest.mark.parametrize(
    "changes",
    [{"ids": -1}, {"ids": 40}, {"ids": 2**31 - 1}, {"kv_counts": (0, 0)}],
    ids=str,
)
def test_a_row_with_nothing_to_attend_to_is_exact_zeros(
    layouts: tuple[str, str], changes: dict[str, Any]
) -> None:
    arguments = legal_arguments(*layouts, kv_counts=changes.get("kv_counts", (40, 40)))
    arguments[IDS][...] = changes.get("ids", 0)
    output, lse = run(poison(arguments))
    assert not bits(output).any()
    assert np.isneginf(lse).all()


@by_layout
def test_rows_in_front_of_the_causal_limit_are_exact_zeros(layouts: tuple[str, str]) -> None:
    arguments = legal_arguments(*layouts, query_counts=(5, 5), kv_counts=(2, 40), sparse_mode=3)
    arguments[IDS][...] = 0
    output, lse = run(arguments)
    first = output.reshape(-1, 2, 512)[:3]
    assert not bits(first).any()
    assert np.isneginf(lse.reshape(-1, 2)[:3]).all()
    assert np.isfinite(lse.reshape(-1, 2)[3:]).all()
    assert output.reshape(-1, 2, 512)[3:].astype(np.float32).any(axis=-1).all()


@by_layout
@pytest.mark.parametrize("mode", [0, 3])
def test_rows_that_belong_to_no_request_are_exact_zeros(layouts: tuple[str, str], mode: int) -> None:
    """BSND: at or behind q_len; TND: behind the last prefix sum. One request has no rows at all."""
    arguments = legal_arguments(*layouts, query_counts=(4, 4, 4), kv_counts=(40, 40, 40), sparse_mode=mode)
    arguments[IDS][...] = 0
    arguments[Q] = np.array([0, 2, 2] if layouts[0] == "TND" else [0, 2, 0], np.int32)
    arguments["out"] = np.full((*arguments["query"].shape[:-1], 512), 7.0, BFLOAT16)
    output, lse = run(arguments)
    own = np.zeros(arguments["query"].shape[:-2], bool)
    for row, _, _ in rows_of(arguments):
        own[row] = True
    assert own.sum() == 2
    assert not bits(output[~own]).any()
    assert np.isneginf(lse[~own]).all()
    assert np.isfinite(lse[own]).all()
    assert output[own].astype(np.float32).any(axis=-1).all()
