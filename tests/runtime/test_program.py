"""Programs: each block of each row is done once, by the core that the partition says, to where it belongs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsmla.runtime.kept_plans import KeptPlan, own_plan
from qsmla.runtime.partition import Partition, plan_rows
from qsmla.runtime.program import LongRow, Nothing, Program, RowOrder, Store, WholeRows, some_rows
from qsmla.runtime.slots import NO_SLOTS

rows_of_batches = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=4)


GAP = 2
"""Rows of the output between those of a batch and the next."""
EVERYWHERE = np.arange(100)


def order_of(batches: list[list[int]]) -> RowOrder:
    blocks = np.array([block for batch in batches for block in batch], np.int64)
    counts = np.array([len(batch) for batch in batches])
    batch = np.arange(len(batches), dtype=np.int32).repeat(counts)
    return RowOrder(np.arange(len(blocks)) + GAP * batch, batch, blocks, counts.cumsum() - counts)


def cut(batches: list[list[int]], cores: int) -> Partition:
    order, counts = order_of(batches), np.array([len(batch) for batch in batches])
    first_rows = order.first_in_order + GAP * np.arange(len(batches))
    return plan_rows(order.blocks, counts, cores, 0, first_rows=first_rows)


@settings(max_examples=200, deadline=None)
@given(rows_of_batches, st.integers(1, 5), st.integers(1, 12), st.booleans())
def test_every_block_is_done_once(batches: list[list[int]], cores: int, chunk: int, keep: bool) -> None:
    order = order_of(batches)
    partition = cut(batches, cores)
    program = Program(order, partition, chunk=chunk, fold_chunk=max(1, partition.slots), keep=keep)
    done: Counter[tuple[int, ...]] = Counter()
    put: Counter[int] = Counter()
    filled: list[int] = []
    for core in program.cores:
        for step in program.steps(core):
            match step:
                case Nothing():
                    put.update(step.output_rows.tolist())
                case WholeRows():
                    items = step.items.array
                    assert len(items) <= chunk
                    done.update(map(tuple, items.tolist()))
                    rows = EVERYWHERE[step.output_rows]
                    put.update(rows.tolist())
                    spans = step.spans.array
                    assert step.longest == spans[:, 1].max()
                    for row, (first, count) in zip(rows, spans.tolist(), strict=True):
                        assert items[first : first + count, 0].tolist() == [row] * count
                        assert items[first : first + count, 2].tolist() == list(range(count))
                case Store():
                    assert len(step.items.array) == step.slots <= chunk
                    done.update(map(tuple, step.items.array.tolist()))
                    filled += range(step.first_slot, step.first_slot + step.slots)
                case LongRow():
                    for store in step.stores:
                        done.update(map(tuple, store.items.array.tolist()))
                    assert sum(store.slots for store in step.stores) == step.fold.slots > chunk
                    put.update(EVERYWHERE[step.fold.output_rows].tolist())
    for fold in program.folds:
        assert (fold.first_slot, fold.slots) == (0, partition.slots)
        put.update(EVERYWHERE[fold.output_rows].tolist())
        assert fold.spans.array.tolist() == [list(combine[1:]) for combine in partition.combines]
    assert sorted(filled) == list(range(partition.slots))
    expected = [
        (int(order.output_row[row]), int(order.batch[row]), block)
        for row, blocks in enumerate(order.blocks)
        for block in range(blocks)
    ]
    assert done == Counter(expected)
    assert put == Counter(order.output_row.tolist())


def test_slots_are_taken_and_given_back() -> None:
    program = Program(order_of([[7]]), cut([[7]], 2), chunk=4, fold_chunk=7, keep=True)
    first, second = program.take_slots(2), program.take_slots(2)
    assert first is not second
    program.give_back(first)
    assert program.take_slots(2) is first
    program.give_back(first)
    assert program.take_slots(3).heads == 3
    whole = Program(order_of([[1]]), cut([[1]], 2), chunk=4, fold_chunk=1, keep=True)
    assert whole.take_slots(2) is NO_SLOTS


def test_programs_are_kept_for_a_kind_of_target_and_heads() -> None:
    blocks, counts = np.array([3, 5]), np.array([2])
    plan = own_plan(blocks, counts, 2)
    order = order_of([[3, 5]])
    kept = plan.program(lambda: order, "llvm-cpu", 4)
    assert plan.program(lambda: order, "llvm-cpu", 4) is kept
    assert plan.program(lambda: order, "llvm-cpu", 8) is not kept
    assert plan.program(lambda: order, "vulkan", 4) is not kept
    once = KeptPlan(plan.partition, keep=False)
    assert once.program(lambda: order, "llvm-cpu", 4) is not once.program(lambda: order, "llvm-cpu", 4)


@pytest.mark.parametrize(
    ("numbers", "expected"), [([3], slice(3, 4)), ([3, 4, 5], slice(3, 6)), ([3, 5], None), ([4, 3], None)]
)
def test_rows_in_order_are_a_slice(numbers: list[int], expected: slice | None) -> None:
    rows = np.array(numbers)
    found = some_rows(rows)
    assert found is rows if expected is None else found == expected
