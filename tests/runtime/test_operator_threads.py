"""The operator with threads, forks, interrupts and errors: results stay right, and processes end cleanly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import LAYOUTS
from compiled import arguments_of, check, poisoned, run
from matrix.cases import find
from plain import Arguments

import qsmla
from qsmla.runtime.jobs import Check
from qsmla.runtime.lanes import Lane, LoadedKernel
from qsmla.runtime.workers import pool, worker_count

PROCESSES = Path(__file__).parent / "processes"
by_workers = pytest.mark.parametrize("workers", ["1", "2", "5"])


def eight_calls() -> list[Arguments]:
    """Different kernels and shapes."""
    kernels = [
        find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=mode, sparse_block_size=1)
        for layouts in LAYOUTS
        for mode in (0, 3)
    ]
    return [
        poisoned(
            arguments_of(
                spec,
                query_counts=(1 + n % 3, n % 2, 2),
                kv_counts=(300 + n, 40, 600),
                selected=400 + n,
                seed=n,
            )
        )
        for n, spec in enumerate(kernels)
    ]


def in_threads(work: list[Callable[[], None]]) -> None:
    """Run all at once; raise what one of them raised."""
    barrier = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def begin(one: Callable[[], None]) -> None:
        try:
            barrier.wait()
            one()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def as_bytes(arguments: Arguments) -> bytes:
    return b"".join(array.tobytes() for array in run(arguments))


@by_workers
def test_eight_threads_with_different_kernels(workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
    calls = eight_calls()
    expected = [b"".join(array.tobytes() for array in check(arguments)) for arguments in calls]

    def repeat(n: int) -> Callable[[], None]:
        def work() -> None:
            for turn in range(4):
                which = (n + turn) % 8
                assert as_bytes(calls[which]) == expected[which]

        return work

    in_threads([repeat(n) for n in range(8)])


def test_threads_share_one_output() -> None:
    """Each fills its own part of one array."""
    arguments = eight_calls()[0]
    query = arguments["query"]
    out = np.full((8, *query.shape[:-1], 512), 7.0, query.dtype)
    expected, _ = run(arguments)
    in_threads([lambda n=n: run(arguments, out=out[n]) for n in range(8)])
    for one in out:
        assert one.tobytes() == expected.tobytes()


# Errors.


@by_workers
def test_a_failed_call_leaves_the_workers_usable(workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-th chunk of a call raises."""
    monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
    arguments = arguments_of(
        find(heads=128, sparse_block_size=1), query_counts=(4, 4), kv_counts=(900, 900), selected=900
    )
    expected = as_bytes(arguments)
    invoke = LoadedKernel._call

    def run_with_a_failure(nth: int) -> None:
        numbers = iter(range(1000))

        def invoke_or_fail(*given: Any) -> Any:
            if next(numbers) == nth:
                raise MemoryError(f"chunk {nth}")
            return invoke(*given)

        with monkeypatch.context() as patch:
            patch.setattr(LoadedKernel, "_call", invoke_or_fail)
            run(arguments)

    for nth in range(4):
        with pytest.raises(MemoryError, match=f"^chunk {nth}$"):
            run_with_a_failure(nth)
        assert as_bytes(arguments) == expected
    run_with_a_failure(999)


@by_workers
def test_the_first_error_of_several_is_raised_and_the_other_tasks_end(
    workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
    done: list[int] = []

    def task(n: int) -> Callable[[Lane, Check], None]:
        def work(lane: Lane, check: Check) -> None:
            check()
            if n in (3, 4):
                raise LookupError(str(n))
            done.append(n)

        return work

    with pytest.raises(LookupError, match=r"^[34]$"):
        pool().run([task(n) for n in range(50)])
    assert len(done) < 48
    pool().run([task(n) for n in range(100, 150)])
    assert sorted(n for n in done if n >= 100) == list(range(100, 150))


def test_a_refused_call_between_others_in_other_threads() -> None:
    calls = eight_calls()[:4]
    expected = [as_bytes(arguments) for arguments in calls]

    def good(n: int) -> None:
        for _ in range(5):
            assert as_bytes(calls[n]) == expected[n]

    def bad(n: int) -> None:
        for _ in range(20):
            with pytest.raises(ValueError, match=r"^scale_value"):
                run(calls[n] | {"scale_value": np.inf})

    in_threads([lambda n=n, f=f: f(n) for n in range(4) for f in (good, bad)])


# How many workers.


@pytest.mark.parametrize("text", ["0", "-1", "133", "two", "", " ", "1.5", "+2", "1e1", "0x2", "2,"])
def test_a_number_of_workers_that_is_not_allowed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = eight_calls()[0]
    query = arguments["query"]
    out = np.full((*query.shape[:-1], 512), 7.0, query.dtype)
    monkeypatch.setenv("QSMLA_NUM_WORKERS", text)
    for call in (worker_count, lambda: run(arguments, out=out), lambda: qsmla.plan(**arguments)):
        with pytest.raises(ValueError, match=re.escape(f"QSMLA_NUM_WORKERS is {text!r}; allowed: 1..132")):
            call()
    assert (out.astype(np.float32) == 7).all()


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("132", 132), (" 2 ", 2), ("007", 7)])
def test_a_number_of_workers(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", text)
    assert worker_count() == count
    if count < 10:
        arguments = eight_calls()[0]
        expected = as_bytes(arguments)
        decoded = qsmla.Partition.decode(qsmla.plan(**arguments))
        assert decoded.num_cores == count
        assert as_bytes(arguments) == expected


def test_the_number_of_workers_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QSMLA_NUM_WORKERS", raising=False)
    assert 1 <= worker_count() <= min(132, len(os.sched_getaffinity(0)))


# Processes of their own.


def process(script: str, *arguments: str, workers: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "QSMLA_NUM_WORKERS"}
    if workers is not None:
        environment["QSMLA_NUM_WORKERS"] = workers
    return subprocess.run(
        [sys.executable, PROCESSES / script, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment,
    )


def assert_clean(finished: subprocess.CompletedProcess[str]) -> None:
    """No error, no warning of leaks or of anything else."""
    assert (finished.stderr, finished.stdout, finished.returncode) == ("", "", 0)


@pytest.mark.parametrize("workers", ["1", "2", "5", None])
@pytest.mark.parametrize("how", ["alone", "threads", "unjoined", "garbage"])
def test_a_process_ends_without_leak_warnings(workers: str | None, how: str) -> None:
    assert_clean(process("leave.py", how, workers=workers))


@by_workers
def test_calls_do_not_notice_lanes_that_open(workers: str) -> None:
    """The pools of other targets open theirs at any time."""
    assert_clean(process("open_lanes.py", workers=workers))


@by_workers
@pytest.mark.parametrize("how", ["exit", "quick"])
def test_a_fork_does_not_hang(workers: str, how: str) -> None:
    """After calls, and five times while two threads are calling."""
    assert_clean(process("fork.py", how, "5", workers=workers))


@by_workers
def test_an_interrupt_ends_a_long_call_and_the_next_one_works(workers: str) -> None:
    assert_clean(process("interrupt.py", workers=workers))


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_moment_is_bad_for_an_interrupt(workers: str, seed: str) -> None:
    assert_clean(process("interrupt_often.py", seed, workers=workers))


def test_a_copied_cache_warns_once_and_says_how_to_avoid_it() -> None:
    finished = process("copied_cache.py")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.count("RuntimeWarning: key (1 MiB) is copied at every call") == 1
    assert "qsmla.aligned_empty" in finished.stderr
