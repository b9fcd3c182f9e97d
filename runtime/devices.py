"""Devices: where kernels run, and how arrays get there and back."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple, Protocol

import iree.runtime as rt
import ml_dtypes
import numpy as np
import numpy.typing as npt

from qsmla.compiler.drivers import DRIVERS
from qsmla.compiler.targets import Target
from qsmla.runtime.arrays import ALIGNMENT, address, aligned_empty, aligned_memory

_ELEMENT_TYPES: Final = {
    np.dtype(np.int8): int(rt.HalElementType.SINT_8),
    np.dtype(np.uint8): int(rt.HalElementType.SINT_8),
    np.dtype(np.int32): int(rt.HalElementType.SINT_32),
    np.dtype(np.float32): int(rt.HalElementType.FLOAT_32),
    np.dtype(np.float16): int(rt.HalElementType.FLOAT_16),
    np.dtype(ml_dtypes.bfloat16): int(rt.HalElementType.BFLOAT_16),
}
SCRATCH_BYTES: Final = {"llvm-cpu": 16 << 20, "vulkan": 64 << 20, "cuda": 256 << 20}
"""About what the intermediate tensors of one call of a kernel may take, by the kind of its target;
on a CPU little enough to stay in the cache."""
_USAGE: Final = int(rt.BufferUsage.DEFAULT)
_MOST_VIEWS: Final = 256
"""Of arrays that lie where a CPU reads them: the caches of a model's layers."""


def place(array: npt.NDArray[Any]) -> int | None:
    """The array's address, if a CPU device can read it where it lies."""
    if array.size and array.flags.c_contiguous:
        at = address(array)
        # IREE crashes the process on memory that is not aligned, so this is a condition, not a preference.
        if at % ALIGNMENT == 0:
            return at
    return None


