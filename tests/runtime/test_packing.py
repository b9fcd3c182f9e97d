from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from calls import BFLOAT16, normal

import qsmla
from qsmla.ir.codes import CODE_FORMATS, decode_table
from qsmla.runtime.packing import pack_kv, unpack_kv

ROPE_DTYPES = (BFLOAT16, np.dtype(np.float16))
NOPE_DTYPES = (*ROPE_DTYPES, np.dtype(np.float32), np.dtype(np.float64))
LARGEST = {"int8": 127.0, "float8_e4m3": 448.0, "hifloat8": 16.0}
# Largest error of one value, as a part of its tile's largest: half a step of the format at the top.
HALF_STEP = {"int8": 0.5 / 127, "float8_e4m3": 16 / 448, "hifloat8": 0.5 / 16}
each_format = pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
each_order = pytest.mark.parametrize("byte_order", ["ascend", "flashmla"])


def latents(
    rows: int | tuple[int, ...] = 6, dtype: Any = BFLOAT16, seed: int = 0
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    generator = np.random.default_rng(seed)
    shape = (rows,) if isinstance(rows, int) else rows
    return normal(generator, (*shape, 512), dtype), normal(generator, (*shape, 64))


@each_format
@each_order
@pytest.mark.parametrize("rope_dtype", ROPE_DTYPES, ids=str)
def test_the_bytes_of_a_row(kv_dtype: str, byte_order: str, rope_dtype: Any) -> None:
    nope, rope = latents(3)
    rope = rope.astype(rope_dtype)
    packed = pack_kv(nope, rope, kv_dtype, byte_order)
    for row in range(3):
        raw = packed[row].tobytes()
        assert len(raw) == 656
        codes = np.frombuffer(raw[:512], np.uint8)
        rope_bytes, scale_bytes = (
            (raw[512:640], raw[640:]) if byte_order == "ascend" else (raw[528:], raw[512:528])
        )
        assert rope_bytes == rope[row].tobytes()
        scales = np.array(struct.unpack("<4f", scale_bytes), np.float32)
        tiles = nope[row].astype(np.float32).reshape(4, 128)
        largest = np.abs(tiles).max(axis=1)
        np.testing.assert_array_equal(scales, largest / np.float32(LARGEST[kv_dtype]))
        values = decode_table(kv_dtype)[codes].reshape(4, 128) * scales[:, None]
        assert (np.abs(values - tiles) <= HALF_STEP[kv_dtype] * 1.0001 * largest[:, None]).all()
        # The tile's largest value is the format's largest code (or the power of two) itself.
        np.testing.assert_allclose(np.abs(values).max(axis=1), largest, rtol=1e-6)


@pytest.mark.parametrize(
    ("kv_dtype", "dtype"),
    [("int8", np.int8), ("float8_e4m3", ml_dtypes.float8_e4m3fn), ("hifloat8", np.uint8)],
)
def test_dtype_and_alignment_of_a_packed_cache(kv_dtype: str, dtype: Any) -> None:
    packed = pack_kv(*latents((3, 16, 1)), kv_dtype)
    assert packed.dtype == dtype
    assert packed.shape == (3, 16, 1, 656)
    assert packed.ctypes.data % 64 == 0
    assert packed.flags.c_contiguous


@each_format
@each_order
@pytest.mark.parametrize("rope_dtype", ROPE_DTYPES, ids=str)
def test_unpacking_gives_codes_times_scales_and_the_rope_bits(
    kv_dtype: str, byte_order: str, rope_dtype: Any
) -> None:
    generator = np.random.default_rng(5)
    scales = generator.uniform(0.1, 3, (4, 4)).astype(np.float32)
    codes = generator.integers(0, 256, (4, 512), dtype=np.uint8)
    rope = generator.integers(0, 2**16, (4, 64), dtype=np.uint16)
    parts = [codes, rope.view(np.uint8), scales.view(np.uint8)]
    if byte_order == "flashmla":
        parts[1:] = parts[:0:-1]
    packed = np.concatenate(parts, axis=1)
    with np.errstate(invalid="ignore"):
        expected = decode_table(kv_dtype)[codes] * np.repeat(scales, 128, axis=1)
    nope, unpacked_rope = unpack_kv(packed, kv_dtype, rope_dtype, byte_order)
    assert (nope.dtype, unpacked_rope.dtype) == (np.float32, rope_dtype)
    np.testing.assert_array_equal(nope, expected)
    np.testing.assert_array_equal(unpacked_rope.view(np.uint16), rope)


@each_format
@each_order
def test_packing_what_was_unpacked_changes_no_value(kv_dtype: str, byte_order: str) -> None:
    packed = pack_kv(*latents(40), kv_dtype, byte_order)
    nope, rope = unpack_kv(packed, kv_dtype, BFLOAT16, byte_order)
    again, rope_again = unpack_kv(pack_kv(nope, rope, kv_dtype, byte_order), kv_dtype, BFLOAT16, byte_order)
    np.testing.assert_allclose(again, nope, rtol=3e-7)
    np.testing.assert_array_equal(rope_again.view(np.uint16), rope.view(np.uint16))


@pytest.mark.parametrize(
    ("kv_dtype", "error"), [("int8", 0.008), ("float8_e4m3", 0.027), ("hifloat8", 0.027)]
)
def test_error_on_gaussian_latents(kv_dtype: str, error: float) -> None:
    """Error over the values, root mean square; hifloat8 scaled to its largest code would give 0.1."""
    nope, rope = latents(2000, np.float32)
    unpacked, _ = unpack_kv(pack_kv(nope, rope, kv_dtype), kv_dtype, BFLOAT16)
    assert np.sqrt(((unpacked - nope) ** 2).mean() / (nope**2).mean()) < error


@each_format
@pytest.mark.parametrize("dtype", NOPE_DTYPES, ids=str)
def test_every_float_dtype_packs_as_its_float32(kv_dtype: str, dtype: Any) -> None:
    nope, rope = latents(5, dtype)
    expected = pack_kv(nope.astype(np.float32), rope, kv_dtype)
    np.testing.assert_array_equal(pack_kv(nope, rope, kv_dtype).view(np.uint8), expected.view(np.uint8))


@each_format
def test_an_all_zero_tile_has_scale_1(kv_dtype: str) -> None:
    nope, rope = latents(2)
    nope[:, 128:256] = 0
    packed = pack_kv(nope, rope, kv_dtype)
    assert packed[:, 640:].copy().view(np.float32)[:, 1].tolist() == [1.0, 1.0]
    assert not unpack_kv(packed, kv_dtype, BFLOAT16)[0][:, 128:256].any()


@each_format
def test_a_tile_of_denormal_values_keeps_a_normal_scale(kv_dtype: str) -> None:
    nope = np.full((1, 512), 1e-44, np.float32)
    packed = pack_kv(nope, np.zeros((1, 64), BFLOAT16), kv_dtype)
    scales = packed[:, 640:].copy().view(np.float32)
    assert (scales >= np.finfo(np.float32).tiny).all()
    assert np.isfinite(unpack_kv(packed, kv_dtype, BFLOAT16)[0]).all()


@each_format
def test_the_largest_float32_survives(kv_dtype: str) -> None:
    largest = np.finfo(np.float32).max
    nope = np.full((1, 512), largest, np.float32)
    nope[0, ::2] *= -1
    unpacked, _ = unpack_kv(pack_kv(nope, np.zeros((1, 64), BFLOAT16), kv_dtype), kv_dtype, BFLOAT16)
    np.testing.assert_allclose(np.minimum(np.abs(unpacked), largest), np.abs(nope), rtol=1e-6)
    np.testing.assert_array_equal(np.sign(unpacked), np.sign(nope))


@pytest.mark.parametrize("kv_dtype", ["float8_e4m3", "hifloat8"])
def test_nan_becomes_the_nan_code_and_spoils_no_neighbour(kv_dtype: str) -> None:
    nope, rope = latents(2)
    clean, _ = unpack_kv(pack_kv(nope, rope, kv_dtype), kv_dtype, BFLOAT16)
    place = int(np.abs(nope[0, :128].astype(np.float32)).argmin())
    nope[0, place] = np.nan
    unpacked, _ = unpack_kv(pack_kv(nope, rope, kv_dtype), kv_dtype, BFLOAT16)
    assert np.argwhere(np.isnan(unpacked)).tolist() == [[0, place]]
    keep = ~np.isnan(unpacked)
    np.testing.assert_array_equal(unpacked[keep], clean[keep])


def test_infinity_becomes_hifloat8s_infinity() -> None:
    nope, rope = latents(2)
    nope[1, [5, 300]] = [np.inf, -np.inf]
    unpacked, _ = unpack_kv(pack_kv(nope, rope, "hifloat8"), "hifloat8", BFLOAT16)
    assert np.argwhere(np.isinf(unpacked)).tolist() == [[1, 5], [1, 300]]
    assert unpacked[1, [5, 300]].tolist() == [np.inf, -np.inf]
    assert not np.isnan(unpacked).any()


def test_a_tile_of_nothing_but_nan() -> None:
    nope, rope = latents(1)
    nope[:, :128] = np.nan
    packed = pack_kv(nope, rope, "float8_e4m3")
    assert packed.view(np.uint8)[0, 640:].copy().view(np.float32)[0] == 1
    assert np.isnan(unpack_kv(packed, None, BFLOAT16)[0][:, :128]).all()


@pytest.mark.parametrize(
    ("kv_dtype", "value", "text"),
    [
        ("int8", np.nan, "^nope holds NaN"),
        ("int8", np.inf, "^nope holds values that are infinite in float32; int8 has no code"),
        ("int8", 1e300, "^nope holds values that are infinite in float32"),
        ("float8_e4m3", -np.inf, "^nope holds values that are infinite in float32; float8_e4m3 has no code"),
    ],
)
def test_a_value_without_a_code_is_refused(kv_dtype: str, value: float, text: str) -> None:
    nope, rope = latents(700, np.float64)
    nope[650, 3] = value
    with pytest.raises(ValueError, match=text):
        pack_kv(nope, rope, kv_dtype)


@each_format
@pytest.mark.parametrize(
    "rows", [(0,), (3, 0, 1), (511,), (512,), (513,), (1100, 1), (2, 3, 5, 1), ()], ids=str
)
def test_any_number_of_rows(kv_dtype: str, rows: tuple[int, ...]) -> None:
    nope, rope = latents(rows)
    packed = pack_kv(nope, rope, kv_dtype)
    assert packed.shape == (*rows, 656)
    unpacked, unpacked_rope = unpack_kv(packed, kv_dtype, BFLOAT16)
    assert (unpacked.shape, unpacked_rope.shape) == ((*rows, 512), (*rows, 64))
    single = [
        pack_kv(n, r, kv_dtype) for n, r in zip(nope.reshape(-1, 512), rope.reshape(-1, 64), strict=True)
    ]
    for row, expected in zip(packed.reshape(-1, 656), single, strict=True):
        np.testing.assert_array_equal(row.view(np.uint8), expected.view(np.uint8))


@each_format
def test_strided_arrays(kv_dtype: str) -> None:
    both = normal(np.random.default_rng(0), (2, 20, 576))[:, ::2][::-1]
    packed = pack_kv(both[..., :512], both[..., 512:], kv_dtype)
    np.testing.assert_array_equal(
        packed.view(np.uint8),
        pack_kv(both[..., :512].copy(), both[..., 512:].copy(), kv_dtype).view(np.uint8),
    )
    spread = np.repeat(packed, 2, axis=1)[:, ::2]
    for strided, plain in zip(
        unpack_kv(spread, kv_dtype, BFLOAT16), unpack_kv(packed, kv_dtype, BFLOAT16), strict=True
    ):
        np.testing.assert_array_equal(strided.view(np.uint8), plain.view(np.uint8))


def pack_arguments(**changes: Any) -> dict[str, Any]:
    nope, rope = latents(2)
    return {"nope": nope, "rope": rope, "kv_dtype": "int8", "byte_order": "ascend"} | changes


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"nope": [[1.0] * 512] * 2}, TypeError, "^nope is .*; allowed: a NumPy array"),
        (
            {"nope": np.zeros((2, 512), np.int8)},
            TypeError,
            "^nope is dtype int8; allowed: float16, bfloat16, float32, float64",
        ),
        ({"nope": np.zeros((2, 512), ">f4")}, TypeError, "^nope is dtype >f4"),
        (
            {"nope": np.zeros((2, 511), np.float32)},
            ValueError,
            r"^nope has shape \(2, 511\); allowed: \[2, 512\]",
        ),
        ({"nope": np.zeros((), np.float32)}, ValueError, r"^nope has shape \(\); allowed: \[512\]"),
        ({"rope": None}, TypeError, "^rope is None"),
        (
            {"rope": np.zeros((2, 64), np.float32)},
            TypeError,
            "^rope is dtype float32; allowed: float16, bfloat16",
        ),
        (
            {"rope": np.zeros((2, 65), np.float16)},
            ValueError,
            r"^rope has shape \(2, 65\); allowed: \[2, 64\]",
        ),
        (
            {"rope": np.zeros((3, 64), np.float16)},
            ValueError,
            r"^rope has shape \(3, 64\); allowed: \[2, 64\]",
        ),
        ({"kv_dtype": "fp8"}, ValueError, "^kv_dtype is 'fp8'; allowed: int8, float8_e4m3, hifloat8"),
        ({"kv_dtype": None}, TypeError, "^kv_dtype is None"),
        ({"byte_order": "little"}, ValueError, "^byte_order is 'little'; allowed: ascend, flashmla"),
        ({"byte_order": 1}, TypeError, "^byte_order is 1"),
    ],
)
def test_what_pack_kv_refuses(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pack_kv(**pack_arguments(**changes))


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"packed": b"0" * 656}, TypeError, "^packed is .*; allowed: a NumPy array"),
        (
            {"packed": np.zeros((2, 656), np.int16)},
            TypeError,
            "^packed is dtype int16; allowed: int8, float8_e4m3fn, uint8",
        ),
        (
            {"packed": np.zeros((2, 655), np.int8)},
            ValueError,
            r"^packed has shape \(2, 655\); allowed: \[2, 656\]",
        ),
        ({"packed": np.zeros((), np.int8)}, ValueError, r"^packed has shape \(\); allowed: \[656\]"),
        ({"kv_dtype": "hifloat8"}, TypeError, "^packed is dtype int8 and kv_dtype is 'hifloat8'"),
        (
            {"kv_dtype": None, "packed": np.zeros((2, 656), np.uint8)},
            ValueError,
            "^kv_dtype is None; allowed: ",
        ),
        ({"rope_dtype": np.float32}, TypeError, "^rope_dtype is dtype float32; allowed: float16, bfloat16"),
        ({"rope_dtype": "no dtype"}, TypeError, "^rope_dtype is 'no dtype'; allowed: float16, bfloat16"),
        ({"byte_order": "little"}, ValueError, "^byte_order is 'little'"),
    ],
)
def test_what_unpack_kv_refuses(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    arguments = {
        "packed": np.zeros((2, 656), np.int8),
        "kv_dtype": "int8",
        "rope_dtype": BFLOAT16,
        "byte_order": "ascend",
    }
    with pytest.raises(error, match=text):
        unpack_kv(**arguments | changes)


@pytest.mark.parametrize("rope_dtype", ["bfloat16", ml_dtypes.bfloat16, BFLOAT16], ids=str)
def test_rope_dtype_by_name_type_or_dtype(rope_dtype: Any) -> None:
    packed = pack_kv(*latents(1), "int8")
    assert unpack_kv(packed, None, rope_dtype)[1].dtype == BFLOAT16


def test_they_are_public() -> None:
    assert (qsmla.pack_kv, qsmla.unpack_kv) == (pack_kv, unpack_kv)
