from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import qsmla
from qsmla.runtime.arrays import aligned_empty


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float32, "i4"]
)
@pytest.mark.parametrize(
    "shape", [(), 7, 0, (1,), (3, 0, 5), (3, 1, 656), [2, 3], (np.int64(4), 5), (10007,)], ids=str
)
def test_an_aligned_array_of_the_asked_shape(shape: Any, dtype: Any) -> None:
    array = aligned_empty(shape, dtype)
    assert array.shape == np.empty(shape, np.uint8).shape
    assert array.dtype == dtype
    assert not array.size or array.ctypes.data % 64 == 0  # NumPy gives no address of nothing
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_arrays_do_not_share_memory_and_keep_their_own_alive() -> None:
    arrays = [aligned_empty((100, 656), np.uint8) for _ in range(20)]
    for number, array in enumerate(arrays):
        array[...] = number
    gc.collect()
    for number, array in enumerate(arrays):
        assert (array == number).all()
    part = arrays[3][50:]
    arrays.clear()
    gc.collect()
    assert (part == 3).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "text"),
    [
        ((2, -1), np.uint8, ValueError, r"shape is \(2, -1\); allowed: dimensions of 0 or more"),
        (-1, np.uint8, ValueError, r"shape is \(-1,\)"),
        ((2, 2), object, ValueError, "dtype is object"),
        ((2, 2), [("a", object)], ValueError, "dtype is"),
        ((2.0, 2), np.uint8, TypeError, "shape is"),
        (2.0, np.uint8, TypeError, "shape is"),
        ("22", np.uint8, TypeError, "shape is '22'"),
        (None, np.uint8, TypeError, "shape is None"),
        ((2, 2), "no dtype", TypeError, "dtype is 'no dtype'"),
    ],
)
def test_what_is_not_allowed(shape: Any, dtype: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        aligned_empty(shape, dtype)


def test_it_is_public() -> None:
    assert qsmla.aligned_empty is aligned_empty
