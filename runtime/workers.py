"""Worker threads, each with a lane of its own, that do the cores of a partition.

On CPUs there is a lane for each core. A GPU is one lane, which does core after core.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from iree._runtime_libs._runtime import disable_leak_checker

from qsmla.compiler.targets import Target
from qsmla.runtime.devices import GpuDevice
from qsmla.runtime.jobs import Job, Task, nothing_else
from qsmla.runtime.lanes import Lane

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

ENVIRONMENT_VARIABLE: Final = "QSMLA_NUM_WORKERS"
MAX_WORKERS: Final = 132
"""The cores a partition can name."""

_THREAD_NAME: Final = "qsmla-worker-"
_STACK_BYTES: Final = 2 << 20
"""Stack of a thread that computes: kernels keep a block of keys there, 0.7 MB with what goes with it."""


def worker_count() -> int:
    """How many workers share a call: QSMLA_NUM_WORKERS, else the physical cores this process may use.

    Raises:
        ValueError: QSMLA_NUM_WORKERS is not a number in 1..132.
    """
    text = os.environ.get(ENVIRONMENT_VARIABLE)
    return min(_physical_cores(), MAX_WORKERS) if text is None else _count_in(text)


@functools.lru_cache(maxsize=16)
def _count_in(text: str) -> int:
    digits = text.strip()
    # Other scripts have digits too.
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 9
    if not is_number or not 1 <= int(digits) <= MAX_WORKERS:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text[:40]!r}; allowed: 1..{MAX_WORKERS}")
    return int(digits)


@functools.cache
def _physical_cores() -> int:
    """Cores in this process's affinity mask, hardware threads of one core counted once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for processor in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else str(processor))
    return len(cores)


def _has_stack() -> bool:
    """Whether this thread's stack is large enough to compute on, as far as Python can tell."""
    size = 0 if threading.current_thread() is threading.main_thread() else threading.stack_size()
    if size == 0 and resource is not None:
        soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
        size = 0 if soft == resource.RLIM_INFINITY else soft
    return size == 0 or size >= _STACK_BYTES


class _Crew:
    """Threads with a lane each, and the queue that they take jobs from until it is ended."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.threads: set[threading.Thread] = set()

    def serve(self, open_lane: Callable[[], Lane]) -> None:
        """What each thread does."""
        # Not left to whoever starts it: an interrupt may come to that one first.
        self.threads.add(threading.current_thread())
        own: list[Lane] = []

        def lane() -> Lane:
            if not own:
                own.append(open_lane())
            return own[0]

        _own.crew, _own.lane = self, lane
        while (job := self.jobs.get()) is not None:
            job.help(lane)
            # A job holds the caller's arrays: not until the next one comes.
            del job
        # A call may have left a job behind the end.
        with contextlib.suppress(queue.Empty):
            while True:
                late = self.jobs.get_nowait()
                if late is not None:
                    late.help(lane)
                del late
        for opened in own:
            opened.close()
        # The end is for all of them, however many there are.
        self.jobs.put(None)


_own: Final = threading.local()
"""Of a helper thread: `crew`, and `lane`, which gives its lane."""


class WorkerPool:
    """`count` lanes: one for whoever calls, the others with a thread each, started when first needed.

    Args:
        count: 1..132.
        open_lane: makes a lane; called in the thread that drives it.
    """

    def __init__(self, count: int, open_lane: Callable[[], Lane] = Lane) -> None:
        self.count = count
        self._open_lane = open_lane
        self._crew = _Crew()
        self._starting = threading.Lock()
        self._caller_lane: Lane | None = None
        # The thread that has it may call again, in a signal handler or a finaliser in the midst of a call.
        self._caller_free = threading.RLock()
        self._caller_thread: int | None = None

    def run(self, tasks: Sequence[Task]) -> None:
        """Do all tasks, each on some lane, and return when they are done.

        Raises:
            Exception: what a task raised, the first if there are several; the workers stay usable.
            RuntimeError: this thread's stack is too small to compute on, and no other thread can be started.
        """
        if getattr(_own, "crew", None) is self._crew:
            # A finaliser calls in the midst of a helper's task, and the caller waits for that one.
            for task in tasks:
                task(_own.lane(), nothing_else)
            return
        if _ends_before_it():
            _stay()
        if not tasks:
            return
        own_thread = self._open_lane is not Lane or _has_stack()
        helpers = min(len(tasks), self.count) - own_thread
        if own_thread and _exit_has_closed:
            # Nobody would end them.
            helpers = 0
        if own_thread and len(tasks) == 1:
            self._run_here(tasks[0])
            return
        job = Job(tasks)
        try:
            if helpers:
                helpers = self._ask(job, helpers, self.count - own_thread)
                if not helpers and not own_thread:
                    raise RuntimeError(f"no thread with a stack of {_STACK_BYTES >> 20} MiB can be started")
            # With helpers, a caller that finds its lane taken leaves the work to them; without, it waits.
            taken = self._caller_thread not in (None, threading.get_ident())
            if own_thread and not (helpers and taken):
                self._here(lambda: job.work(self._caller))
            job.wait()
        except BaseException as raised:
            # Helpers may still use the caller's arrays.
            job.fail(raised)
            with contextlib.suppress(BaseException):
                job.wait()
            raise

    def _run_here(self, task: Task) -> None:
        """A job of one task, which needs nobody to be told or waited for."""
        try:
            self._here(lambda: task(self._caller(), nothing_else))
        except BaseException as raised:
            traceback.clear_frames(raised.__traceback__)
            raise

    def _here(self, do: Callable[[], None]) -> None:
        """Do something on the caller's lane, and say meanwhile whose it is: others may do without it."""
        with self._caller_free:
            before, self._caller_thread = self._caller_thread, threading.get_ident()
            try:
                if not _ends_before_it():
                    return do()
            finally:
                self._caller_thread = before
        _stay()

    def close(self) -> None:
        """End the threads and let go of the lanes; waits for running tasks.

        In the midst of a call of this same thread, as from a signal handler, it leaves all to a later time.
        """
        if self._caller_thread == threading.get_ident():
            return
        _open_pools.discard(self)
        with self._starting:
            crew, self._crew = self._crew, _Crew()
            crew.jobs.put(None)
            for thread in list(crew.threads):
                thread.join()
        with self._caller_free:
            if self._caller_lane is not None:
                self._caller_lane.close()
                self._caller_lane = None

    def _caller(self) -> Lane:
        if self._caller_lane is None:
            _open_pools.add(self)
            self._caller_lane = self._open_lane()
        return self._caller_lane

    def _ask(self, job: Job, helpers: int, threads: int) -> int:
        """Have up to `helpers` of `threads` threads help with the job; how many will."""
        while True:
            crew = self._start(threads)
            helpers = min(helpers, len(crew.threads))
            for _ in range(helpers):
                crew.jobs.put(job)
            # The pool may have been closed meanwhile, and its threads ended before they saw the job.
            if crew is self._crew:
                return helpers

    def _start(self, threads: int) -> _Crew:
        """The crew, with that many threads at the least, unless no more can be started."""
        with self._starting:
            crew = self._crew
            while len(crew.threads) < threads:
                _open_pools.add(self)
                name = f"{_THREAD_NAME}{len(crew.threads) + 1}"
                thread = threading.Thread(target=crew.serve, args=(self._open_lane,), name=name, daemon=True)
                stack_of_others = threading.stack_size(_STACK_BYTES)
                try:
                    thread.start()
                except RuntimeError:
                    # The interpreter ends (from Python 3.12 on it refuses), or the system has no more.
                    break
                finally:
                    threading.stack_size(stack_of_others)
                crew.threads.add(thread)
            return crew


