"""Which cached tokens each query row may attend to, from lengths and selected blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from qsmla.runtime.checks import AttentionCall

_CHUNK: Final = 1 << 22
"""Indices looked at in one go: bounds the scratch memory of a long call."""


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
    spec = call.spec
    requests = len(call.query_lengths)
    if spec.layout_query == "TND":
        row = np.arange(len(call.query))
        # The first prefix sum above a row is its request's; behind the last there is none.
        batch = np.searchsorted(call.query_lengths, row, side="right")
        query_start, query_length = _starts_and_counts(call.query_lengths)
    else:
        tokens = call.output_shape[1]
        batch = np.repeat(np.arange(requests), tokens)
        query_start = np.arange(requests, dtype=np.int64) * tokens
        query_length = call.query_lengths.astype(np.int64)
        row = np.arange(len(batch))
    if spec.layout_kv == "TND":
        kv_start, kv_length = _starts_and_counts(call.kv_lengths)
    else:
        kv_length = call.kv_lengths.astype(np.int64)
        stride = 0 if spec.paged else call.key.shape[1]
        kv_start = np.arange(requests, dtype=np.int64) * stride
    if not requests:
        nothing = np.zeros(len(row), np.int64)
        return RowGeometry(np.full(len(row), -1, np.int32), nothing, nothing)

    held = np.minimum(batch, requests - 1)
    place = row - query_start[held]
    own = (batch < requests) & (place < query_length[held])
    limit = kv_length[held]
    if spec.sparse_mode == 3:
        limit = np.minimum(limit, limit - query_length[held] + place + 1)
    return RowGeometry(
        batch=np.where(own, batch, -1).astype(np.int32),
        limit=np.where(own, np.maximum(limit, 0), 0),
        first_row=np.where(own, kv_start[held], 0),
    )


def valid_counts(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """How many of each row's ids select at least one token, int32 [rows]."""
    counts = np.empty(len(call.indices), np.int32)
    for rows in _chunks(call.indices.shape):
        counts[rows] = np.count_nonzero(_valid(call, geometry, rows), axis=1)
    return counts


def compact(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """The indices with each row's valid ids first, in their order, and -1 behind them.

    The call's own array if it is so already.
    """
    indices = call.indices
    result = None
    for rows in _chunks(indices.shape):
        valid = _valid(call, geometry, rows)
        gaps = valid[:, 1:] > valid[:, :-1]
        if not gaps.any() and np.array_equal(indices[rows] != -1, valid):
            continue
        if result is None:
            result = indices.copy()
        packed = np.full(valid.shape, -1, np.int32)
        in_front = np.arange(valid.shape[1]) < np.count_nonzero(valid, axis=1)[:, None]
        packed[in_front] = indices[rows][valid]
        result[rows] = packed
    return indices if result is None else result


def _starts_and_counts(
    prefix_sums: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = prefix_sums.astype(np.int64)
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    return starts, ends - starts


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, _CHUNK // shape[1])
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _valid(call: AttentionCall, geometry: RowGeometry, rows: slice) -> npt.NDArray[np.bool_]:
    """Which ids of some rows select at least one token, [rows, K]."""
    blocks = -(-geometry.limit[rows] // call.spec.sparse_block_size)
    # As unsigned numbers the negative ids lie above every limit: one comparison does both.
    below: npt.NDArray[np.bool_] = call.indices[rows].view(np.uint32) < blocks[:, None].astype(np.uint32)
    return below
