from __future__ import annotations

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsmla.ir.codes import CODE_FORMATS, decode_table, encode, max_finite

FLOAT_FORMATS = ("float8_e4m3", "hifloat8")
ORACLES = {"int8": np.int8, "float8_e4m3": ml_dtypes.float8_e4m3fn, "hifloat8": en_dtypes.hifloat8}
ALL_CODES = np.arange(256, dtype=np.uint8)


def exact_nearest(value: float, kv_dtype: str) -> float:
    """The code value nearest to a float64, by search; ties as the format has them; saturating."""
    table = decode_table(kv_dtype).astype(np.float64)
    candidates = np.unique(table[np.isfinite(table)])
    if kv_dtype == "int8":
        candidates = candidates[1:]  # -128 is not used
    distance = np.abs(candidates - value)
    nearest = candidates[distance == distance.min()]
    if len(nearest) == 1:
        return float(nearest[0])
    if kv_dtype == "hifloat8":
        return float(nearest[np.abs(nearest).argmax()])
    codes = [int(np.flatnonzero(table == candidate)[0]) for candidate in nearest]
    return float(nearest[[code % 2 for code in codes].index(0)])


@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
def test_every_code_decodes_as_the_oracle_has_it(kv_dtype: str) -> None:
    oracle = ALL_CODES.view(ORACLES[kv_dtype]).astype(np.float32)
    np.testing.assert_array_equal(decode_table(kv_dtype), oracle)


@pytest.mark.parametrize(
    ("kv_dtype", "finite", "nan"), [("int8", 256, 0), ("float8_e4m3", 254, 2), ("hifloat8", 253, 1)]
)
def test_number_of_finite_and_nan_codes(kv_dtype: str, finite: int, nan: int) -> None:
    table = decode_table(kv_dtype)
    assert np.count_nonzero(np.isfinite(table)) == finite
    assert np.count_nonzero(np.isnan(table)) == nan


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (0x00, 0.0),
        (0x6F, np.inf),
        (0xEF, -np.inf),
        (0x6E, 32768.0),
        (0x01, 2.0**-22),
        (0x07, 2.0**-16),
        (0x08, 1.0),
    ],
)
def test_named_hifloat8_codes(code: int, value: float) -> None:
    assert decode_table("hifloat8")[code] == value
    assert np.isnan(decode_table("hifloat8")[0x80])


@pytest.mark.parametrize(
    ("kv_dtype", "largest"), [("int8", 127.0), ("float8_e4m3", 448.0), ("hifloat8", 32768.0)]
)
def test_max_finite(kv_dtype: str, largest: float) -> None:
    assert max_finite(kv_dtype) == largest


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        decode_table("int8")[0] = 1


@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_every_value_of_a_format_encodes_to_its_own_code(kv_dtype: str, dtype: type) -> None:
    table = decode_table(kv_dtype)
    # float16 does not hold hifloat8's whole range, int8's -128 is not used.
    held = (table.astype(dtype).astype(np.float32) == table) & (np.abs(table) <= max_finite(kv_dtype))
    assert held.sum() > 200
    np.testing.assert_array_equal(encode(table[held].astype(dtype), kv_dtype), ALL_CODES[held])


@pytest.mark.parametrize("kv_dtype", FLOAT_FORMATS)
def test_encoding_agrees_with_the_oracle_at_and_beside_every_midpoint(kv_dtype: str) -> None:
    table = decode_table(kv_dtype)
    values = np.unique(table[np.isfinite(table)])
    midpoints = (values[1:] + values[:-1]) / 2  # exact: float32 has bits to spare
    probes = np.concatenate(
        [midpoints, np.nextafter(midpoints, np.float32(-np.inf)), np.nextafter(midpoints, np.float32(np.inf))]
    )
    np.testing.assert_array_equal(encode(probes, kv_dtype), probes.astype(ORACLES[kv_dtype]).view(np.uint8))


