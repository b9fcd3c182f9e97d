"""Use the operator, and end: from the main thread alone, after other threads used it too, or amid garbage."""

from __future__ import annotations

import sys
import threading

import numpy as np
from common import call, result

from qsmla.runtime.workers import pool

arguments = call()
expected = result(arguments)
results: list[bytes] = []
if sys.argv[1] == "threads":
    threads = [threading.Thread(target=lambda: results.append(result(arguments))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
elif sys.argv[1] == "unjoined":
    # The interpreter waits for the thread at its end.
    threading.Thread(target=lambda: results.append(result(arguments))).start()
elif sys.argv[1] == "garbage":
    # What an interrupted call may leave: buffers of a lane in a cycle that nobody has collected.
    kept: list[object] = []
    pool().run([lambda lane, check: kept.append(lane.device.view(np.ones(101)[1:].astype(np.float32)))])
    kept.append(kept)
    del kept
assert all(one == expected for one in results)
