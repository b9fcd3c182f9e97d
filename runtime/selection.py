"""Which cached tokens each query row may attend to, from lengths and selected blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from qsmla.runtime.checks import AttentionCall

_CHUNK: Final = 1 << 22
"""Indices looked at in one go: bounds the scratch memory of a long call."""
_NOTHING: Final = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RowGeometry:
    """Where each query row's own sequence lies, and how far into it the row sees."""

    batch: npt.NDArray[np.int32]
    """[rows]; the row's request, -1 for a row that belongs to none."""
    limit: npt.NDArray[np.int64]
    """[rows]; a row sees tokens 0..limit-1 of its sequence; 0 where batch is -1."""
    first_row: npt.NDArray[np.int64]
    """[rows]; cache row of the sequence's token 0; 0 in a paged cache and where batch is -1."""


def row_geometry(call: AttentionCall) -> RowGeometry:
    """Request, limit and first cache row of every query row."""
    rows = len(call.query)
    requests = len(call.query_lengths)
    if call.spec.layout_query == "TND":
        query_starts, query_counts = _starts_and_counts(call.query_lengths)
        held: int | npt.NDArray[np.int64] = query_counts
    else:
        held = call.output_shape[1]
        query_starts = np.arange(requests) * held
        query_counts = call.query_lengths.astype(np.int64)
    batch = np.arange(requests, dtype=np.int32).repeat(held)
    if len(batch) < rows:  # TND: rows behind the last prefix sum
        batch = np.concatenate([batch, np.full(rows - len(batch), -1, np.int32)])

    if call.spec.layout_kv == "TND":
        kv_starts, kv_counts = _starts_and_counts(call.kv_lengths)
    else:
        kv_counts = call.kv_lengths.astype(np.int64)
        kv_starts = np.arange(requests) * (0 if call.spec.paged else call.key.shape[1])
    # One more request in the last place, where -1 finds it: that of the rows that belong to none.
    query_ends = np.concatenate([query_starts + query_counts, _NOTHING])
    row = np.arange(rows)
    behind = row >= query_ends[batch]
    batch[behind] = -1
    limit = np.concatenate([kv_counts, _NOTHING])[batch]
    if call.spec.sparse_mode == 3:
        # The last of a request's rows sees all of its sequence, each one before it a token less.
        limit += row
        limit -= query_ends[batch] - 1
        np.maximum(limit, 0, out=limit)
        limit[behind] = 0
    return RowGeometry(batch, limit, np.concatenate([kv_starts, _NOTHING])[batch])


def valid_counts(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """How many of each row's ids select at least one token, int32 [rows]."""
    return count_valid(call.indices, lambda rows: _valid(call, geometry, rows))


def compact(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """The indices with each row's valid ids first, in their order, and -1 behind them.

    The call's own array if it is so already.
    """
    return valid_first(call.indices, lambda rows: _valid(call, geometry, rows))


def count_valid(
    indices: npt.NDArray[np.int32], valid: Callable[[slice], npt.NDArray[np.bool_]]
) -> npt.NDArray[np.int32]:
    """How many ids of each row are valid, int32 [rows]; `valid` says which of some rows are, [rows, K]."""
    counts = np.empty(len(indices), np.int32)
    for rows in _chunks(indices.shape):
        np.add.reduce(valid(rows), axis=1, dtype=np.int32, out=counts[rows])
    return counts


def valid_first(
    indices: npt.NDArray[np.int32], valid: Callable[[slice], npt.NDArray[np.bool_]]
) -> npt.NDArray[np.int32]:
    """The indices with each row's valid ids first, in their order, and -1 behind them; as they are if so."""
    result = None
    for rows in _chunks(indices.shape):
        is_valid = valid(rows)
        if np.count_nonzero(is_valid) == is_valid.size or _is_compact(indices[rows], is_valid):
            continue
        if result is None:
            result = indices.copy()
        packed = np.full(is_valid.shape, -1, np.int32)
        in_front = np.arange(is_valid.shape[1]) < np.count_nonzero(is_valid, axis=1)[:, None]
        packed[in_front] = indices[rows][is_valid]
        result[rows] = packed
    return indices if result is None else result


def _starts_and_counts(
    prefix_sums: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = prefix_sums.astype(np.int64)
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return starts, ends - starts


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, _CHUNK // shape[1])
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _valid(call: AttentionCall, geometry: RowGeometry, rows: slice) -> npt.NDArray[np.bool_]:
    """Which ids of some rows select at least one token, [rows, K]."""
    limit = geometry.limit[rows]
    if call.spec.sparse_block_size > 1:
        limit = -(-limit // call.spec.sparse_block_size)
    # As unsigned numbers the negative ids lie above every limit: one comparison does both.
    below: npt.NDArray[np.bool_] = call.indices[rows].view(np.uint32) < limit.astype(np.uint32)[:, None]
    return below


def _is_compact(indices: npt.NDArray[np.int32], valid: npt.NDArray[np.bool_]) -> bool:
    gaps = valid[:, 1:] > valid[:, :-1]
    return not gaps.any() and np.array_equal(indices != -1, valid)
