"""Calls run by the plan that is handed in: each core's key blocks, the split rows, and the threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import iree.runtime as rt
import numpy as np
import numpy.typing as npt
import pytest
from compiled import arguments_of, run
from matrix.cases import find
from mla_calls import metadata_arguments, mla_arguments
from mla_calls import run as run_mla
from plain import Arguments, plain_tokens, rows_of

import qsmla
from qsmla.runtime.jobs import Check, Task
from qsmla.runtime.lanes import Lane, LoadedKernel
from qsmla.runtime.workers import WorkerPool

from .plain_planner import plain_lengths, plain_row_keys

CORES = (1, 2, 3, 8, 64)
Item = tuple[int, int, int]
"""A row's place in the output, its batch, and a key block in it."""


class Done(NamedTuple):
    """What a core did, as its kernel was told."""

    alone: list[Item]
    """Of rows that it does alone."""
    shared: list[Item]
    """Of rows whose partial results it stores."""
    folds: list[int]
    """Partial results of each row that was folded from stored ones."""


class Planned(NamedTuple):
    """A call, its rows in the plan's order, and what runs it by a plan."""

    rows: list[tuple[int, int, int, int]]
    """Batch, row in the batch, place in the output, key blocks."""
    plan: Callable[[int], npt.NDArray[np.int32]]
    run: Callable[..., Any]


def kv_call() -> Planned:
    arguments = arguments_of(
        find(heads=1, sparse_block_size=1), query_counts=(2, 0, 3), kv_counts=(1300, 5, 700), selected=1200
    )
    return Planned(
        kv_rows(arguments), functools.partial(kv_plan, arguments), functools.partial(run, arguments)
    )


