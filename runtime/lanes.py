"""A lane: one device and the kernels loaded on it. One thread at a time drives a lane."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import iree.runtime as rt

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.virtual_machine import INSTANCE
from qsmla.runtime.devices import CpuDevice, Device


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


class Lane:
    """A device and its loaded kernels."""

    def __init__(self, open_device: Callable[[], Device] = CpuDevice) -> None:
        self.device = open_device()
        self._hal = rt.create_hal_module(INSTANCE, self.device.hal)
        self._loaded: weakref.WeakKeyDictionary[Kernel, LoadedKernel] = weakref.WeakKeyDictionary()

    def load(self, kernel: Kernel) -> LoadedKernel:
        """The kernel's functions on this lane's device."""
        loaded = self._loaded.get(kernel)
        if loaded is None:
            module = rt.VmModule.copy_buffer(INSTANCE, kernel.artifact.data)
            context = rt.VmContext(INSTANCE, [self._hal, module])
            loaded = self._loaded[kernel] = LoadedKernel(context, module)
        return loaded

    def close(self) -> None:
        """Let go of every kernel and of the device."""
        self._loaded.clear()
        del self._hal
        self.device.close()


class LoadedKernel:
    """The functions of an artifact on one device."""

    def __init__(self, context: rt.VmContext, module: rt.VmModule) -> None:
        self._context = context
        self._attend = module.lookup_function("attend")
        self._attend_into = module.lookup_function("attend_into")
        self._fold = module.lookup_function("fold")
        self._attend_rows = module.lookup_function("attend_rows")

    def attend(self, inputs: Sequence[rt.HalBufferView], scale: float, items: rt.HalBufferView) -> Partials:
        """Partial results of work items; `inputs` are the function's tensors in front of the scale."""
        arguments = rt.VmVariantList(len(inputs) + 2)
        _push(arguments, inputs)
        arguments.push_float(scale)
        arguments.push_ref(items)
        return Partials(*self._call(self._attend, arguments, 3))

    def attend_into(
        self,
        inputs: Sequence[rt.HalBufferView],
        scale: float,
        items: rt.HalBufferView,
        storage: rt.HalBufferView,
    ) -> Partials:
        """`attend`, with `storage` as the memory of the values."""
        arguments = rt.VmVariantList(len(inputs) + 3)
        _push(arguments, inputs)
        arguments.push_float(scale)
        arguments.push_ref(items)
        arguments.push_ref(storage)
        return Partials(*self._call(self._attend_into, arguments, 3))

    def fold(
        self, partials: Partials, inputs: Sequence[rt.HalBufferView], spans: rt.HalBufferView, longest: int
    ) -> tuple[rt.HalBufferView, rt.HalBufferView]:
        """Output and log-sum-exp of rows, from their partial results and the operator's own `inputs`."""
        arguments = rt.VmVariantList(len(inputs) + 5)
        _push(arguments, partials)
        _push(arguments, inputs)
        arguments.push_ref(spans)
        arguments.push_int(longest)
        out, lse = self._call(self._fold, arguments, 2)
        return out, lse

    def attend_rows(
        self,
        inputs: Sequence[rt.HalBufferView],
        scale: float,
        items: rt.HalBufferView,
        fold_inputs: Sequence[rt.HalBufferView],
        spans: rt.HalBufferView,
        longest: int,
    ) -> tuple[rt.HalBufferView, rt.HalBufferView]:
        """`attend`, and `fold` of its partial results."""
        arguments = rt.VmVariantList(len(inputs) + len(fold_inputs) + 4)
        _push(arguments, inputs)
        arguments.push_float(scale)
        arguments.push_ref(items)
        _push(arguments, fold_inputs)
        arguments.push_ref(spans)
        arguments.push_int(longest)
        out, lse = self._call(self._attend_rows, arguments, 2)
        return out, lse

    def _call(
        self, function: rt.VmFunction, arguments: rt.VmVariantList, results: int
    ) -> list[rt.HalBufferView]:
        returned = rt.VmVariantList(results)
        self._context.invoke(function, arguments, returned)
        return [returned.get_as_object(i, rt.HalBufferView) for i in range(results)]


def _push(arguments: rt.VmVariantList, views: Sequence[rt.HalBufferView]) -> None:
    for view in views:
        arguments.push_ref(view)
