"""Use the operator, and end: from the main thread alone, or after other threads used it too."""

from __future__ import annotations

import sys
import threading

from common import call, result

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
assert all(one == expected for one in results)
