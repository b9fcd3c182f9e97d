"""Open lanes while other threads call: no call may notice."""

from __future__ import annotations

import threading

from common import call, result

from qsmla.runtime.lanes import Lane

arguments = call()
expected = result(arguments)
results: list[bytes] = []
threads = [
    threading.Thread(target=lambda: results.extend(result(arguments) for _ in range(20))) for _ in range(2)
]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    Lane().close()
assert results == [expected] * 40
