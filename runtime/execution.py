"""A checked call, a kernel and a partition to a result: what each core does, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.device_array import Rows
from qsmla.runtime.devices import Device, Input, KeptArray, aligned
from qsmla.runtime.lanes import Kernel, Lane, Partials
from qsmla.runtime.output import Output, some_rows
from qsmla.runtime.partition import CoreRange, Partition
from qsmla.runtime.workers import Check, WorkerPool


class Step(NamedTuple):
    """Whole rows that are done at a time, and fit a chunk together."""

    items: KeptArray
    """int32 [items, 3]: row in the inputs, batch, key block."""
    spans: KeptArray
    """int32 [rows, 2]: a row's first item, and how many."""
    longest: int
    """Items of the row that has the most."""
    output_rows: Rows


class CoreSteps(NamedTuple):
    """What there is to do of a core's whole rows."""

    nothing: npt.NDArray[np.int64]
    """Output rows without keys."""
    steps: tuple[Step | int, ...]
    """A number is a row by itself, longer than a chunk."""


Steps = dict[tuple[int, int, int], CoreSteps]
"""By first row, last row and blocks in a chunk."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """The rows to compute, in the order of the partition, and where their inputs and outputs lie."""

    inputs: Sequence[Input]
    """The tensors of `attend` in front of the scale."""
    fold_inputs: Sequence[Input] = ()
    """The tensors of `fold` behind the partial results."""
    scale: float
    heads: int
    output_row: npt.NDArray[np.int64]
    """[planned rows]; the row's place in the inputs and in the output."""
    batch: npt.NDArray[np.int32]
    """[planned rows]."""
    blocks: npt.NDArray[np.int64]
    """[planned rows]; key blocks."""
    first_in_order: npt.NDArray[np.int64]
    """[batches]; place of each batch's first row among the planned rows."""
    output: Output
    """Written."""
    steps: Steps
    """What earlier calls with the same partition worked out, and this one adds to."""

    @property
    def item_bytes(self) -> int:
        """About what the intermediate tensors of one work item take, in float32."""
        # Keys, query and partial result, and the scores before, after and under the softmax.
        head_floats = 2 * NOPE_DIM + ROPE_DIM + 3 * KEY_BLOCK
        return 4 * (KEY_BLOCK * (NOPE_DIM + ROPE_DIM) + self.heads * head_floats)


class Slots:
    """Host memory for partial results that outlive the chunk that made them."""

    def __init__(self, count: int, heads: int) -> None:
        shapes = ((count, heads, NOPE_DIM), (count, heads), (count, heads))
        self.arrays = tuple(aligned_empty(shape, np.float32) for shape in shapes)
        """Values, maximum and total, as in `Partials`."""


_NO_SLOTS: Final = Slots(0, 1)


def run_partition(kernel: Kernel, work: Work, partition: Partition, pool: WorkerPool) -> None:
    """Compute every planned row on the pool's lanes.

    Each core is one task. Rows that several cores share leave one partial result a block in a slot, and a
    second pass folds them, by the same arithmetic in the same order as a row that one core does alone.
    """
    execution = _Execution(kernel, work, partition)
    try:
        pool.run([partial(execution.do_range, core) for core in partition.ranges if not core.empty])
        if partition.combines:
            pool.run([execution.fold_split_rows])
    finally:
        # The traceback of an error holds this frame, and must not hold a device's buffers.
        execution.close()


class _Execution:
    def __init__(self, kernel: Kernel, work: Work, partition: Partition) -> None:
        self._kernel = kernel
        self._work = work
        self._partition = partition
        self._slots = Slots(partition.slots, work.heads) if partition.slots else _NO_SLOTS
        self._inputs: dict[Lane, _Inputs] = {}

    def close(self) -> None:
        """Let go of what lies on devices."""
        self._inputs.clear()

    def do_range(self, core: CoreRange, lane: Lane, check: Check) -> None:
        """One core's rows: the rest of a split row, whole rows, the beginning of a split row."""
        run = self._on(lane, check)
        work = self._work
        start, end = (self._place(cursor.batch, cursor.row) for cursor in core)
        row = start
        if core.start.block:
            last = core.end.block if end == start else int(work.blocks[start])
            run.store(start, core.start.block, last, self._slots, core.start.slot)
            row += 1
        run.do_whole_rows(row, end)
        if core.end.block and end >= row:
            run.store(end, 0, core.end.block, self._slots, core.end.slot - core.end.block)

    def fold_split_rows(self, lane: Lane, check: Check) -> None:
        """The second pass: every split row from its slots."""
        combines = self._partition.combines
        run = self._on(lane, check)
        spans = np.array([(combine.first_slot, combine.slots) for combine in combines])
        run.fold_slots(self._slots, spans, np.array([combine.row for combine in combines]))

    def _on(self, lane: Lane, check: Check) -> _LaneRun:
        """The work on a lane, its inputs brought there once."""
        inputs = self._inputs.get(lane)
        if inputs is None:
            inputs = self._inputs[lane] = _Inputs(lane, self._work)
        return _LaneRun(lane, self._kernel, self._work, inputs, check)

    def _place(self, batch: int, row: int) -> int:
        """Where a cursor's row stands among the planned rows."""
        if batch == len(self._work.first_in_order):
            return len(self._work.blocks)
        return int(self._work.first_in_order[batch]) + row


class _Inputs:
    """What the kernel's functions take beside work items and partial results, where a lane reads it."""

    def __init__(self, lane: Lane, work: Work) -> None:
        self.attend = [_view(one, lane.device) for one in work.inputs]
        self.fold = [_view(one, lane.device) for one in work.fold_inputs]


