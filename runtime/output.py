"""Where the rows of a result go: into the caller's arrays, or nowhere, staying on the device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.compiler.targets import Target
from qsmla.runtime.device_array import DeviceArray, Piece, Rows
from qsmla.runtime.devices import Device

Result = npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[np.float32]] | Any
"""Arrays of the host; where the query is a DeviceArray, one or two of those."""


class Output(ABC):
    """Takes results as they are made; several lanes may put different rows at a time."""

    @abstractmethod
    def put(self, rows: Rows, device: Device, output: rt.HalBufferView, lse: rt.HalBufferView) -> None:
        """Take the output [some rows, heads, 512] and lse [some rows, heads]."""

    @abstractmethod
    def put_nothing(self, rows: Rows, lse: npt.ArrayLike = -np.inf) -> None:
        """Take rows that attend to nothing, over what was put for them; lse: a number, or float32 [heads]."""

    @abstractmethod
    def results(self) -> tuple[Any, Any]:
        """Output and lse, once every row has been put."""


class HostOutput(Output):
    """Results in the host's memory.

    Args:
        shape: of the output; the last two dimensions are heads and columns.
        dtype: of the output.
        out: written and returned; None: a new array.
        with_lse: whether anybody asks for the lse.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        out: npt.NDArray[Any] | None = None,
        *,
        with_lse: bool = True,
    ) -> None:
        self._result = np.empty(shape, dtype) if out is None else out
        rows = (math.prod(shape[:-2]), *shape[-2:])
        in_place = self._result.flags.c_contiguous
        self._output = self._result.reshape(rows) if in_place else np.empty(rows, dtype)
        self._lse = np.empty(rows[:-1], np.float32) if with_lse else None

    def put(self, rows: Rows, device: Device, output: rt.HalBufferView, lse: rt.HalBufferView) -> None:
        """Copy the rows to their places."""
        self._output[rows] = device.read(output, self._output.dtype)
        if self._lse is not None:
            self._lse[rows] = device.read(lse, np.float32)

    def put_nothing(self, rows: Rows, lse: npt.ArrayLike = -np.inf) -> None:
        """Zeros, and what the lse is without a score."""
        self._output[rows] = 0
        if self._lse is not None:
            self._lse[rows] = lse

    def results(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32] | None]:
        """The arrays."""
        shape = self._result.shape
        if not self._result.flags.c_contiguous:
            self._result[...] = self._output.reshape(shape)
        return self._result, None if self._lse is None else self._lse.reshape(shape[:-1])


class DeviceOutput(Output):
    """Results that stay where they were made, in the pieces they were made in.

    Args:
        target: what the device runs.
        shape, dtype: as of `HostOutput`.
    """

    def __init__(self, target: Target, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._target = target
        self._shape = shape
        self._dtype = dtype
        self._outputs: list[Piece] = []
        self._lses: list[Piece] = []

    def put(self, rows: Rows, device: Device, output: rt.HalBufferView, lse: rt.HalBufferView) -> None:
        """Keep the piece."""
        self._outputs.append((rows, output))
        self._lses.append((rows, lse))

    def put_nothing(self, rows: Rows, lse: npt.ArrayLike = -np.inf) -> None:
        """Remember the rows."""
        row = self._shape[-2:]
        self._outputs.append((rows, np.zeros((1, *row), self._dtype)))
        self._lses.append((rows, np.broadcast_to(np.asarray(lse, np.float32), (1, row[0]))))

    def results(self) -> tuple[DeviceArray, DeviceArray]:
        """Handles."""
        return (
            DeviceArray(self._target, self._shape, self._dtype, self._outputs),
            DeviceArray(self._target, self._shape[:-1], np.dtype(np.float32), self._lses),
        )


def results_of(
    compute: Callable[[Output], None],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    out: npt.NDArray[Any] | None,
    stay_on: Target | None,
    return_softmax_lse: bool,
) -> Result:
    """What a call returns.

    Args:
        compute: puts every row.
        shape: of the output; the last two dimensions are heads and columns.
        dtype: of the output.
        out: the caller's array for the output.
        stay_on: the target whose device the results stay on; None: they come to the host.
        return_softmax_lse: whether the lse is returned too.
    """
    output: Output
    if stay_on is None:
        output = HostOutput(shape, dtype, out, with_lse=return_softmax_lse)
    else:
        output = DeviceOutput(stay_on, shape, dtype)
    compute(output)
    result, lse = output.results()
    return (result, lse) if return_softmax_lse else result
