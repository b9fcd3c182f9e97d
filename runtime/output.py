"""Where the rows of a result go: into the caller's arrays, or nowhere, staying on the device."""

from __future__ import annotations

from typing import Any, Protocol

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from qsmla.runtime.devices import Device


class Output(Protocol):
    """Takes results as they are made; several lanes may put different rows at a time."""

    def put(
        self, rows: npt.NDArray[np.int64], device: Device, output: rt.HalBufferView, lse: rt.HalBufferView
    ) -> None:
        """Take the output [len(rows), heads, 512] and lse [len(rows), heads] of some rows."""

    def put_nothing(self, rows: npt.NDArray[Any]) -> None:
        """Take rows that attend to nothing; `rows` is an index of any kind."""


class HostOutput:
    """Results in the host's memory.

    Args:
        output: [rows, heads, 512] in the query dtype; written.
        lse: float32 [rows, heads]; written.
    """

    def __init__(self, output: npt.NDArray[Any], lse: npt.NDArray[np.float32]) -> None:
        self.output = output
        self.lse = lse

    def put(
        self, rows: npt.NDArray[np.int64], device: Device, output: rt.HalBufferView, lse: rt.HalBufferView
    ) -> None:
        """Copy the rows to their places."""
        self.output[rows] = device.read(output, self.output.dtype)
        self.lse[rows] = device.read(lse, np.float32)

    def put_nothing(self, rows: npt.NDArray[Any]) -> None:
        """Zeros, and the logarithm of zero."""
        self.output[rows] = 0
        self.lse[rows] = -np.inf


class DeviceOutput:
    """Results that stay where they were made, in the pieces they were made in.

    Rows that nobody puts attend to nothing.
    """

    def __init__(self) -> None:
        self.pieces: list[tuple[npt.NDArray[np.int64], rt.HalBufferView, rt.HalBufferView]] = []
        """Rows, output and lse of each piece."""

    def put(
        self, rows: npt.NDArray[np.int64], device: Device, output: rt.HalBufferView, lse: rt.HalBufferView
    ) -> None:
        """Keep the piece."""
        self.pieces.append((rows, output, lse))

    def put_nothing(self, rows: npt.NDArray[Any]) -> None:
        """Nothing to keep."""