def importable(array: npt.NDArray[Any]) -> bool:
    """Whether a CPU device can read the array where it lies."""
    return place(array) is not None


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy of it, where a CPU device can read it in place."""
    if importable(array):
        return array
    copy = aligned_memory(array.shape, array.dtype)
    copy[...] = array
    return copy


def element_type(dtype: np.dtype[Any]) -> int:
    """IREE's number for a dtype of a kernel's argument."""
    return _ELEMENT_TYPES[dtype]


class Device(ABC):
    """An opened device. One thread at a time drives it."""

    kind: str
    """As in `Target.kind`."""
    reads_host_memory: bool
    """Whether kernels read arrays that are `importable` where they lie."""

    def __init__(self, hal: rt.HalDevice) -> None:
        self.hal = hal

    def view(self, array: npt.NDArray[Any], *, is_aligned: bool = False) -> rt.HalBufferView:
        """The array as a kernel's argument: in place where possible, else a copy.

        The caller keeps an array that is passed in place alive until the kernel has run.

        Args:
            array: any array.
            is_aligned: it is known to be `importable`, or to be empty.
        """
        return rt.HalBufferView(self._buffer(array, is_aligned), array.shape, element_type(array.dtype))

    @abstractmethod
    def _buffer(self, array: npt.NDArray[Any], is_aligned: bool) -> rt.HalBuffer:
        """The array's values in memory that kernels read."""

    @abstractmethod
    def read(self, view: rt.HalBufferView, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A result as an array that lasts at least as long as `view`: copy what is to outlive it."""

    def close(self) -> None:
        """Let go of the device, which stays open to the interpreter's end.

        A buffer that outlives its device crashes the process, and one may lie in an error's traceback, or
        in garbage that nobody has collected yet.
        """
        self.hal.allocator.trim()
        _closed.append(self.hal)
        del self.hal


_closed: list[rt.HalDevice] = []


class CpuDevice(Device):
    """A device that computes in the thread that calls it, on memory that Python shares with it."""

    kind = "llvm-cpu"
    reads_host_memory = True

    _MEMORY: Final = int(rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE)

    def __init__(self) -> None:
        # The caching allocator keeps the transient buffers of one call for the next: their pages stay mapped.
        super().__init__(rt.get_driver(DRIVERS[self.kind]).create_default_device(allocators=["caching"]))
        self._views: dict[tuple[int, tuple[int, ...], np.dtype[Any]], rt.HalBufferView] = {}

    def _buffer(self, array: npt.NDArray[Any], is_aligned: bool) -> rt.HalBuffer:
        allocator = self.hal.allocator
        if array.size if is_aligned else importable(array):
            # IREE imports no read-only array, although no kernel writes to its arguments.
            source = array if array.flags.writeable else _memory(array.ctypes.data, array.nbytes)
            return allocator.import_host_allocation(source, self._MEMORY, _USAGE)
        if array.size:
            return allocator.allocate_buffer_copy(self._MEMORY, _USAGE, self.hal, np.ascontiguousarray(array))
        return allocator.allocate_buffer(self._MEMORY, _USAGE, ALIGNMENT)

    def view_of_memory(self, at: int, array: npt.NDArray[Any]) -> rt.HalBufferView:
        """A contiguous array at an aligned address: the view of one call does for the next.

        It does not keep the memory alive, and says nothing but where that is and what shape it has.
        """
        known = (at, array.shape, array.dtype)
        view = self._views.get(known)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            memory = _memory(at, array.nbytes)
            buffer = self.hal.allocator.import_host_allocation(memory, self._MEMORY, _USAGE)
            view = rt.HalBufferView(buffer, array.shape, element_type(array.dtype))
            self._views[known] = view
        return view

    def close(self) -> None:
        """Let go of the device, and before it of what must not outlive it."""
        self._views.clear()
        super().close()

    def read(self, view: rt.HalBufferView, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The result in the device's own memory."""
        if not view.byte_length:
            return np.empty(view.shape, dtype)
        # A third of the time that `asarray` takes.
        memory: Any = view.map()
        return np.ndarray(view.shape, dtype, memory)


class KeptArray:
    """An array that call after call takes, and its views: a device makes one once."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = aligned(array)
        """Not to be written to."""
        self._views: dict[Device, rt.HalBufferView] = {}

    def on(self, device: Device) -> rt.HalBufferView:
        """The array as an argument of kernels on the device; called by whoever drives it."""
        view = self._views.get(device)
        if view is None:
            view = self._views[device] = device.view(self.array, is_aligned=True)
        return view


class Input(Protocol):
    """A tensor that a kernel takes."""

    def on(self, device: Device) -> rt.HalBufferView:
        """The tensor as an argument of kernels on the device; called by whoever drives it."""


class Copied(NamedTuple):
    """An array that is copied to a device at every call."""

    array: npt.NDArray[Any]

    def on(self, device: Device) -> rt.HalBufferView:
        """A copy."""
        return device.view(self.array)


class Resident(NamedTuple):
    """A tensor on the only device of its target."""

    view: rt.HalBufferView

    def on(self, device: Device) -> rt.HalBufferView:
        """The tensor."""
        return self.view


class GpuDevice(Device):
    """A device behind a queue, with memory of its own: everything is copied there and back.

    lavapipe counts as one, since its memory is reached in no other way.

    Args:
        target: kind "vulkan" or "cuda"; the first device that runs it is opened.

    Raises:
        ValueError: no device here runs the target; the text says why.
    """

    reads_host_memory = False

    _MEMORY: Final = int(rt.MemoryType.DEVICE_LOCAL)
    _STAGING_MEMORY: Final = int(rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE)
    _STAGING_USAGE: Final = int(rt.BufferUsage.TRANSFER | rt.BufferUsage.MAPPING_SCOPED)

    def __init__(self, target: Target) -> None:
        found = target.find_device()
        if isinstance(found, str):
            raise ValueError(f"target is {target.label!r}, which cannot run here: {found}")
        self.kind = target.kind
        super().__init__(rt.get_driver(DRIVERS[target.kind]).create_device(found.number))
        self._semaphore = self.hal.create_semaphore(0)
        self._copies = 0

    def _buffer(self, array: npt.NDArray[Any], is_aligned: bool) -> rt.HalBuffer:
        allocator = self.hal.allocator
        if not array.size:
            return allocator.allocate_buffer(self._MEMORY, _USAGE, ALIGNMENT)
        return allocator.allocate_buffer_copy(self._MEMORY, _USAGE, self.hal, np.ascontiguousarray(array))

    def read(self, view: rt.HalBufferView, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A copy of the result in the host's memory."""
        array = aligned_empty(view.shape, dtype)
        if array.size:
            # A result's own memory need not be visible to the host, and its buffer may be longer than it is.
            source = view.get_buffer()
            staging = self.hal.allocator.allocate_buffer(
                self._STAGING_MEMORY, self._STAGING_USAGE, source.byte_length()
            )
            self._copies += 1
            self.hal.queue_copy(source, staging, [], [(self._semaphore, self._copies)])
            self._semaphore.wait(self._copies)
            mapped = rt.HalBufferView(staging, view.shape, view.element_type).map()
            array[...] = mapped.asarray(view.shape, array.dtype)
        return array

    def close(self) -> None:
        """Let go of the device, and before it of what must not outlive it."""
        del self._semaphore
        super().close()


def _memory(at: int, size: int) -> ctypes.Array[ctypes.c_uint8]:
    """Bytes at an address, as something that can be written to; it keeps nothing alive."""
    return (ctypes.c_uint8 * size).from_address(at)
