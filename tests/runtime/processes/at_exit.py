"""Calls in handlers of the interpreter's end, before and behind the package's own handler."""

from __future__ import annotations

import atexit
import os
from typing import Any

results: list[bytes] = []
expected: list[bytes] = []
known: dict[str, Any] = {}


def late() -> None:
    """Registered before the package is imported, so it runs last of all."""
    results.extend(known["result"](arguments) for arguments in known["calls"] * 2)
    if results != expected * 4:
        # An error in here would not change the exit status.
        os._exit(3)


atexit.register(late)

from common import call, result  # noqa: E402

known |= {"result": result, "calls": [call(), call(1)]}


def early() -> None:
    """Runs before the package closes its lanes."""
    results.extend(result(arguments) for arguments in known["calls"])


atexit.register(early)
atexit.register(early)
expected += [result(arguments) for arguments in known["calls"]]
