"""A checked call, a kernel and a program to a result: what each lane does, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM
from qsmla.runtime.devices import Device, Input
from qsmla.runtime.jobs import Check
from qsmla.runtime.lanes import Kernel, Lane
from qsmla.runtime.output import Output
from qsmla.runtime.partition import CoreRange
from qsmla.runtime.program import Fold, LongRow, Nothing, Program, Store, WholeRows
from qsmla.runtime.slots import Slots
from qsmla.runtime.staging import Staging
from qsmla.runtime.workers import WorkerPool


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What a program works on."""

    inputs: Sequence[Input]
    """The tensors of `attend` in front of the scale."""
    fold_inputs: Sequence[Input] = ()
    """The tensors of `fold` behind the partial results."""
    scale: float
    heads: int
    output: Output
    """Written."""
    staging: Staging | None = None
    """What holds copies among the inputs, to be given back."""


def item_bytes(heads: int) -> int:
    """About what the intermediate tensors of one work item take, in float32."""
    # Keys, query and partial result, and the scores before, after and under the softmax.
    head_floats = 2 * NOPE_DIM + ROPE_DIM + 3 * KEY_BLOCK
    return 4 * (KEY_BLOCK * (NOPE_DIM + ROPE_DIM) + heads * head_floats)


def run_program(kernel: Kernel, work: Work, program: Program, pool: WorkerPool) -> None:
    """Compute every planned row on the pool's lanes.

    Each core is one task. Rows that several cores share leave one partial result a block in a slot, and a
    second pass folds them, by the same arithmetic in the same order as a row that one core does alone.
    """
    execution = _Execution(kernel, work, program)
    try:
        pool.run([partial(execution.do_core, core) for core in program.cores])
        if program.folds:
            pool.run([execution.fold_split_rows])
    finally:
        # The traceback of an error holds this frame, and must not hold a device's buffers.
        execution.close()
    program.give_back(execution.slots)
    if work.staging is not None:
        work.staging.give_back()


class _Execution:
    def __init__(self, kernel: Kernel, work: Work, program: Program) -> None:
        self._kernel = kernel
        self._work = work
        self._program = program
        self.slots = program.take_slots(work.heads)
        self._inputs: dict[Lane, _Inputs] = {}

    def close(self) -> None:
        """Let go of what lies on devices."""
        self._inputs.clear()

    def do_core(self, core: CoreRange, lane: Lane, check: Check) -> None:
        """The steps of one core."""
        run = self._on(lane, check)
        for step in self._program.steps(core):
            check()
            match step:
                case WholeRows():
                    run.do_whole_rows(step)
                case Store():
                    run.store(step, self.slots)
                case LongRow():
                    run.do_long_row(step)
                case Nothing():
                    self._work.output.put_nothing(step.output_rows)

    def fold_split_rows(self, lane: Lane, check: Check) -> None:
        """The second pass: every split row from its slots."""
        run = self._on(lane, check)
        for step in self._program.folds:
            check()
            run.fold(step, self.slots)

    def _on(self, lane: Lane, check: Check) -> _LaneRun:
        """The work on a lane, its inputs brought there once."""
        inputs = self._inputs.get(lane)
        if inputs is None:
            inputs = self._inputs[lane] = _Inputs(lane.device, self._work)
        return _LaneRun(lane, self._kernel, self._work, inputs, check)


class _Inputs:
    """What the kernel's functions take beside work items and partial results, where a lane reads it."""

    def __init__(self, device: Device, work: Work) -> None:
        self.attend = [one.on(device) for one in work.inputs]
        self.fold = [one.on(device) for one in work.fold_inputs]


class _LaneRun:
    """One task on one lane, with the call's inputs as the lane's device sees them."""

    def __init__(self, lane: Lane, kernel: Kernel, work: Work, inputs: _Inputs, check: Check) -> None:
        self._device = lane.device
        self._functions = lane.load(kernel)
        self._work = work
        self._inputs = inputs
        self._check = check

    def do_whole_rows(self, step: WholeRows) -> None:
        """Rows of this core alone, to their outputs."""
        device, inputs = self._device, self._inputs
        output, lse = self._functions.attend_rows(
            inputs.attend,
            self._work.scale,
            step.items.on(device),
            inputs.fold,
            step.spans.on(device),
            step.longest,
        )
        self._work.output.put(step.output_rows, device, output, lse)

    def store(self, step: Store, slots: Slots) -> None:
        """Partial results into their slots; on a CPU the kernel itself writes what is large of them."""
        device, scale = self._device, self._work.scale
        items = step.items.on(device)
        if device.reads_host_memory:
            storage = slots.storage(device, step.first_slot, step.slots)
            partials = self._functions.attend_into(self._inputs.attend, scale, items, storage)
        else:
            partials = self._functions.attend(self._inputs.attend, scale, items)
        slots.store(device, step.first_slot, step.slots, partials)

    def do_long_row(self, step: LongRow) -> None:
        """A row whose partial results are too many to be made at a time."""
        slots = Slots(step.fold.slots, self._work.heads)
        for store in step.stores:
            self._check()
            self.store(store, slots)
        self._check()
        self.fold(step.fold, slots)

    def fold(self, step: Fold, slots: Slots) -> None:
        """Rows from their slots to their outputs."""
        device = self._device
        partials = slots.partials(device, step.first_slot, step.slots)
        output, lse = self._functions.fold(partials, self._inputs.fold, step.spans.on(device), step.longest)
        self._work.output.put(step.output_rows, device, output, lse)
