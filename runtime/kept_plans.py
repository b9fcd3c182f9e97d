"""Plans and what runs by them, kept for the calls that follow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qsmla.runtime.devices import SCRATCH_BYTES
from qsmla.runtime.execution import item_bytes
from qsmla.runtime.partition import Partition, plan_rows
from qsmla.runtime.program import Program, RowOrder
from qsmla.runtime.selection import MOST_ROWS_KEPT
from qsmla.runtime.workers import before_closing


class KeptPlan:
    """A plan, and the programs that calls have made of it."""

    def __init__(self, partition: Partition, *, keep: bool) -> None:
        self.partition = partition
        self._keep = keep
        self._accepted: Partition | None = None
        self._programs: dict[tuple[str, int], Program] = {}

    def accept(self, given: Partition) -> None:
        """Refuse a partition that cuts rows otherwise: one would be done twice, or not at all.

        Raises:
            ValueError: it does.
        """
        if given is self._accepted:
            return
        if any(getattr(given, name) != getattr(self.partition, name) for name in _CUT):
            raise ValueError(
                "metadata is damaged: its cursors, slots or loads are not those of a plan for this call"
            )
        self._accepted = given

    def program(self, order: Callable[[], RowOrder], kind: str, heads: int) -> Program:
        """The steps of a call.

        Args:
            order: makes the rows that the plan is of; the plan alone says which they are.
            kind: of the call's target.
            heads: of its queries.
        """
        known = (kind, heads)
        program = self._programs.get(known)
        if program is None:
            chunk = max(1, SCRATCH_BYTES[kind] // item_bytes(heads))
            fold_chunk = max(1, self.partition.slots) if kind == "llvm-cpu" else chunk
            program = Program(order(), self.partition, chunk=chunk, fold_chunk=fold_chunk, keep=self._keep)
            if self._keep:
                self._programs[known] = program
        return program


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
        plan = plan_rows(blocks, rows_per_batch, num_cores, 0, first_rows=first_rows)
        return KeptPlan(plan, keep=False)
    starts = None if first_rows is None else first_rows.astype(np.int64).tobytes()
    batches = rows_per_batch.astype(np.int64).tobytes()
    return _kept_plan(blocks.astype(np.int64).tobytes(), batches, num_cores, starts)


def given_plan(
    given: Partition,
    blocks: NDArray[np.integer[Any]],
    rows_per_batch: NDArray[np.integer[Any]],
    *,
    first_rows: NDArray[np.integer[Any]] | None = None,
) -> KeptPlan:
    """The plan that was handed in, which must be the one that would be made.

    Args:
        given: as it was handed in, its fingerprint known to be right.
        blocks, rows_per_batch, first_rows: as in `plan_rows`.

    Raises:
        ValueError: it differs.
    """
    plan = own_plan(blocks, rows_per_batch, given.num_cores, first_rows=first_rows)
    plan.accept(given)
    return plan


_CUT: Final = tuple(field.name for field in dataclasses.fields(Partition) if field.name != "fingerprint")
"""What a partition says, but for which call it is."""


@functools.lru_cache(maxsize=16)
def _kept_plan(blocks: bytes, rows_per_batch: bytes, num_cores: int, first_rows: bytes | None) -> KeptPlan:
    starts = None if first_rows is None else np.frombuffer(first_rows, np.int64)
    batches = np.frombuffer(rows_per_batch, np.int64)
    plan = plan_rows(np.frombuffer(blocks, np.int64), batches, num_cores, 0, first_rows=starts)
    return KeptPlan(plan, keep=True)


# Views must not outlive their devices.
before_closing(_kept_plan.cache_clear)
