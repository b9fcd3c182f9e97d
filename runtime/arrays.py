"""NumPy memory that CPU devices take over without a copy."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ALIGNMENT: Final = 64
"""Bytes; a buffer that starts on a multiple of it can be imported by a CPU device as it is."""


def aligned_empty(shape: int | Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Uninitialised C-contiguous array whose first byte lies on a 64-byte boundary.

    A cache allocated here is read in place by every call; the array keeps its memory alive.

    Raises:
        ValueError: a dimension is negative, or the dtype holds Python objects.
        TypeError: shape or dtype is not one.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype is {dtype!r}; allowed: a NumPy dtype") from error
    if kind.hasobject:
        raise ValueError(f"dtype is {kind}; allowed: dtypes that hold no Python objects")
    try:
        dimensions = tuple(map(operator.index, shape if isinstance(shape, Sequence) else (shape,)))
    except TypeError as error:
        raise TypeError(f"shape is {shape!r}; allowed: an int or a sequence of ints") from error
    if any(n < 0 for n in dimensions):
        raise ValueError(f"shape is {dimensions}; allowed: dimensions of 0 or more")
    return aligned_memory(dimensions, kind)


def aligned_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The same for arguments that need no look."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(memory) % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def address(array: npt.NDArray[Any]) -> int:
    """Of the first byte of a C-contiguous array."""
    try:
        # A third of the time that `ctypes.data` takes; several are looked at a call.
        memory: Any = array.view(np.uint8)
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))
    except (TypeError, ValueError):  # read-only, empty, or without a dimension
        return array.ctypes.data
