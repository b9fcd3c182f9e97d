"""The one-byte code formats of the KV cache: int8, float8_e4m3 and hifloat8.

HiFloat8 is one sign bit, a prefix that gives the width of the exponent, a sign-magnitude exponent whose
leading one is implicit, then the mantissa. Its precision tapers: 3 mantissa bits for exponents -3..3,
2 for +-4..7, 1 for +-8..15, and seven powers of two below that.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

CODE_FORMATS: Final = ("int8", "float8_e4m3", "hifloat8")
"""Names of the code formats, as `kv_dtype` takes them."""

_FLOAT_DTYPES: Final = tuple(np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
_MAX_FINITE: Final = {"int8": 127.0, "float8_e4m3": 448.0, "hifloat8": 32768.0}
_HIFLOAT8_NAN: Final = 0x80
_HIFLOAT8_INFINITY: Final = 0x6F
# prefix, its width in bits, exponent bits, mantissa bits, leading one of the exponent's magnitude
_HIFLOAT8_PREFIXES: Final = (
    (0b11, 2, 4, 1, 8),
    (0b10, 2, 3, 2, 4),
    (0b01, 2, 2, 3, 2),
    (0b001, 3, 1, 3, 1),
    (0b0001, 4, 0, 3, 0),
)


def max_finite(kv_dtype: str) -> float:
    """Largest finite value of a code format; int8 is used symmetrically, so 127.

    Raises:
        ValueError: kv_dtype is none of `CODE_FORMATS`.
    """
    _check_format(kv_dtype)
    return _MAX_FINITE[kv_dtype]


@functools.cache
def decode_table(kv_dtype: str) -> npt.NDArray[np.float32]:
    """Exact value of every code, float32 [256], indexed by the code as uint8; read-only.

    NaN codes are NaN, infinity codes are infinite.

    Raises:
        ValueError: kv_dtype is none of `CODE_FORMATS`.
    """
    _check_format(kv_dtype)
    codes = np.arange(256, dtype=np.uint8)
    if kv_dtype == "int8":
        table = codes.view(np.int8).astype(np.float32)
    elif kv_dtype == "float8_e4m3":
        table = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    else:
        table = np.array([_decode_hifloat8(code) for code in range(256)], np.float32)
    table.flags.writeable = False
    return table


def encode(values: npt.NDArray[Any], kv_dtype: str) -> npt.NDArray[np.uint8]:
    """Codes nearest to float values, as uint8 of the same shape.

    int8 and float8_e4m3 round ties to even, hifloat8 rounds ties away from zero, as its published
    implementation does. Finite values beyond the largest finite code saturate. Infinity becomes
    hifloat8's infinity code and saturates in the other two, which have none. NaN becomes the NaN code;
    int8 has none and gives 0. int8 never gives -128.

    Raises:
        TypeError: values are not float16, bfloat16, float32 or float64.
        ValueError: kv_dtype is none of `CODE_FORMATS`.
    """
    _check_format(kv_dtype)
    if values.dtype not in _FLOAT_DTYPES:
        raise TypeError(f"values has dtype {values.dtype}; allowed: {', '.join(map(str, _FLOAT_DTYPES))}")
    if values.dtype.itemsize == 2:
        values = values.astype(np.float32)
    if kv_dtype == "int8":
        rounded = np.rint(np.clip(values, -127, 127))
        # NaN to an integer is undefined in C.
        return np.where(np.isnan(rounded), 0, rounded).astype(np.int8).view(np.uint8)
    upper = _upper_half(_to_odd(values) if values.dtype == np.float64 else values)
    return _codes_by_upper_half(kv_dtype)[upper]


def _check_format(kv_dtype: str) -> None:
    if kv_dtype not in CODE_FORMATS:
        raise ValueError(f"kv_dtype is {kv_dtype!r}; allowed: {', '.join(CODE_FORMATS)}")


def _decode_hifloat8(code: int) -> float:
    magnitude = code & 0x7F
    sign = -1.0 if code & 0x80 else 1.0
    if magnitude == 0:
        return np.nan if code else 0.0
    if magnitude == _HIFLOAT8_INFINITY:
        return sign * np.inf
    for prefix, prefix_bits, exponent_bits, mantissa_bits, leading_one in _HIFLOAT8_PREFIXES:
        rest_bits = 7 - prefix_bits
        if magnitude >> rest_bits != prefix:
            continue
        exponent = (magnitude >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = magnitude & ((1 << mantissa_bits) - 1)
        if exponent_bits:
            # The exponent's own sign bit stands where its leading one is implied.
            negative = exponent >> (exponent_bits - 1)
            size = leading_one + (exponent & ((1 << (exponent_bits - 1)) - 1))
            exponent = -size if negative else size
        return sign * 2.0**exponent * (1 + mantissa / (1 << mantissa_bits))
    return sign * 2.0 ** (magnitude - 23)


def _to_odd(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """float64 to float32, cut off, the last bit set where something was: no later rounding is misled."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        narrow = values.astype(np.float32)
    cut = np.where(np.abs(narrow) > np.abs(values), np.nextafter(narrow, np.float32(0)), narrow)
    bits = cut.view(np.uint32)
    odd: npt.NDArray[np.uint32] = bits | (cut != values)
    return odd.view(np.float32)


def _upper_half(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Upper 16 bits of float32 values, the last bit set where the lower half held anything.

    Both float formats keep at most 3 of the 7 mantissa bits that are left: the code still follows from them.
    """
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    upper: npt.NDArray[np.uint16] = (bits >> np.uint32(16)).astype(np.uint16)
    upper |= bits.astype(np.uint16) != 0
    return upper


@functools.cache
def _codes_by_upper_half(kv_dtype: str) -> npt.NDArray[np.uint8]:
    """Code of every float32 whose lower half is zero, uint8 [65536], indexed by its upper 16 bits."""
    values = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32)
    # Signalling NaNs are among them.
    with np.errstate(invalid="ignore"):
        if kv_dtype == "float8_e4m3":
            return np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        return _encode_hifloat8(values)


def _encode_hifloat8(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    positive = decode_table("hifloat8")[:128].astype(np.float64)
    ordered = np.argsort(positive, kind="stable")[:-1]  # all but infinity
    midpoints = (positive[ordered][1:] + positive[ordered][:-1]) / 2
    codes = ordered[np.searchsorted(midpoints, np.abs(values), side="right")].astype(np.uint8)
    codes[np.isinf(values)] = _HIFLOAT8_INFINITY
    # There is no -0: what rounds to zero is code 0 whatever its sign.
    codes[(values < 0) & (codes != 0)] |= 0x80
    codes[np.isnan(values)] = _HIFLOAT8_NAN
    return codes
