"""Slots: host memory for partial results that outlive the step that made them."""

from __future__ import annotations

from typing import Any, Final

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.devices import Device, KeptArray
from qsmla.runtime.lanes import Partials


class Slots:
    """`count` partial results of `heads` heads; different lanes may fill different slots at a time."""

    def __init__(self, count: int, heads: int) -> None:
        self.heads: Final = heads
        shapes = ((count, heads, NOPE_DIM), (count, heads), (count, heads))
        self._arrays: tuple[npt.NDArray[Any], ...] = tuple(
            aligned_empty(shape, np.float32) for shape in shapes
        )
        self._whole = tuple(map(KeptArray, self._arrays)) if count else ()
        self._storage: dict[tuple[Device, int, int], rt.HalBufferView] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all slots."""
        return sum(array.nbytes for array in self._arrays)

    def storage(self, device: Device, first: int, count: int) -> rt.HalBufferView:
        """The values of some slots, for a kernel on a device that reads host memory to write to."""
        known = (device, first, count)
        view = self._storage.get(known)
        if view is None:
            # A slot's values are a multiple of the alignment.
            values = self._arrays[0][first : first + count]
            view = self._storage[known] = device.view(values, is_aligned=True)
        return view

    def store(self, device: Device, first: int, count: int, partials: Partials) -> None:
        """Copy partial results to slots; the values only where the device does not read host memory."""
        at = slice(first, first + count)
        begin = 1 if device.reads_host_memory else 0
        for kept, made in zip(self._arrays[begin:], partials[begin:], strict=True):
            kept[at] = device.read(made, np.float32)

    def partials(self, device: Device, first: int, count: int) -> Partials:
        """Some slots as arguments of `fold`."""
        if device.reads_host_memory and count == len(self._arrays[0]):
            return Partials(*(array.on(device) for array in self._whole))
        return Partials(*(device.view(array[first : first + count]) for array in self._arrays))


NO_SLOTS: Final = Slots(0, 1)
"""For programs that need none."""
