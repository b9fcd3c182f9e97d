"""Which cached tokens each query row may attend to, from lengths and selected blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.spec import KernelSpec
from qsmla.runtime.checks import AttentionCall
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.workers import before_closing

_CHUNK: Final = 1 << 22
"""Indices looked at in one go: bounds the scratch memory of a long call."""
MOST_ROWS_KEPT: Final = 4096
"""Beyond this, looking up what is kept of earlier calls takes as long as it saves."""
_NOTHING: Final = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RowGeometry:
    """Where each query row's own sequence lies, and how far into it the row sees.

    A planned row is one that belongs to a request; the others are zeros without any work.
    """

    batch: npt.NDArray[np.int32]
    """[rows]; the row's request, -1 for a row that belongs to none."""
    limit: npt.NDArray[np.int64]
    """[rows]; a row sees tokens 0..limit-1 of its sequence; 0 where batch is -1."""
    first_row: npt.NDArray[np.int64]
    """[rows]; cache row of the sequence's token 0; 0 in a paged cache and where batch is -1."""
    end_of_ids: npt.NDArray[np.uint32]
    """[rows, 1]; ids 0..end_of_ids-1 select at least one token."""
    planned: npt.NDArray[np.int64]
    """[planned rows], in order (batch, row): their places among the rows."""
    planned_batch: npt.NDArray[np.int32]
    """[planned rows]; their requests."""
    rows_per_batch: npt.NDArray[np.int64]
    """[B]; planned rows of each request."""
    first_in_order: npt.NDArray[np.int64]
    """[B]; place of each request's first row among the planned rows."""
    first_rows: npt.NDArray[np.int64] | None
    """[B]; each request's first row in the output, None where they follow each other without a gap."""
    query_lengths: KeptArray
    kv_lengths: KeptArray
    """int32 [B]; the call's."""


def row_geometry(call: AttentionCall) -> RowGeometry:
    """Request, limit and first cache row of every query row.

    The layers of a model call with the same lengths one after the other, so that those of few rows are kept.
    """
    extents = (call.output_shape[1], call.key.shape[1])
    rows, query_lengths, kv_lengths = len(call.query), call.query_lengths, call.kv_lengths
    if rows > MOST_ROWS_KEPT:
        return _row_geometry(call.spec, rows, extents, query_lengths, kv_lengths)
    return _kept_geometry(call.spec, rows, extents, query_lengths.tobytes(), kv_lengths.tobytes())


@functools.lru_cache(maxsize=16)
def _kept_geometry(
    spec: KernelSpec, rows: int, extents: tuple[int, int], query_lengths: bytes, kv_lengths: bytes
) -> RowGeometry:
    lengths = (np.frombuffer(text, np.int32) for text in (query_lengths, kv_lengths))
    return _row_geometry(spec, rows, extents, *lengths)


# Views must not outlive their devices.
before_closing(_kept_geometry.cache_clear)


