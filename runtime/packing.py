"""Packed cache rows: 512 codes, 64 rope values of 16 bits and 4 float32 scales in 656 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.codes import decode_table, encode, max_finite
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES, TILE_SIZE
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.attributes import (
    KEY_DTYPES,
    QUERY_DTYPES,
    resolve_byte_order,
    resolve_code_format,
    resolve_kv_dtype,
)
from qsmla.runtime.lengths import as_array, check_shape

_TILES: Final = NOPE_DIM // TILE_SIZE
_NOPE_DTYPES: Final = (*QUERY_DTYPES, np.dtype(np.float32), np.dtype(np.float64))
_CHUNK_ROWS: Final = 512
"""Rows quantised in one go: about a megabyte of float32, which stays in the cache of a core."""
_PACKED_DTYPES: Final = dict(zip(("int8", "float8_e4m3", "hifloat8"), KEY_DTYPES, strict=True))
_LARGEST_CODES: Final = {
    "int8": max_finite("int8"),
    "float8_e4m3": max_finite("float8_e4m3"),
    # Not its largest finite value: hifloat8 is most precise, 3 mantissa bits, in 1/8..16. Of the targets 1 to
    # 32768, 16 gave the least error on Gaussian, Laplace, Student-t and outlier-ridden tiles: 2.5 % of the
    # rms on Gaussian ones, where 32768 gave 10 %.
    "hifloat8": 16.0,
}
_SMALLEST_SCALE: Final = np.finfo(np.float32).tiny
"""A denormal scale would lose bits here, and kernels may flush it to zero."""


@dataclass(frozen=True)
class RowLayout:
    """Where the parts of a packed row lie, as slices of its bytes."""

    codes: slice
    rope: slice
    scales: slice


_ROPE_BYTES: Final = 2 * ROPE_DIM
_SCALE_BYTES: Final = 4 * _TILES
ROW_LAYOUTS: Final = {
    "ascend": RowLayout(
        slice(0, NOPE_DIM),
        slice(NOPE_DIM, NOPE_DIM + _ROPE_BYTES),
        slice(NOPE_DIM + _ROPE_BYTES, ROW_BYTES),
    ),
    "flashmla": RowLayout(
        slice(0, NOPE_DIM),
        slice(NOPE_DIM + _SCALE_BYTES, ROW_BYTES),
        slice(NOPE_DIM, NOPE_DIM + _SCALE_BYTES),
    ),
}


def pack_kv(
    nope: npt.NDArray[Any], rope: npt.NDArray[Any], kv_dtype: str, byte_order: str = "ascend"
) -> npt.NDArray[Any]:
    """Quantise latents and pack them with their rope values into cache rows.

    Each tile of 128 nope columns gets a float32 scale, its largest magnitude over the format's largest code
    (127 for int8, 448 for float8_e4m3, 16 for hifloat8, whose precision falls off beyond); 1 where the tile
    is all zero. Codes are the nearest ones to value / scale. Rope values are stored bit for bit.

    Args:
        nope: [..., 512]; float16, bfloat16, float32 or float64 (rounded to float32 first).
        rope: [..., 64]; float16 or bfloat16, the dtype of the queries to come.
        kv_dtype: "int8", "float8_e4m3" or "hifloat8".
        byte_order: "ascend" (nope, rope, scales) or "flashmla" (nope, scales, rope).

    Returns:
        [..., 656]; int8 for int8, float8_e4m3fn for float8_e4m3, uint8 for hifloat8. Its memory is aligned,
        so that a CPU device reads it in place.

    Raises:
        TypeError: an array of another dtype, or no array.
        ValueError: a shape, format or order that is not allowed; or a nope value that the format has no code
            for: NaN or infinity with int8, infinity with float8_e4m3.
    """
    nope, rope = as_array("nope", nope), as_array("rope", rope)
    _check_dtype("nope", nope.dtype, _NOPE_DTYPES)
    _check_dtype("rope", rope.dtype, QUERY_DTYPES)
    kv_dtype = resolve_code_format(kv_dtype)
    layout = ROW_LAYOUTS[resolve_byte_order(byte_order)]
    check_shape("nope", nope.shape, (*nope.shape[:-1], NOPE_DIM))
    check_shape("rope", rope.shape, (*nope.shape[:-1], ROPE_DIM))

    packed = aligned_empty((*nope.shape[:-1], ROW_BYTES), _PACKED_DTYPES[kv_dtype])
    flat = packed.view(np.uint8).reshape(-1, ROW_BYTES)
    nope, rope = nope.reshape(-1, NOPE_DIM), rope.reshape(-1, ROPE_DIM)
    for start in range(0, len(flat), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        codes, scales = _quantise(nope[rows], kv_dtype)
        flat[rows, layout.codes] = codes
        flat[rows, layout.rope] = np.ascontiguousarray(rope[rows]).view(np.uint8)
        flat[rows, layout.scales] = scales.view(np.uint8)
    return packed


def unpack_kv(
    packed: npt.NDArray[Any], kv_dtype: str | None, rope_dtype: npt.DTypeLike, byte_order: str = "ascend"
) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    """Dequantised nope values and rope values of packed cache rows.

    Args:
        packed: [..., 656]; int8, float8_e4m3fn, or uint8 holding the codes of kv_dtype.
        kv_dtype: "int8", "float8_e4m3" or "hifloat8"; None leaves it to packed's dtype.
        rope_dtype: float16 or bfloat16.
        byte_order: "ascend" or "flashmla".

    Returns:
        nope float32 [..., 512], code times scale, and rope [..., 64] in rope_dtype.

    Raises:
        TypeError: packed or rope_dtype is of another dtype, or packed contradicts kv_dtype.
        ValueError: a shape, format or order that is not allowed.
    """
    packed = as_array("packed", packed)
    kv_dtype = resolve_kv_dtype(packed.dtype, kv_dtype, name="packed")
    byte_order = resolve_byte_order(byte_order)
    try:
        rope_kind = np.dtype(rope_dtype)
    except TypeError as error:
        raise TypeError(f"rope_dtype is {rope_dtype!r}; allowed: float16, bfloat16") from error
    _check_dtype("rope_dtype", rope_kind, QUERY_DTYPES)
    check_shape("packed", packed.shape, (*packed.shape[:-1], ROW_BYTES))

    leading = packed.shape[:-1]
    flat = packed.view(np.uint8).reshape(-1, ROW_BYTES)
    nope = np.empty((len(flat), NOPE_DIM), np.float32)
    for start in range(0, len(flat), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        nope[rows] = dequantise(flat[rows], kv_dtype, byte_order)
    rope = rope_values(flat, rope_kind, byte_order)
    return nope.reshape(*leading, NOPE_DIM), rope.reshape(*leading, ROPE_DIM)


def dequantise(rows: npt.NDArray[np.uint8], kv_dtype: str, byte_order: str) -> npt.NDArray[np.float32]:
    """Code times scale in float32, [n, 512], of packed rows [n, 656]."""
    layout = ROW_LAYOUTS[byte_order]
    scales = np.ascontiguousarray(rows[:, layout.scales]).view(np.float32)
    nope = decode_table(kv_dtype)[rows[:, layout.codes]].reshape(-1, _TILES, TILE_SIZE)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nope *= scales[:, :, None]
    return nope.reshape(-1, NOPE_DIM)


def rope_values(rows: npt.NDArray[np.uint8], dtype: np.dtype[Any], byte_order: str) -> npt.NDArray[Any]:
    """The rope values, [n, 64], of packed rows [n, 656]."""
    return np.ascontiguousarray(rows[:, ROW_LAYOUTS[byte_order].rope]).view(dtype)


def _check_dtype(name: str, dtype: np.dtype[Any], allowed: tuple[np.dtype[Any], ...]) -> None:
    if dtype not in allowed:
        raise TypeError(f"{name} is dtype {dtype}; allowed: {', '.join(map(str, allowed))}")


def _quantise(nope: npt.NDArray[Any], kv_dtype: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Codes [n, 512] and scales [n, 4] of a chunk [n, 512]."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        tiles = nope.astype(np.float32).reshape(-1, _TILES, TILE_SIZE)
        magnitudes = np.abs(tiles)
        largest = magnitudes.max(axis=-1)
        if not np.isfinite(largest).all():
            _refuse_without_code(tiles, kv_dtype)
            largest = np.where(np.isfinite(magnitudes), magnitudes, np.float32(0)).max(axis=-1)
        scales = np.maximum(largest / np.float32(_LARGEST_CODES[kv_dtype]), _SMALLEST_SCALE)
        scales[largest == 0] = 1
        tiles /= scales[:, :, None]
        return encode(tiles, kv_dtype).reshape(-1, NOPE_DIM), scales


def _refuse_without_code(tiles: npt.NDArray[np.float32], kv_dtype: str) -> None:
    """NaN and infinity must not turn into finite numbers."""
    if kv_dtype == "int8" and np.isnan(tiles).any():
        raise ValueError("nope holds NaN; allowed: finite values, int8 has no code for it")
    if kv_dtype != "hifloat8" and np.isinf(tiles).any():
        raise ValueError(
            f"nope holds values that are infinite in float32; {kv_dtype} has no code for infinity"
        )
