"""Arrays that stay on a device between calls of the operators."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.compiler.targets import Target
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.attributes import KEY_DTYPES, QUERY_DTYPES
from qsmla.runtime.devices import Copied, Input, KeptArray, Resident, element_type
from qsmla.runtime.jobs import Check
from qsmla.runtime.lanes import Lane
from qsmla.runtime.lengths import as_int32
from qsmla.runtime.limits import check_buffer
from qsmla.runtime.notices import warn_of_copies
from qsmla.runtime.staging import Staging, in_place
from qsmla.runtime.workers import before_closing, pool

_DTYPES = (*QUERY_DTYPES, *KEY_DTYPES, np.dtype(np.int32))
Rows = slice | npt.NDArray[np.int64] | npt.NDArray[np.bool_]
Piece = tuple[Rows | None, rt.HalBufferView | npt.NDArray[Any]]
"""Some rows of an array, None for all, and their values; what is known without computing is on the host."""


_alive: weakref.WeakSet[DeviceArray] = weakref.WeakSet()


@before_closing
def _release_all() -> None:
    for array in list(_alive):
        array.release()


class DeviceArray:
    """An array in a device's memory; never written to once it is made.

    `to_device` makes one, and so do operators whose query is one. `numpy` copies it back.
    """

    def __init__(
        self,
        target: Target,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        pieces: Sequence[Piece],
        memory: npt.NDArray[Any] | None = None,
    ) -> None:
        self.target = target
        """What the device runs."""
        self.shape = shape
        self.dtype = dtype
        self._pieces: Sequence[Piece] | None = pieces
        # What a CPU's buffer lies in: the buffer does not keep it alive.
        self._memory = memory
        self._ids: npt.NDArray[np.int32] | None = None
        _alive.add(self)

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> npt.NDArray[Any]:
        """A copy in the host's memory."""
        array = np.empty(self.shape, self.dtype)
        pieces = self._stored()

        def read(lane: Lane, check: Check) -> None:
            for rows, piece in pieces:
                stored = piece if isinstance(piece, np.ndarray) else lane.device.read(piece, self.dtype)
                if rows is None:
                    array[...] = stored
                else:
                    array.reshape(-1, *stored.shape[1:])[rows] = stored

        pool(self.target).run([read])
        return array

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype} {list(self.shape)} on {self.target.label})"

    @property
    def buffer(self) -> rt.HalBuffer:
        """The device's buffer, for arrays of one piece, which those of `to_device` are."""
        ((_, view),) = self._stored()
        assert isinstance(view, rt.HalBufferView)
        return view.get_buffer()

    def release(self) -> None:
        """Let go of the device's memory; the array is of no use afterwards."""
        self._pieces = None

    def _stored(self) -> Sequence[Piece]:
        if self._pieces is None:
            raise RuntimeError(f"{self!r} is gone: it was released, or its device closed")
        return self._pieces

    def stand_in(self) -> npt.NDArray[Any]:
        """An ndarray for checks and planning: ids are read, once; of all else only shape and dtype count."""
        if self.dtype != np.int32:
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)
        if self._ids is None:
            self._ids = self.numpy()
        return self._ids


Array = npt.NDArray[Any] | DeviceArray
"""What operators take for queries, caches and sparse indices."""


def from_device(
    arguments: dict[str, Any], target: Target, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, DeviceArray]]:
    """A call's arguments as the checks take them, and which of them are on the device.

    Args:
        arguments: the operator's, by name.
        target: the call's.
        names: those that may be on the device; the first is the query, whose side the results are on.

    Raises:
        ValueError: one is on another target's device, or the results stay there although there is an `out`.
    """
    resident = {name: value for name in names if isinstance(value := arguments.get(name), DeviceArray)}
    if not resident:
        return arguments, resident
    for name, array in resident.items():
        if array.target != target:
            raise ValueError(
                f"{name} is on {array.target.label} and the call's target is {target.label}; allowed: "
                "arrays of the host, or on the call's target"
            )
    if names[0] in resident and arguments.get("out") is not None:
        raise ValueError(
            f"out is an array of the host and {names[0]} is on a device, where the results stay; "
            "allowed: None"
        )
    return {**arguments, **{name: array.stand_in() for name, array in resident.items()}}, resident


def kernel_inputs(
    arrays: Iterable[tuple[str, npt.NDArray[Any] | KeptArray]],
    resident: Mapping[str, DeviceArray],
    staging: Staging | None,
    *,
    caches: Sequence[str],
) -> list[Input]:
    """Arrays, by the names of the arguments they come from, as a kernel takes them.

    Args:
        arrays: in the kernel's order and shapes; where one is resident, its values do not matter.
        resident: those on the device.
        staging: takes what a device that reads the host's memory cannot read where it lies; None: the device
            does not.
        caches: those whose copies a user is told of.
    """
    inputs: list[Input] = []
    for name, array in arrays:
        there = resident.get(name)
        if isinstance(array, KeptArray):
            inputs.append(array)
        elif there is not None and there.nbytes:
            view = rt.HalBufferView(there.buffer, array.shape, element_type(array.dtype))
            inputs.append(Resident(view))
        elif staging is None:
            inputs.append(Copied(array))
        elif name in caches:
            found = in_place(array)
            if found is None:
                warn_of_copies(name, array)
            inputs.append(found or KeptArray(array))
        else:
            inputs.append(staging.readable(array))
    return inputs


def to_device(array: npt.ArrayLike, target: str | Target) -> DeviceArray:
    """Copy an array to a device, for the operators to use there call after call.

    Args:
        array: a query, a cache or sparse indices, as the operators take them; strides do not matter, and
            int64 becomes int32.
        target: the target of the calls: "vulkan", "vulkan:PROFILE", "cuda", "cuda:sm_NN" or "llvm-cpu".

    Returns:
        A handle that the operators take for queries, caches and sparse indices in calls for the same target.
        If the query is one, the results are too.

    Raises:
        TypeError: not an array, of a dtype that no operator takes, or no target.
        ValueError: the target is unknown or cannot run here, the array is larger than its device allows, or
            an int64 value lies outside int32.
    """
    chosen = target if isinstance(target, Target) else Target.parse(target)
    source = np.asarray(array)
    if source.dtype == np.int64:
        source = as_int32("array", source)
    if source.dtype not in _DTYPES:
        raise TypeError(f"array is dtype {source.dtype}; allowed: {', '.join(map(str, _DTYPES))}, int64")
    check_buffer("array's", source.nbytes, chosen)
    # A CPU reads an aligned array where it lies: so that nobody else writes to it, this one is a copy.
    copy = aligned_empty(source.shape, np.uint8 if source.dtype in KEY_DTYPES else source.dtype)
    copy[...] = source.view(copy.dtype)
    pieces: list[Piece] = []

    def send(lane: Lane, check: Check) -> None:
        pieces.append((None, lane.device.view(copy)))

    pool(chosen).run([send])
    memory = copy if chosen.kind == "llvm-cpu" else None
    return DeviceArray(chosen, source.shape, source.dtype, pieces, memory=memory)
