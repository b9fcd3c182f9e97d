"""Interrupt a long call as Ctrl-C does: it ends early, and the next call is right."""

from __future__ import annotations

import os
import signal
import threading
import time

from common import call, result

arguments = call()
expected = result(arguments)
longer = call(rows=40)
start = time.monotonic()
result(longer)
full = 10 * (time.monotonic() - start)

longest = call(rows=400)
for part in (0.05, 0.2):
    timer = threading.Timer(part * full, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    timer.start()
    try:
        result(longest)
    except KeyboardInterrupt:
        taken = time.monotonic() - start
    else:
        raise AssertionError("the call was not interrupted")
    assert taken < 0.75 * full, f"{taken:.2f} s of {full:.2f} s"
    assert result(arguments) == expected
