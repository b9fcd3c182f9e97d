"""Fork after calls, between calls of other threads, and while other threads are calling."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

from common import call, result

# Python 3.12 and newer warn of forks with threads.
warnings.simplefilter("ignore", DeprecationWarning)

arguments, other = call(0), call(1)
expected, expected_other = result(arguments), result(other)


def in_child(check: bool) -> int:
    """Exit status of a child: 0 if its results are right."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs dies
        right = not check or (result(arguments), result(other)) == (expected, expected_other)
        sys.stdout.flush()
        # "exit" ends the child as an interpreter ends, "quick" as multiprocessing ends its children.
        if sys.argv[1] == "exit":
            sys.exit(0 if right else 3)
        os._exit(0 if right else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


assert in_child(check=True) == 0
assert in_child(check=False) == 0
assert result(arguments) == expected

stop = threading.Event()
wrong: list[int] = []


def keep_calling(seed: int) -> None:
    while not stop.is_set():
        if result((arguments, other)[seed]) != (expected, expected_other)[seed]:
            wrong.append(seed)


threads = [threading.Thread(target=keep_calling, args=(seed,)) for seed in (0, 1)]
for thread in threads:
    thread.start()
statuses = [in_child(check=True) for _ in range(int(sys.argv[2]))]
stop.set()
for thread in threads:
    thread.join()
assert not any(statuses), statuses
assert not wrong
assert result(other) == expected_other
