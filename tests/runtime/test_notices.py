"""The one warning about a cache that has to be copied."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from qsmla.runtime import notices
from qsmla.runtime.arrays import aligned_empty


def test_copies_are_told_of_once_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_told_of_copies", False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        notices.warn_of_copies("key", aligned_empty((4, 656), np.uint8))
        notices.warn_of_copies("key", np.empty((0, 656), np.uint8))
        assert not told
        for rows in (4, 40, 40_000):
            notices.warn_of_copies("key", aligned_empty((rows, 657), np.uint8)[:, :656])
    assert [str(one.message).split(" is copied")[0] for one in told] == ["key (0 MiB)"]
    # At the line that called into the package, not inside it.
    assert told[0].filename == __file__
