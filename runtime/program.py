"""A partition as the steps that each core takes, worked out once for all calls that run by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.device_array import Rows
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.partition import Combine, CoreRange, Partition
from qsmla.runtime.slots import NO_SLOTS, Slots

_MOST_KEPT_SLOT_BYTES = 8 << 20
"""Slots that take more are not worth keeping: what fills them takes long."""


class RowOrder(NamedTuple):
    """The rows of a call as a partition counts them; of rows in order (batch, row), arrays [planned rows]."""

    output_row: npt.NDArray[np.int64]
    """The row's place in the inputs and in the output."""
    batch: npt.NDArray[np.int32]
    blocks: npt.NDArray[np.int64]
    """Key blocks."""
    first_in_order: npt.NDArray[np.int64]
    """[batches]; place of each batch's first row among the planned rows."""


class Nothing(NamedTuple):
    """Rows without keys."""

    output_rows: npt.NDArray[np.int64]


class WholeRows(NamedTuple):
    """Rows that are done at a time, from their keys to their outputs."""

    items: KeptArray
    """int32 [items, 3]: row in the inputs, batch, key block."""
    spans: KeptArray
    """int32 [rows, 2]: a row's first item, and how many."""
    longest: int
    """Items of the row that has the most."""
    output_rows: Rows


class Store(NamedTuple):
    """Blocks of a row whose partial results outlive the step: they are left in slots."""

    items: KeptArray
    """int32 [items, 3]."""
    first_slot: int
    slots: int


class Fold(NamedTuple):
    """Rows from their slots to their outputs."""

    first_slot: int
    slots: int
    """Of all of them; they follow each other."""
    spans: KeptArray
    """int32 [rows, 2]: a row's first slot, counted from `first_slot`, and how many."""
    longest: int
    output_rows: Rows


class LongRow(NamedTuple):
    """A row by itself, with more blocks than are done at a time, and slots of its own."""

    stores: tuple[Store, ...]
    fold: Fold


Step = Nothing | WholeRows | Store | LongRow


