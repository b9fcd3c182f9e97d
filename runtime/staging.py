"""Arrays of the host as kernels on a CPU read them: where they lie, or in memory that calls pass on."""

from __future__ import annotations

from typing import Any, Final

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.runtime.arrays import aligned_memory
from qsmla.runtime.devices import CpuDevice, Device, KeptArray, place
from qsmla.runtime.workers import before_closing

_COPIED_UNSEEN_BYTES: Final = 16 << 10
"""So little is copied sooner than anybody knows whether it could be read where it lies."""
_SHELVES: Final = ((64 << 10, 64), (16 << 20, 4))
"""How large an array at most is kept, and how many of those."""


class InPlace:
    """An array that a CPU device reads where it lies.

    Args:
        array: contiguous, not empty, on a 64-byte boundary; whoever calls keeps it alive.
        at: the address of its first byte.
    """

    def __init__(self, array: npt.NDArray[Any], at: int) -> None:
        self._array = array
        self._address = at

    def on(self, device: Device) -> rt.HalBufferView:
        """The array as an argument of kernels."""
        assert isinstance(device, CpuDevice)
        return device.view_of_memory(self._address, self._array)


def in_place(array: npt.NDArray[Any]) -> InPlace | None:
    """The array where it lies, if a CPU device can read it there."""
    at = place(array)
    return None if at is None else InPlace(array, at)


class _Shelf:
    """Memory that no call uses: one array of each shape and dtype, up to a number of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free: dict[tuple[tuple[int, ...], np.dtype[Any]], KeptArray] = {}

    def take(self, array: npt.NDArray[Any]) -> KeptArray | None:
        """Memory such as the array's."""
        return self._free.pop((array.shape, array.dtype), None)

    def put(self, kept: KeptArray) -> None:
        """Have it taken by another call."""
        if len(self._free) >= self._most:
            self._free.clear()
        self._free[kept.array.shape, kept.array.dtype] = kept


def _shelves() -> list[tuple[int, _Shelf]]:
    return [(size, _Shelf(most)) for size, most in _SHELVES]


class Staging:
    """One call's copies, in memory that an earlier call of the same shapes has left, views of it included."""

    def __init__(self) -> None:
        self._shelves = _free
        self._lent: list[KeptArray] = []

    def readable(self, array: npt.NDArray[Any]) -> InPlace | KeptArray:
        """The array where it lies if it is large and a CPU device can read it there, else a copy."""
        if array.nbytes > _COPIED_UNSEEN_BYTES and (found := in_place(array)):
            return found
        shelf = self._shelf(array.nbytes)
        copy = None if shelf is None else shelf.take(array)
        if copy is None:
            copy = KeptArray(aligned_memory(array.shape, array.dtype))
        copy.array[...] = array
        self._lent.append(copy)
        return copy

    def give_back(self) -> None:
        """Let other calls have the memory; no kernel may read it any more."""
        for copy in self._lent:
            shelf = self._shelf(copy.array.nbytes)
            if shelf is not None:
                shelf.put(copy)
        self._lent.clear()

    def _shelf(self, size: int) -> _Shelf | None:
        for largest, shelf in self._shelves:
            if size <= largest:
                return shelf
        return None


_free = _shelves()


@before_closing
def _begin_afresh() -> None:
    """Views must not outlive their devices, nor come back from a call that is not over yet."""
    global _free
    _free = _shelves()