def _row_geometry(
    spec: KernelSpec,
    rows: int,
    extents: tuple[int, int],
    query_lengths: npt.NDArray[np.int32],
    kv_lengths: npt.NDArray[np.int32],
) -> RowGeometry:
    """`extents`: rows that a request has in a BSND query, and in a cache that is not TND."""
    requests = len(query_lengths)
    if spec.layout_query == "TND":
        query_starts, query_counts = _starts_and_counts(query_lengths)
        held: int | npt.NDArray[np.int64] = query_counts
    else:
        held = extents[0]
        query_starts = np.arange(requests) * held
        query_counts = query_lengths.astype(np.int64)
    batch = np.arange(requests, dtype=np.int32).repeat(held)
    if len(batch) < rows:  # TND: rows behind the last prefix sum
        batch = np.concatenate([batch, np.full(rows - len(batch), -1, np.int32)])

    if spec.layout_kv == "TND":
        kv_starts, kv_counts = _starts_and_counts(kv_lengths)
    else:
        kv_counts = kv_lengths.astype(np.int64)
        kv_starts = np.arange(requests) * (0 if spec.paged else extents[1])
    # One more request in the last place, where -1 finds it: that of the rows that belong to none.
    query_ends = np.concatenate([query_starts + query_counts, _NOTHING])
    row = np.arange(rows)
    behind = row >= query_ends[batch]
    batch[behind] = -1
    limit = np.concatenate([kv_counts, _NOTHING])[batch]
    if spec.sparse_mode == 3:
        # The last of a request's rows sees all of its sequence, each one before it a token less.
        limit += row
        limit -= query_ends[batch] - 1
        np.maximum(limit, 0, out=limit)
        limit[behind] = 0
    planned = np.flatnonzero(batch >= 0)
    rows_per_batch = np.bincount(batch[planned], minlength=requests)
    return RowGeometry(
        batch=batch,
        limit=limit,
        first_row=np.concatenate([kv_starts, _NOTHING])[batch],
        end_of_ids=(-(-limit // spec.sparse_block_size)).astype(np.uint32)[:, None],
        planned=planned,
        planned_batch=batch[planned],
        rows_per_batch=rows_per_batch,
        first_in_order=rows_per_batch.cumsum() - rows_per_batch,
        first_rows=None if spec.layout_query == "TND" else query_starts,
        query_lengths=KeptArray(query_lengths),
        kv_lengths=KeptArray(kv_lengths),
    )


def all_valid(call: AttentionCall, geometry: RowGeometry) -> bool:
    """Whether each id selects a token, as is usual; False also where there are too many to look at."""
    indices = call.indices
    if indices.size > _CHUNK:
        return False
    valid = np.count_nonzero(indices.view(np.uint32) < geometry.end_of_ids)
    return int(valid) == indices.size


def valid_counts(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """How many of each row's ids select at least one token, int32 [rows]."""
    return choose(call, geometry)[0]


def compact(call: AttentionCall, geometry: RowGeometry) -> npt.NDArray[np.int32]:
    """The indices with each row's valid ids first, in their order, and -1 behind them.

    The call's own array if it is so already.
    """
    return choose(call, geometry)[1]


def choose(call: AttentionCall, geometry: RowGeometry) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """`valid_counts` and `compact`."""

    def valid(rows: slice) -> npt.NDArray[np.bool_]:
        # As unsigned numbers the negative ids lie above every limit: one comparison does both.
        below: npt.NDArray[np.bool_] = call.indices[rows].view(np.uint32) < geometry.end_of_ids[rows]
        return below

    return valid_first(call.indices, valid)


def valid_first(
    indices: npt.NDArray[np.int32], valid: Callable[[slice], npt.NDArray[np.bool_]]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """How many ids of each row are valid, and the indices with those first, in order, and -1 behind them.

    Args:
        indices: [rows, K].
        valid: says which ids of some rows are valid, [some rows, K].

    Returns:
        int32 [rows], and int32 [rows, K], the caller's own array if it is so already.
    """
    result = None
    counts = np.empty(len(indices), np.int32)
    for rows in chunks(indices.shape):
        is_valid = valid(rows)
        here = np.add.reduce(is_valid, axis=1, dtype=np.int32, out=counts[rows])
        if here.sum(dtype=np.int64) == is_valid.size or _is_compact(indices[rows], is_valid):
            continue
        if result is None:
            result = indices.copy()
        packed = np.full(is_valid.shape, -1, np.int32)
        in_front = np.arange(is_valid.shape[1]) < here[:, None]
        packed[in_front] = indices[rows][is_valid]
        result[rows] = packed
    return counts, indices if result is None else result


def _starts_and_counts(
    prefix_sums: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = prefix_sums.astype(np.int64)
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return starts, ends - starts


def chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Rows of indices of a shape [rows, K], few enough to be looked at in one go."""
    step = max(1, _CHUNK // shape[1])
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _is_compact(indices: npt.NDArray[np.int32], valid: npt.NDArray[np.bool_]) -> bool:
    gaps = valid[:, 1:] > valid[:, :-1]
    return not gaps.any() and np.array_equal(indices != -1, valid)