class Program:
    """What there is to do, core by core.

    Args:
        order: the rows.
        partition: how they are cut.
        chunk: blocks that are done at a time.
        fold_chunk: slots that are folded at a time; a longer row is folded alone.
        keep: whether steps and slots are for other calls too; else each is made when its turn comes.
    """

    def __init__(
        self, order: RowOrder, partition: Partition, *, chunk: int, fold_chunk: int, keep: bool
    ) -> None:
        self._order = order
        self._partition = partition
        self._chunk = chunk
        self._keep = keep
        self._kept_steps: dict[CoreRange, tuple[Step, ...]] = {}
        self._kept_slots: list[Slots] = []
        self.cores = tuple(core for core in partition.ranges if not core.empty)
        """Those with something to do."""
        self.folds = tuple(_folds(partition.combines, fold_chunk))
        """What is left when all cores are done: the rows that several of them share."""

    def steps(self, core: CoreRange) -> Iterable[Step]:
        """What one of `cores` does, in order."""
        if not self._keep:
            return self._steps(core)
        steps = self._kept_steps.get(core)
        if steps is None:
            steps = self._kept_steps[core] = tuple(self._steps(core))
        return steps

    def take_slots(self, heads: int) -> Slots:
        """Slots for one run, with whatever is in them."""
        count = self._partition.slots
        if not count:
            return NO_SLOTS
        try:
            slots = self._kept_slots.pop()
        except IndexError:
            return Slots(count, heads)
        return slots if slots.heads == heads else Slots(count, heads)

    def give_back(self, slots: Slots) -> None:
        """Let another run have them."""
        if slots is not NO_SLOTS and self._keep and slots.nbytes <= _MOST_KEPT_SLOT_BYTES:
            self._kept_slots[:] = [slots]

    def _steps(self, core: CoreRange) -> Iterator[Step]:
        """The rest of a split row, whole rows, the beginning of a split row."""
        start, end = (self._place(cursor.batch, cursor.row) for cursor in core)
        row = start
        if core.start.block:
            last = core.end.block if end == start else int(self._order.blocks[start])
            yield from self._stores(start, core.start.block, last, core.start.slot)
            row += 1
        yield from self._whole_rows(row, end)
        if core.end.block and end >= row:
            yield from self._stores(end, 0, core.end.block, core.end.slot - core.end.block)

    def _place(self, batch: int, row: int) -> int:
        """Where a cursor's row stands among the planned rows."""
        if batch == len(self._order.first_in_order):
            return len(self._order.blocks)
        return int(self._order.first_in_order[batch]) + row

    def _stores(self, row: int, first: int, last: int, slot: int) -> Iterator[Store]:
        """Blocks first..last-1 of a row into slots, from `slot` on."""
        for begin in range(first, last, self._chunk):
            count = min(self._chunk, last - begin)
            items = self._items(np.array([row]), np.array([begin]), np.array([count]))
            yield Store(KeptArray(items), slot + begin - first, count)

    def _whole_rows(self, start: int, end: int) -> Iterator[Step]:
        """Planned rows start..end-1, `chunk` blocks at a time."""
        order = self._order
        rows = np.arange(start, end)
        with_keys = rows[order.blocks[start:end] != 0]
        if len(with_keys) < len(rows):
            yield Nothing(order.output_row[rows[order.blocks[start:end] == 0]])
        for group in _groups(with_keys, order.blocks[with_keys], self._chunk):
            blocks = order.blocks[group]
            if blocks[0] > self._chunk:
                yield self._long_row(int(group[0]), int(blocks[0]))
                continue
            spans = aligned_empty((len(group), 2), np.int32)
            spans[:, 0] = blocks.cumsum() - blocks
            spans[:, 1] = blocks
            items = KeptArray(self._items(group, np.zeros_like(blocks), blocks))
            yield WholeRows(items, KeptArray(spans), int(blocks.max()), some_rows(order.output_row[group]))

    def _long_row(self, row: int, blocks: int) -> LongRow:
        (fold,) = _folds([Combine(int(self._order.output_row[row]), 0, blocks)], blocks)
        return LongRow(tuple(self._stores(row, 0, blocks, 0)), fold)

    def _items(
        self, rows: npt.NDArray[np.int64], first_block: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """The work items of `blocks` blocks of each planned row, from its `first_block` on."""
        each = np.arange(len(rows)).repeat(blocks)
        items = aligned_empty((len(each), 3), np.int32)
        items[:, 0] = self._order.output_row[rows][each]
        items[:, 1] = self._order.batch[rows][each]
        items[:, 2] = np.arange(len(each)) - (blocks.cumsum() - blocks - first_block)[each]
        return items


def some_rows(numbers: npt.NDArray[np.int64]) -> Rows:
    """Rows by their numbers, at least one: a slice, which is quicker to write to, where they are in order."""
    first = int(numbers[0])
    in_order = np.array_equal(numbers, np.arange(first, first + len(numbers)))
    return slice(first, first + len(numbers)) if in_order else numbers


def _folds(combines: Iterable[Combine], most: int) -> Iterator[Fold]:
    """The second pass, at most `most` slots at a time; a row with more is alone."""
    spans = np.array([(combine.first_slot, combine.slots) for combine in combines]).reshape(-1, 2)
    rows = np.array([combine.row for combine in combines], np.int64)
    for group in _groups(np.arange(len(spans)), spans[:, 1], most):
        first, behind = int(spans[group[0], 0]), int(spans[group[-1]].sum())
        places = aligned_empty((len(group), 2), np.int32)
        places[...] = spans[group] - [first, 0]
        longest = int(places[:, 1].max())
        yield Fold(first, behind - first, KeptArray(places), longest, some_rows(rows[group]))


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