@pytest.mark.parametrize("kv_dtype", FLOAT_FORMATS)
def test_encoding_agrees_with_the_oracle_over_all_float32_bit_patterns(kv_dtype: str) -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 1_000_000, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    with np.errstate(all="ignore"):  # signalling NaNs
        # The oracles do not saturate.
        inside = ~(np.abs(values) > max_finite(kv_dtype))
        values = values[inside]
        expected = values.astype(ORACLES[kv_dtype]).view(np.uint8)
        codes = encode(values, kv_dtype)
    assert np.isnan(values).any()
    np.testing.assert_array_equal(codes, expected)


@given(
    value=st.floats(-40000, 40000) | st.floats(-2, 2) | st.floats(-1e-5, 1e-5),
    kv_dtype=st.sampled_from(CODE_FORMATS),
)
@settings(deadline=None)
def test_float64_is_rounded_once(value: float, kv_dtype: str) -> None:
    code = encode(np.array([value]), kv_dtype)[0]
    assert decode_table(kv_dtype)[code] == exact_nearest(value, kv_dtype)


@pytest.mark.parametrize(
    ("kv_dtype", "value", "decoded"),
    [
        # Each lies a hair on one side of a midpoint, where float32 lands on the midpoint itself.
        ("float8_e4m3", 1.0625 + 1e-12, 1.125),
        ("float8_e4m3", 1.1875 - 1e-12, 1.125),
        ("hifloat8", 4.25 - 1e-12, 4.0),
        ("hifloat8", 4.25, 4.5),
        ("int8", 2.5 + 1e-12, 3.0),
    ],
)
def test_float64_beside_a_midpoint(kv_dtype: str, value: float, decoded: float) -> None:
    assert decode_table(kv_dtype)[encode(np.array([value, -value]), kv_dtype)].tolist() == [decoded, -decoded]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kv_dtype", "value", "code"),
    [
        ("int8", np.nan, 0),
        ("int8", np.inf, 127),
        ("int8", -np.inf, 0x81),
        ("int8", -128.0, 0x81),
        ("int8", 1e30, 127),
        ("int8", 0.5, 0),
        ("int8", 1.5, 2),
        ("float8_e4m3", np.nan, 0x7F),
        ("float8_e4m3", np.inf, 0x7E),
        ("float8_e4m3", -1e30, 0xFE),
        ("float8_e4m3", 1e-30, 0x00),
        ("float8_e4m3", -1e-30, 0x80),
        ("hifloat8", np.nan, 0x80),
        ("hifloat8", np.inf, 0x6F),
        ("hifloat8", -np.inf, 0xEF),
        ("hifloat8", 1e30, 0x6E),
        ("hifloat8", -40961.0, 0xEE),
        ("hifloat8", 2.0**-23, 0x01),
        ("hifloat8", 2.0**-23 * 0.999, 0x00),
        ("hifloat8", -1e-30, 0x00),
        ("hifloat8", -0.0, 0x00),
    ],
)
def test_ends_of_the_range(kv_dtype: str, value: float, code: int, dtype: type) -> None:
    assert encode(np.array([value], dtype), kv_dtype).tolist() == [code]


def test_a_float64_beyond_float32_saturates() -> None:
    assert encode(np.array([1e300, -1e300]), "hifloat8").tolist() == [0x6E, 0xEE]


@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
def test_shape_and_strides_are_kept(kv_dtype: str) -> None:
    values = np.random.default_rng(1).standard_normal((4, 6, 10)).astype(np.float32) * 5
    view = values.transpose(2, 0, 1)[::2]
    np.testing.assert_array_equal(encode(view, kv_dtype), encode(view.copy(), kv_dtype))
    assert encode(values[0, 0, 0:1].reshape(()), kv_dtype).shape == ()
    assert encode(values[:0], kv_dtype).shape == (0, 6, 10)


@pytest.mark.parametrize("call", [decode_table, max_finite, lambda name: encode(np.zeros(1), name)])
def test_an_unknown_format_is_refused(call: object) -> None:
    with pytest.raises(ValueError, match="kv_dtype is 'e5m2'; allowed: int8, float8_e4m3, hifloat8"):
        call("e5m2")  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [np.int32, ">f4", np.complex64, bool])
def test_values_of_another_dtype_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError, match="values has dtype"):
        encode(np.zeros(2, dtype), "int8")
