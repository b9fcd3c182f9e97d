"""Interrupt calls at random moments: none hangs, none loses its lane, and calls in between are right."""

from __future__ import annotations

import random
import signal
import sys
import time

from common import call, result


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)
arguments = call(rows=2)
expected = result(arguments)
start = time.monotonic()
result(arguments)
full = time.monotonic() - start
moments = random.Random(int(sys.argv[1]))
interrupted = 0
for turn in range(100):
    try:
        signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-4, full))
        result(arguments)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    if turn % 10 == 0:
        assert result(arguments) == expected
assert interrupted > 10
assert result(arguments) == expected