_open_pools: set[WorkerPool] = set()
"""Those with a thread or a lane; a call may still use one that is not in `_pools` any more."""
_pools: dict[int | str, WorkerPool] = {}
_pools_guard = threading.Lock()


def pool(target: Target | None = None) -> WorkerPool:
    """The lanes for a target: as many as `worker_count` says on CPUs, which None stands for too, else one."""
    key = worker_count() if target is None or target.kind == "llvm-cpu" else target.label
    existing = _pools.get(key)
    if existing is not None:
        return existing
    with _pools_guard:
        if isinstance(key, int) or target is None:
            made = WorkerPool(worker_count())
        else:
            made = WorkerPool(1, functools.partial(Lane, functools.partial(GpuDevice, target)))
        if _exit_has_closed:
            _keep_for_good(made)
        return _pools.setdefault(key, made)


_before_closing: list[Callable[[], None]] = []


def before_closing(release: Callable[[], None]) -> Callable[[], None]:
    """Have `release` called before the lanes go: no buffer may outlive its device."""
    _before_closing.append(release)
    return release


def close_all() -> None:
    """Close every pool; the next call starts anew."""
    if any(thread.daemon and not thread.name.startswith(_THREAD_NAME) for thread in threading.enumerate()):
        # Daemon threads of the user's may be calling to the very end, and hold what they call with.
        disable_leak_checker()
    with _pools_guard:
        for release in _before_closing:
            release()
        for opened in list(_open_pools):
            opened.close()
        _pools.clear()


def _forget_after_fork() -> None:
    """A child has none of its parent's threads, and locks in whatever state they were: begin afresh."""
    global _pools_guard
    _pools_guard = threading.Lock()
    if _open_pools:
        # Closing a device waits for threads that are not here: the parent's lanes stay as they are.
        _keep_for_good(list(_open_pools))
    _open_pools.clear()
    _pools.clear()


def _keep_for_good(kept: object) -> None:
    """What nobody will close stays as it is, and nobody needs to hear of that when the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    disable_leak_checker()


def _ends_before_it() -> bool:
    """Whether the interpreter ends and this is no thread that it waits for."""
    return _exit_begins and threading.current_thread() is not threading.main_thread()


def _stay() -> NoReturn:
    """Wait for the end here: it would come inside IREE, whose C++ a thread that is ended cannot leave."""
    end = threading.Lock()
    while True:
        end.acquire()


_exit_begins = False
"""Whether the last threads that the interpreter waits for are done."""
_exit_has_closed = False
"""Whether a call comes from a handler of the interpreter's end that runs behind the one here.

Such a call works, in the thread that makes it, on lanes that stay for good.
"""


def _close_at_exit() -> None:
    global _exit_begins, _exit_has_closed
    _exit_begins = True
    close_all()
    _exit_has_closed = True


# Daemon threads that the interpreter's end finds alive would leave IREE's objects behind.
atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
