"""The tasks of one call, done by whichever threads are free."""

from __future__ import annotations

import contextlib
import queue
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from qsmla.runtime.lanes import Lane

_LOOK_AGAIN_S: Final = 0.05

Check = Callable[[], None]
Task = Callable[[Lane, Check], None]
"""Work for a lane; a long task calls the check now and then, which raises once the whole job has failed."""


class Job:
    """The tasks of one call; threads take them from the left until none is left.

    An interrupt may come between any two steps of the main thread, and only there: so nothing but helper
    threads is counted, by themselves, and the main thread's own part is over when it waits. It holds no lock
    then, which an interrupt would leave held, or released once too often.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = deque(tasks)
        self._begun: deque[None] = deque()
        self._ended: deque[None] = deque()
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._error: BaseException | None = None

    def work(self, lane: Callable[[], Lane]) -> None:
        """Do tasks on the lane that `lane` gives, as long as there are any."""
        try:
            while True:
                try:
                    task = self._tasks.popleft()
                except IndexError:
                    return
                self._check()
                task(lane(), self._check)
        except BaseException as raised:
            # What a traceback's frames hold of a device must not outlive it.
            traceback.clear_frames(raised.__traceback__)
            self.fail(raised)

    def help(self, lane: Callable[[], Lane]) -> None:
        """The same, in a helper thread, which the caller waits for."""
        # Before a task is taken: whoever sees that none is left knows of all who have one.
        self._begun.append(None)
        self.work(lane)
        self._ended.append(None)
        self._news.put(None)

    def fail(self, error: BaseException) -> None:
        """Take the tasks away; those that have begun end at their next check. The first error counts."""
        self._error = self._error or error
        self._tasks.clear()

    def wait(self) -> None:
        """Return when no helper is at work any more; raise the first error that a task raised."""
        while self._tasks or len(self._ended) < len(self._begun):
            # An interrupt may take the news and not see it: so they are looked for in any case.
            with contextlib.suppress(queue.Empty):
                self._news.get(timeout=_LOOK_AGAIN_S)
        if self._error is not None:
            try:
                raise self._error
            finally:
                # An error whose traceback holds the error is garbage that holds the caller's arrays.
                self._error = None

    def _check(self) -> None:
        if self._error is not None:
            raise _AbandonedError


def nothing_else() -> None:
    """The check of a task that is the whole job."""


class _AbandonedError(Exception):
    """Another task of the job has failed."""