def kv_rows(arguments: Arguments) -> list[tuple[int, int, int, int]]:
    width = arguments["query"].shape[1]
    rows = []
    for place, b, s in rows_of(arguments):
        flat = place[0] if len(place) == 1 else place[0] * width + place[1]
        rows.append((b, s, flat, -(-len(plain_tokens(arguments, place, b, s)) // 256)))
    return rows


def kv_plan(arguments: Arguments, num_cores: int) -> npt.NDArray[np.int32]:
    return qsmla.plan(**arguments, num_cores=num_cores)


def mla_call() -> Planned:
    arguments = mla_arguments(
        query_counts=(3, 2), ori_counts=(900, 300), cmp_counts=(1500, 40), cmp_topk=1300, ori_mask_mode=3
    )
    lengths = metadata_arguments(arguments)
    query, ori, cmp, residual, first_rows = plain_lengths(lengths)
    rows = []
    for batch in range(len(query)):
        for row in range(query[batch]):
            keys = plain_row_keys(lengths, query[batch], ori[batch], cmp[batch], residual[batch], row)
            rows.append((batch, row, first_rows[batch] + row, sum(-(-count // 256) for count in keys)))
    return Planned(rows, functools.partial(mla_plan, lengths), functools.partial(run_mla, arguments))


def mla_plan(lengths: Arguments, num_cores: int) -> npt.NDArray[np.int32]:
    return qsmla.quant_sparse_flash_mla_metadata(**lengths, num_cores=num_cores)


CALLS = {"kv_quant_sparse_flash_attention": kv_call, "quant_sparse_flash_mla": mla_call}
by_operator = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[list[Done]]:
    """What every task did of each `WorkerPool.run` from now on, in order."""
    runs: list[list[Done]] = []
    here = threading.local()
    pool_run = WorkerPool.run

    def recording_run(pool: WorkerPool, tasks: Sequence[Task]) -> None:
        runs.append([Done([], [], []) for _ in tasks])

        def recorded(task: Task, record: Done) -> Task:
            def work(lane: Lane, check: Check) -> None:
                here.record = record
                task(lane, check)

            return work

        pool_run(pool, [recorded(*pair) for pair in zip(tasks, runs[-1], strict=True)])

    def record(name: str, take: Callable[[npt.NDArray[np.int32]], None], columns: int) -> None:
        function = getattr(LoadedKernel, name)

        def recording(kernel: LoadedKernel, *arguments: Any) -> Any:
            views = [one for one in arguments if isinstance(one, rt.HalBufferView)]
            (told,) = (view for view in views if len(view.shape) == 2 and view.shape[1] == columns)
            take(told.map().asarray(told.shape, np.dtype(np.int32)))
            return function(kernel, *arguments)

        monkeypatch.setattr(LoadedKernel, name, recording)

    monkeypatch.setattr(WorkerPool, "run", recording_run)
    record("attend_rows", lambda items: here.record.alone.extend(map(tuple, items.tolist())), 3)
    for name in {"attend", "attend_into"} & vars(LoadedKernel).keys():
        record(name, lambda items: here.record.shared.extend(map(tuple, items.tolist())), 3)
    record("fold", lambda spans: here.record.folds.extend(spans[:, 1].tolist()), 2)
    return runs


@by_operator
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("num_cores", CORES)
def test_each_core_does_its_range(
    call: Callable[[], Planned],
    num_cores: int,
    workers: str,
    done: list[list[Done]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
    planned = call()
    words = planned.plan(num_cores)
    partition = qsmla.Partition.decode(words)
    planned.run()
    done.clear()
    planned.run(metadata=words)
    cores, *folded = done
    ranges = [core for core in partition.ranges if not core.empty]
    assert len(cores) == len(ranges) <= partition.num_cores == num_cores
    split = set(partition.split_rows)
    for core, (start, end) in zip(cores, ranges, strict=True):
        mine = [
            (place, batch, block)
            for batch, row, place, blocks in planned.rows
            for block in range(blocks)
            if start[:3] <= (batch, row, block) < end[:3]
        ]
        assert sorted(core.alone) == [item for item in mine if item[0] not in split]
        assert sorted(core.shared) == [item for item in mine if item[0] in split]
        assert core.folds == []
    assert split or num_cores < 3
    assert [record.folds for run in folded for record in run] == (
        [[combine.slots for combine in partition.combines]] if split else []
    )


def test_a_call_whose_ids_occur_several_times_is_cut_over_as_many_cores(
    done: list[list[Done]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows have more key blocks than metadata counts."""
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "1")
    arguments = mla_arguments(cmp_counts=(3, 2), cmp_topk=700)
    arguments["cmp_sparse_indices"][...] = np.arange(700) % 4
    words = mla_plan(metadata_arguments(arguments), 4)
    assert qsmla.Partition.decode(words).total_load == 10
    run_mla(arguments, metadata=words)
    # One block of ori, and of 700 ids those below 3 or below 2: rows of 4, 4, 4, 3 and 3 blocks.
    items = [{*core.alone, *core.shared} for core in done[0]]
    assert [len(mine) for mine in items] == [4, 4, 5, 5]
    assert len(set.union(*items)) == 18


@by_operator
def test_two_cores_are_done_in_two_threads(
    call: Callable[[], Planned], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same time: neither goes on before the other has begun."""
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "2")
    planned = call()
    words = planned.plan(2)
    expected = planned.run()
    both, names = threading.Barrier(2), set()
    pool_run = WorkerPool.run

    def run_at_the_same_time(pool: WorkerPool, tasks: Sequence[Task]) -> None:
        def together(task: Task) -> Task:
            def work(lane: Lane, check: Check) -> None:
                both.wait(timeout=20)
                names.add(threading.current_thread().name)
                task(lane, check)

            return work

        pool_run(pool, [together(task) for task in tasks] if len(tasks) == 2 else tasks)

    monkeypatch.setattr(WorkerPool, "run", run_at_the_same_time)
    found = planned.run(metadata=words)
    assert names == {threading.current_thread().name, "qsmla-worker-1"}
    for left, right in zip(found, expected, strict=True):
        assert left.tobytes() == right.tobytes()
