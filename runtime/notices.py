"""What a user is told once a process."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy.typing as npt

_told_of_copies = False


def warn_of_copies(name: str, cache: npt.NDArray[Any]) -> None:
    """Warn, the first time in this process, of a cache that a CPU cannot read where it lies."""
    global _told_of_copies
    if _told_of_copies or not cache.size:
        return
    _told_of_copies = True
    warnings.warn(
        f"{name} ({cache.nbytes >> 20} MiB) is copied at every call, because it is not a contiguous array on "
        "a 64-byte boundary; allocate the cache with qsmla.aligned_empty to have it read in place",
        RuntimeWarning,
        stacklevel=_level_of_the_caller(),
    )


def _level_of_the_caller() -> int:
    """The `stacklevel` at which the code that called into this package stands."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("qsmla."):
        frame, level = frame.f_back, level + 1
    return level
