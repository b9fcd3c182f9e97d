"""Worker threads by themselves: as many as there should be, at work at the same time, and gone at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qsmla.runtime import workers
from qsmla.runtime.jobs import Check
from qsmla.runtime.lanes import Lane
from qsmla.runtime.workers import WorkerPool, pool, worker_count

AT_EXIT = Path(__file__).parent / "processes" / "at_exit.py"


@pytest.mark.parametrize("count", [2, 5])
def test_tasks_are_done_at_the_same_time(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None ends before all have begun, each in a thread and on a lane of its own."""
    monkeypatch.setenv("QSMLA_NUM_WORKERS", str(count))
    all_of_them = threading.Barrier(count)
    names: list[str] = []
    lanes: list[Lane] = []

    def task(lane: Lane, check: Check) -> None:
        all_of_them.wait(timeout=20)
        names.append(threading.current_thread().name)
        lanes.append(lane)

    pool().run([task] * count)
    assert sorted(names) == sorted(
        [threading.current_thread().name, *(f"qsmla-worker-{n}" for n in range(1, count))]
    )
    assert len(set(lanes)) == count


def test_one_worker_does_all_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "1")
    threads: list[int] = []
    pool().run([lambda lane, check: threads.append(threading.get_ident())] * 5)
    assert threads == [threading.get_ident()] * 5


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (1, 4), (4, 1), (4, 4)])
def test_a_call_in_the_midst_of_a_call(
    count: int, outer: int, inner: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may make one, in the main thread, and a finaliser in any."""
    monkeypatch.setenv("QSMLA_NUM_WORKERS", str(count))
    done: list[int] = []
    all_busy = threading.Barrier(min(count, outer))

    def nested(lane: Lane, check: Check) -> None:
        done.append(2)

    def task(lane: Lane, check: Check) -> None:
        if len(done) < count:
            done.append(1)
            all_busy.wait(timeout=20)
        pool().run([nested] * inner)

    pool().run([task] * outer)
    assert done.count(2) == outer * inner
    pool().run([nested] * 5)
    assert done.count(2) == outer * inner + 5


def test_closing_in_the_midst_of_a_call_is_left_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "1")
    used = pool()

    def task(lane: Lane, check: Check) -> None:
        workers.close_all()
        assert lane.device.hal is not None

    used.run([task])
    assert pool() is not used
    used.close()
    assert used not in workers._open_pools


def nothing(lane: Lane, check: Check) -> None:
    """A task."""


def alive() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("qsmla-worker-")}


def test_an_interrupt_while_a_thread_starts_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the thread runs already, and whoever started it does not know yet."""
    before = alive()
    wait = threading.Event.wait
    interrupts: list[int] = []

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        result = wait(event, timeout)
        if not interrupts and sys._getframe(1).f_code.co_name == "start":
            interrupts.append(1)
            raise KeyboardInterrupt
        return result

    lanes = WorkerPool(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lanes.run([nothing] * 3)
    done: list[int] = []
    lanes.run([lambda lane, check: done.append(1)] * 3)
    assert len(done) == 3
    closing = threading.Thread(target=lanes.close, daemon=True)
    closing.start()
    closing.join(timeout=20)
    assert not closing.is_alive()
    assert alive() <= before


def test_pools_that_are_closed_while_others_call_leave_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "3")
    over = threading.Event()
    counts = {"asked": 0, "done": 0}
    guard = threading.Lock()

    def task(lane: Lane, check: Check) -> None:
        with guard:
            counts["done"] += 1

    def call() -> None:
        while not over.is_set():
            lanes = pool()
            for _ in range(2):
                with guard:
                    counts["asked"] += 3
                lanes.run([task] * 3)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for _ in range(60):
        workers.close_all()
        over.wait(0.005)
    over.set()
    for caller in callers:
        caller.join(timeout=20)
        assert not caller.is_alive()
    workers.close_all()
    assert counts["done"] == counts["asked"] > 0
    assert alive() == set()


@pytest.mark.parametrize("started", [0, 1])
def test_threads_that_cannot_be_started_are_done_without(
    started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the interpreter ends, from Python 3.12 on."""
    start = threading.Thread.start
    left = iter(range(started))

    def refuse(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't create new thread at interpreter shutdown")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    lanes = WorkerPool(4)
    done: list[str] = []
    both = threading.Barrier(1 + started)

    def task(lane: Lane, check: Check) -> None:
        both.wait(timeout=20)
        done.append(threading.current_thread().name)

    lanes.run([task] * 4)
    assert len(done) == 4
    assert len(set(done)) == 1 + started
    lanes.close()


def test_a_stack_too_small_and_no_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(workers, "_has_stack", lambda: False)
    done: list[int] = []
    with pytest.raises(RuntimeError, match="no thread with a stack of 2 MiB can be started"):
        WorkerPool(2).run([lambda lane, check: done.append(1)] * 2)
    assert done == []


@pytest.mark.parametrize("text", ["\uff12", "\u0663", "1\uff12", "\u0967", "\u00b2", "\uff11\uff13\uff12"])
def test_digits_of_other_scripts_are_no_number_of_workers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSMLA_NUM_WORKERS", text)
    with pytest.raises(ValueError, match=re.escape(f"QSMLA_NUM_WORKERS is {text!r}; allowed: 1..132")):
        worker_count()


@pytest.mark.parametrize("count", ["1", "2", "5"])
def test_calls_while_the_interpreter_ends(count: str) -> None:
    """In handlers that run before the package's own closes the lanes, and in one that runs behind it."""
    finished = subprocess.run(
        [sys.executable, AT_EXIT],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"QSMLA_NUM_WORKERS": count},
    )
    assert (finished.stderr, finished.stdout, finished.returncode) == ("", "", 0)


@pytest.mark.parametrize("count", ["1", "2"])
def test_daemon_threads_that_call_to_the_very_end(count: str) -> None:
    """The end of the interpreter would meet them inside IREE, and abort the process."""
    environment = os.environ | {"QSMLA_NUM_WORKERS": count}
    for _ in range(4):
        command = [sys.executable, AT_EXIT.with_name("daemons_at_exit.py")]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
