"""A lane: one local-sync device and the kernels loaded on it. One thread at a time drives a lane."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.compiler.artifact import Artifact
from qsmla.runtime.arrays import ALIGNMENT

_ELEMENT_TYPES = {
    "int8": rt.HalElementType.SINT_8,
    "uint8": rt.HalElementType.SINT_8,
    "int32": rt.HalElementType.SINT_32,
    "float32": rt.HalElementType.FLOAT_32,
    "float16": rt.HalElementType.FLOAT_16,
    "bfloat16": rt.HalElementType.BFLOAT_16,
}
_MEMORY = int(rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE)
_USAGE = int(rt.BufferUsage.DEFAULT)


class Partials(NamedTuple):
    """Partial results of work items, in a lane's memory; in the order of the kernel's results."""

    values: rt.HalBufferView
    """float32 [items, heads, 512]; sums of exp2(score - maximum) * value."""
    maximum: rt.HalBufferView
    """float32 [items, heads]; of the scores times log2(e)."""
    total: rt.HalBufferView
    """float32 [items, heads]; sums of exp2(score - maximum)."""


class Kernel:
    """An artifact as something to run; every lane loads it once, for as long as the kernel lives."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact


def importable(array: npt.NDArray[Any]) -> bool:
    """Whether a CPU device can read the array where it lies."""
    # IREE crashes the process on memory that is not aligned, so this is a condition, not a preference.
    return bool(array.flags.c_contiguous) and array.ctypes.data % ALIGNMENT == 0 and array.size > 0


class Lane:
    """A device that computes in the thread that calls it, and its loaded kernels."""

    def __init__(self) -> None:
        self._instance = rt.VmInstance()
        # The caching allocator keeps the transient buffers of one call for the next: their pages stay mapped.
        self.device = rt.get_driver("local-sync").create_default_device(allocators=["caching"])
        self._hal = rt.create_hal_module(self._instance, self.device)
        self._loaded: weakref.WeakKeyDictionary[Kernel, LoadedKernel] = weakref.WeakKeyDictionary()

    def load(self, kernel: Kernel) -> LoadedKernel:
        """The kernel's functions on this lane's device."""
        loaded = self._loaded.get(kernel)
        if loaded is None:
            module = rt.VmModule.copy_buffer(self._instance, kernel.artifact.data)
            context = rt.VmContext(self._instance, [self._hal, module])
            loaded = self._loaded[kernel] = LoadedKernel(context, module)
        return loaded

    def view(self, array: npt.NDArray[Any]) -> rt.HalBufferView:
        """The array as a kernel's argument: in place where possible, else a copy.

        The caller keeps an array that is passed in place alive until the kernel has run.
        """
        kind = int(_ELEMENT_TYPES[array.dtype.name])
        allocator = self.device.allocator
        if importable(array):
            source = array if array.flags.writeable else _writable(array)
            buffer = allocator.import_host_allocation(source, _MEMORY, _USAGE)
        elif array.size:
            buffer = allocator.allocate_buffer_copy(_MEMORY, _USAGE, self.device, np.ascontiguousarray(array))
        else:
            buffer = allocator.allocate_buffer(_MEMORY, _USAGE, ALIGNMENT)
        return rt.HalBufferView(buffer, array.shape, kind)

    def close(self) -> None:
        """Let go of every kernel and of the device."""
        self._loaded.clear()
        del self._hal, self.device


class LoadedKernel:
    """The two functions of an artifact on one device."""

    def __init__(self, context: rt.VmContext, module: rt.VmModule) -> None:
        self._context = context
        self._attend = module.lookup_function("attend")
        self._fold = module.lookup_function("fold")

    def attend(self, inputs: Sequence[rt.HalBufferView], scale: float, items: rt.HalBufferView) -> Partials:
        """Partial results of work items; `inputs` are the function's tensors in front of the scale."""
        arguments = rt.VmVariantList(len(inputs) + 2)
        for view in inputs:
            arguments.push_ref(view)
        arguments.push_float(scale)
        arguments.push_ref(items)
        return Partials(*self._call(self._attend, arguments, 3))

    def fold(
        self, partials: Partials, spans: rt.HalBufferView, longest: int
    ) -> tuple[rt.HalBufferView, rt.HalBufferView]:
        """Output and log-sum-exp of rows, from their partial results."""
        arguments = rt.VmVariantList(5)
        for view in partials:
            arguments.push_ref(view)
        arguments.push_ref(spans)
        arguments.push_int(longest)
        out, lse = self._call(self._fold, arguments, 2)
        return out, lse

    def _call(
        self, function: rt.VmFunction, arguments: rt.VmVariantList, results: int
    ) -> list[rt.HalBufferView]:
        returned = rt.VmVariantList(results)
        self._context.invoke(function, arguments, returned)
        return [returned.get_as_object(i, rt.HalBufferView) for i in range(results)]


def _writable(array: npt.NDArray[Any]) -> ctypes.Array[ctypes.c_uint8]:
    """The memory of a read-only array: IREE imports none, although no kernel writes to its arguments."""
    return (ctypes.c_uint8 * array.nbytes).from_address(array.ctypes.data)


def to_numpy(view: rt.HalBufferView, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A result as an array on the device's own memory: copy what is to outlive `view`."""
    mapped = view.map()
    array: npt.NDArray[Any] = mapped.asarray(view.shape, np.dtype(dtype))
    return array
