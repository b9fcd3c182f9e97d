"""Plans that calls make for themselves, kept for the calls that follow."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qsmla.runtime.execution import Steps
from qsmla.runtime.partition import Partition, plan_rows
from qsmla.runtime.selection import MOST_ROWS_KEPT
from qsmla.runtime.workers import before_closing


class KeptPlan(NamedTuple):
    """A plan, and what calls have worked out from it."""

    partition: Partition
    steps: Steps


def own_plan(
    blocks: NDArray[np.integer[Any]],
    rows_per_batch: NDArray[np.integer[Any]],
    num_cores: int,
    *,
    first_rows: NDArray[np.integer[Any]] | None = None,
) -> KeptPlan:
    """What `plan_rows` makes, for a call that plans for itself: without a fingerprint.

    The layers of a model call with the same blocks one after the other, so that plans of few rows are kept.
    """
    if len(blocks) > MOST_ROWS_KEPT:
        return KeptPlan(plan_rows(blocks, rows_per_batch, num_cores, 0, first_rows=first_rows), {})
    starts = None if first_rows is None else first_rows.astype(np.int64).tobytes()
    batches = rows_per_batch.astype(np.int64).tobytes()
    return _kept_plan(blocks.astype(np.int64).tobytes(), batches, num_cores, starts)


@functools.lru_cache(maxsize=16)
def _kept_plan(blocks: bytes, rows_per_batch: bytes, num_cores: int, first_rows: bytes | None) -> KeptPlan:
    starts = None if first_rows is None else np.frombuffer(first_rows, np.int64)
    batches = np.frombuffer(rows_per_batch, np.int64)
    return KeptPlan(plan_rows(np.frombuffer(blocks, np.int64), batches, num_cores, 0, first_rows=starts), {})


# Views must not outlive their devices.
before_closing(_kept_plan.cache_clear)