def _view(tensor: Input, device: Device) -> rt.HalBufferView:
    """A tensor as an argument; arrays are such as the device reads in place, if it does."""
    if isinstance(tensor, np.ndarray):
        return device.view(tensor, is_aligned=device.reads_host_memory)
    return tensor.on(device) if isinstance(tensor, KeptArray) else tensor


class _LaneRun:
    """One task on one lane, with the call's inputs as the lane's device sees them."""

    def __init__(self, lane: Lane, kernel: Kernel, work: Work, inputs: _Inputs, check: Check) -> None:
        self._device = lane.device
        self._functions = lane.load(kernel)
        self._work = work
        self._inputs = inputs
        self._check = check
        self._chunk = max(1, lane.device.scratch_bytes // work.item_bytes)

    def do_whole_rows(self, start: int, end: int) -> None:
        """Rows of this core alone, as many at a time as fit a chunk."""
        work = self._work
        known = (start, end, self._chunk)
        todo = work.steps.get(known)
        if todo is None:
            todo = work.steps[known] = _steps(work, start, end, self._chunk)
        if len(todo.nothing):
            work.output.put_nothing(todo.nothing)
        for step in todo.steps:
            if isinstance(step, int):
                self._do_long_row(step)
            else:
                self._do_step(step)

    def _do_step(self, step: Step) -> None:
        self._check()
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

    def store(self, row: int, first: int, last: int, slots: Slots, slot: int) -> None:
        """Blocks first..last-1 of a row into slots, from `slot` on."""
        for begin in range(first, last, self._chunk):
            count = min(self._chunk, last - begin)
            partials = self._attend(_items(self._work, np.array([row]), np.array([begin]), np.array([count])))
            at = slice(slot + begin - first, slot + begin - first + count)
            for kept, made in zip(slots.arrays, partials, strict=True):
                kept[at] = self._device.read(made, np.float32)

    def fold_slots(
        self, slots: Slots, spans: npt.NDArray[np.int64], output_rows: npt.NDArray[np.int64]
    ) -> None:
        """Rows from their slots to their outputs; spans: [rows, 2], first slot and slots, in order."""
        most = len(slots.arrays[0]) if self._device.reads_host_memory else self._chunk
        for group in _groups(np.arange(len(spans)), spans[:, 1], most):
            first, last = spans[group[0], 0], spans[group[-1]].sum()
            views = [self._device.view(array[first:last]) for array in slots.arrays]
            places = aligned((spans[group] - [first, 0]).astype(np.int32))
            self._fold(Partials(*views), places, int(places[:, 1].max()), output_rows[group])

    def _do_long_row(self, row: int) -> None:
        blocks = int(self._work.blocks[row])
        slots = Slots(blocks, self._work.heads)
        self.store(row, 0, blocks, slots, 0)
        self.fold_slots(slots, np.array([[0, blocks]]), self._work.output_row[[row]])

    def _attend(self, items: npt.NDArray[np.int32]) -> Partials:
        """Partial results of work items, which are `aligned`."""
        self._check()
        view = self._device.view(items, is_aligned=True)
        return self._functions.attend(self._inputs.attend, self._work.scale, view)

    def _fold(
        self,
        partials: Partials,
        spans: npt.NDArray[np.int32],
        longest: int,
        output_rows: Rows,
    ) -> None:
        """Rows to their outputs; spans, which are `aligned`: a row's first partial result, and how many."""
        self._check()
        view = self._device.view(spans, is_aligned=True)
        output, lse = self._functions.fold(partials, self._inputs.fold, view, longest)
        self._work.output.put(output_rows, self._device, output, lse)


def _steps(work: Work, start: int, end: int, chunk: int) -> CoreSteps:
    """Planned rows start..end-1, `chunk` blocks at a time."""
    rows = np.arange(start, end)
    empty = work.blocks[start:end] == 0
    with_keys = rows[~empty]
    steps: list[Step | int] = []
    for group in _groups(with_keys, work.blocks[with_keys], chunk):
        blocks = work.blocks[group]
        if len(group) == 1 and blocks[0] > chunk:
            steps.append(int(group[0]))
            continue
        spans = aligned_empty((len(group), 2), np.int32)
        spans[:, 0] = blocks.cumsum() - blocks
        spans[:, 1] = blocks
        items = _items(work, group, np.zeros_like(blocks), blocks)
        rows_here = some_rows(work.output_row[group])
        steps.append(Step(KeptArray(items), KeptArray(spans), int(blocks.max()), rows_here))
    return CoreSteps(work.output_row[rows[empty]], tuple(steps))


def _items(
    work: Work,
    rows: npt.NDArray[np.int64],
    first_block: npt.NDArray[np.int64],
    blocks: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """The work items of `blocks` blocks of each planned row, from its `first_block` on."""
    each = np.arange(len(rows)).repeat(blocks)
    items = aligned_empty((len(each), 3), np.int32)
    items[:, 0] = work.output_row[rows][each]
    items[:, 1] = work.batch[rows][each]
    items[:, 2] = np.arange(len(each)) - (blocks.cumsum() - blocks - first_block)[each]
    return items


def _groups(
    rows: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64], chunk: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Consecutive rows with at most `chunk` blocks together; a row with more is alone."""
    ends = blocks.cumsum()
    first, done = 0, 0
    while first < len(rows):
        last = max(int(np.searchsorted(ends, done + chunk, side="right")), first + 1)
        yield rows[first:last]
        first, done = last, int(ends[last - 1])
