"""Row geometry against the specification's pseudo-code, taken line by line."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from calls import LAYOUTS
from hypothesis import given, settings
from hypothesis import strategies as st

from qsmla.runtime import selection
from qsmla.runtime.checks import AttentionCall, check_call
from qsmla.runtime.selection import compact, row_geometry, valid_counts

BLOCK_SIZES = (1, 2, 16, 128)
PAGE_SIZE = 128
AWKWARD_IDS = (-1, -(2**31), 2**31 - 1, 0x7FC00000, 2**25, 2**24 - 1)


@dataclass
class Case:
    """A call and, for each of its rows, the request and the place in it (None where it has none)."""

    call: AttentionCall
    owners: list[tuple[int, int] | None]
    query_counts: list[int]
    kv_counts: list[int]


def spaced(counts: list[int], spare: int) -> tuple[list[int], int]:
    """Inclusive prefix sums and a total that leaves some spare rows behind them."""
    sums = [sum(counts[: i + 1]) for i in range(len(counts))]
    return sums, (sums[-1] if sums else 0) + spare


def make_case(
    layouts: tuple[str, str],
    query_counts: list[int],
    kv_counts: list[int],
    ids: Any,
    *,
    sparse_block_size: int,
    sparse_mode: int,
    spare: int = 0,
) -> Case:
    """`ids(rows)` gives the indices [rows, K]; spare rows lie behind the last (BSND: of each) request."""
    batch = len(query_counts)
    arguments: dict[str, Any] = {"layout_query": layouts[0], "layout_kv": layouts[1]}
    owners: list[tuple[int, int] | None] = []
    if layouts[0] == "TND":
        query_lengths, rows = spaced(query_counts, spare)
        leading: tuple[int, ...] = (rows,)
        owners = [(b, s) for b in range(batch) for s in range(query_counts[b])] + [None] * spare
    else:
        tokens = max(query_counts, default=0) + spare
        query_lengths, leading = query_counts, (batch, tokens)
        owners = [(b, s) if s < query_counts[b] else None for b in range(batch) for s in range(tokens)]
    kv_lengths = kv_counts
    if layouts[1] == "TND":
        kv_lengths, total = spaced(kv_counts, spare)
        cache: tuple[int, ...] = (total,)
    elif layouts[1] == "BSND":
        cache = (batch, max(kv_counts, default=0) + spare)
    else:
        pages = -(-max(kv_counts, default=0) // PAGE_SIZE)
        cache = (max(1, pages), PAGE_SIZE)
        arguments["block_table"] = np.tile(np.arange(pages, dtype=np.int32), (batch, 1))
    indices = ids(int(np.prod(leading)))
    call = check_call(
        np.zeros((*leading, 1, 576), np.float16),
        np.broadcast_to(np.zeros((), np.int8), (*cache, 1, 656)),
        None,
        indices.reshape(*leading, 1, indices.shape[-1]),
        1.0,
        actual_seq_lengths_query=query_lengths,
        actual_seq_lengths_kv=kv_lengths,
        sparse_block_size=sparse_block_size,
        sparse_mode=sparse_mode,
        **arguments,
    )
    return Case(call, owners, query_counts, kv_counts)


def plain_limit(case: Case, owner: tuple[int, int] | None) -> int:
    if owner is None:
        return 0
    b, s = owner
    q_len, kv_len = case.query_counts[b], case.kv_counts[b]
    limit = kv_len if case.call.spec.sparse_mode == 0 else kv_len - q_len + s + 1
    return max(0, min(limit, kv_len))


def plain_valid_ids(case: Case, row: int) -> list[int]:
    limit = plain_limit(case, case.owners[row])
    valid = []
    for index in case.call.indices[row].tolist():
        if index < 0 or index * case.call.spec.sparse_block_size >= limit:
            continue
        valid.append(index)
    return valid


@st.composite
def cases(draw: st.DrawFn) -> Case:
    batch = draw(st.integers(0, 5))
    block = draw(st.sampled_from(BLOCK_SIZES))
    kv_counts = draw(st.lists(st.integers(0, 300), min_size=batch, max_size=batch))
    query_counts = draw(st.lists(st.integers(0, 6), min_size=batch, max_size=batch))
    selected = draw(st.integers(1, 9))
    near = st.integers(-2, 2).flatmap(
        lambda d: st.sampled_from(kv_counts or [0]).map(lambda n: n // block + d)
    )
    ids = st.one_of(st.integers(0, 300 // block + 1), near, st.sampled_from(AWKWARD_IDS))

    def indices(rows: int) -> npt.NDArray[np.int32]:
        values = draw(st.lists(ids, min_size=rows * selected, max_size=rows * selected))
        return np.array(values, np.int32).reshape(rows, selected)

    return make_case(
        draw(st.sampled_from(LAYOUTS)),
        query_counts,
        kv_counts,
        indices,
        sparse_block_size=block,
        sparse_mode=draw(st.sampled_from([0, 3])),
        spare=draw(st.integers(0, 3)),
    )


@given(case=cases())
@settings(max_examples=150, deadline=None)
def test_geometry_is_the_pseudo_code(case: Case) -> None:
    geometry = row_geometry(case.call)
    assert (geometry.batch.dtype, geometry.limit.dtype, geometry.first_row.dtype) == (
        np.int32,
        np.int64,
        np.int64,
    )
    assert geometry.batch.tolist() == [-1 if owner is None else owner[0] for owner in case.owners]
    assert geometry.limit.tolist() == [plain_limit(case, owner) for owner in case.owners]
    layout = case.call.spec.layout_kv
    first_rows = []
    for owner in case.owners:
        if owner is None or layout == "PA_BSND":
            first_rows.append(0)
        elif layout == "BSND":
            first_rows.append(owner[0] * case.call.key.shape[1])
        else:
            first_rows.append(sum(case.kv_counts[: owner[0]]))
    assert geometry.first_row.tolist() == first_rows


@given(case=cases(), chunk=st.sampled_from([1, 7, 1 << 22]))
@settings(max_examples=150, deadline=None)
def test_counts_and_compaction_are_the_pseudo_code(case: Case, chunk: int) -> None:
    geometry = row_geometry(case.call)
    before = case.call.indices.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_CHUNK", chunk)
        counts, packed = valid_counts(case.call, geometry), compact(case.call, geometry)
    expected = [plain_valid_ids(case, row) for row in range(len(before))]
    selected = before.shape[1]
    assert counts.dtype == packed.dtype == np.int32
    assert counts.tolist() == [len(valid) for valid in expected]
    assert packed.tolist() == [valid + [-1] * (selected - len(valid)) for valid in expected]
    np.testing.assert_array_equal(case.call.indices, before)
    assert (packed is case.call.indices) == np.array_equal(packed, before)


def one_row(ids: list[int], kv_count: int, *, block: int = 1, mode: int = 0) -> AttentionCall:
    indices = np.array([ids], np.int32)
    return make_case(
        ("TND", "TND"), [1], [kv_count], lambda rows: indices, sparse_block_size=block, sparse_mode=mode
    ).call


@pytest.mark.parametrize(
    ("ids", "kv_count", "block", "packed"),
    [
        ([0, 1, 2], 3, 1, [0, 1, 2]),
        ([2, 0, -1], 3, 1, [2, 0, -1]),
        ([-1, -1, -1], 3, 1, [-1, -1, -1]),
        ([-1, 2, 0], 3, 1, [2, 0, -1]),
        ([2, -2, -1], 3, 1, [2, -1, -1]),
        ([2, 3, 1], 3, 1, [2, 1, -1]),
        ([1, 1, 1], 3, 1, [1, 1, 1]),
        ([0, -1, 0], 0, 1, [-1, -1, -1]),
        # 17 tokens are two blocks of 16, the second with one token.
        ([1, 2, 0], 17, 16, [1, 0, -1]),
        ([1, 0, -1], 16, 16, [0, -1, -1]),
        # id * block size overflows int32: 2^27 * 16 = 2^31, which would wrap to below the limit.
        ([2**27, 2**28, 0], 17, 16, [0, -1, -1]),
    ],
)
def test_compaction(ids: list[int], kv_count: int, block: int, packed: list[int]) -> None:
    call = one_row(ids, kv_count, block=block)
    geometry = row_geometry(call)
    result = compact(call, geometry)
    assert result.tolist() == [packed]
    assert (result is call.indices) == (ids == packed)
    assert valid_counts(call, geometry).tolist() == [sum(index >= 0 for index in packed)]


def test_rows_of_several_chunks_are_compacted_alone() -> None:
    """A call whose first rows need no change and whose later ones do."""
    indices = np.array([[0, 1, -1]] * 3 + [[-1, 1, 0]] + [[1, -1, -1]], np.int32)
    call = make_case(("TND", "TND"), [5], [2], lambda rows: indices, sparse_block_size=1, sparse_mode=0).call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_CHUNK", 6)
        packed = compact(call, row_geometry(call))
    assert packed.tolist() == [[0, 1, -1]] * 3 + [[1, 0, -1]] + [[1, -1, -1]]


def test_strided_indices() -> None:
    spread = np.array([[5, 0, -1, 0, 1, 0, 9, 0]], np.int32)[:, ::2]
    call = one_row([0, 0, 0, 0], 6)
    strided = dataclasses.replace(call, indices=spread)
    geometry = row_geometry(strided)
    assert valid_counts(strided, geometry).tolist() == [2]
    assert compact(strided, geometry).tolist() == [[5, 1, -1, -1]]


def test_a_cache_longer_than_int32_arithmetic_on_tokens_would_bear() -> None:
    kv_count = 2**31 - 1
    call = one_row([2**24 - 1, 2**24, 2**31 - 1], kv_count, block=128)
    geometry = row_geometry(call)
    assert geometry.limit.tolist() == [kv_count]
    assert compact(call, geometry).tolist() == [[2**24 - 1, -1, -1]]
