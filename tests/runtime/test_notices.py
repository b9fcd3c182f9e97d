"""The one warning about a cache that has to be copied."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qsmla.runtime import notices
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.device_array import kernel_inputs
from qsmla.runtime.staging import Staging


def test_copies_are_told_of_once_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_told_of_copies", False)

    def take(name: str, array: npt.NDArray[Any]) -> None:
        kernel_inputs([(name, array)], {}, Staging(), caches=("key",))

    def unaligned(rows: int) -> npt.NDArray[Any]:
        return aligned_empty((rows, 657), np.uint8)[:, :656]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        take("key", aligned_empty((4, 656), np.uint8))
        take("key", np.empty((0, 656), np.uint8))
        take("query", unaligned(4))
        assert not told
        for rows in (4, 40, 40_000):
            take("key", unaligned(rows))
    assert [str(one.message).split(" is copied")[0] for one in told] == ["key (0 MiB)"]
    # At the line that called into the package, not inside it.
    assert told[0].filename == __file__
