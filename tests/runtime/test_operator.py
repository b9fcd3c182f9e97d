"""The operator on compiled kernels: values that are known exactly, and special ones."""

from __future__ import annotations

from typing import Any

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from calls import LAYOUTS
from compiled import QUERY_DTYPES, aligned, arguments_of, check, run
from matrix.cases import find
from plain import Arguments, cache_index, rows_of

from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.packing import ROW_LAYOUTS, unpack_kv

Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
ORACLES = {"float8_e4m3": ml_dtypes.float8_e4m3fn, "hifloat8": en_dtypes.hifloat8}
by_formats = pytest.mark.parametrize(
    "spec",
    [find(kv_dtype=kv, query_dtype=query) for kv in CODE_FORMATS for query in QUERY_DTYPES],
    ids=lambda spec: f"{spec.kv_dtype}-{spec.query_dtype}",
)
BSND, RAGGED_PAGED = (
    find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=3, sparse_block_size=1)
    for layouts in (LAYOUTS[0], LAYOUTS[3])
)
by_kernel = pytest.mark.parametrize(
    "spec", [BSND, RAGGED_PAGED], ids=lambda spec: f"{spec.layout_query}-{spec.layout_kv}"
)


def set_part(arguments: Arguments, b: int, token: int, part: str, values: Any, at: int = 0) -> None:
    """Write codes (uint8), rope values or scales of one cached token, from column `at` on."""
    dtype = {"codes": np.dtype(np.uint8), "rope": arguments["query"].dtype, "scales": np.dtype(np.float32)}[
        part
    ]
    data = np.atleast_1d(np.asarray(values)).astype(dtype).view(np.uint8)
    start = getattr(ROW_LAYOUTS[arguments["byte_order"]], part).start + at * dtype.itemsize
    row = arguments["key"].view(np.uint8)[cache_index(arguments, b, token)][0]
    row[start : start + data.size] = data


def one_token(spec: KernelSpec, token: int = 5) -> Arguments:
    """Two requests of one query row each, which attend to one token, the last one that they have."""
    count = token * spec.sparse_block_size + 1
    arguments = arguments_of(spec, query_counts=(1, 1), kv_counts=(count, count), selected=1)
    arguments[IDS][...] = token
    return arguments


# One token: exact values.


@pytest.mark.parametrize("byte_order", ["ascend", "flashmla"])
@pytest.mark.parametrize("query_dtype", QUERY_DTYPES)
@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
def test_one_token_is_returned_as_its_dequantised_row(
    kv_dtype: str, query_dtype: str, byte_order: str
) -> None:
    spec = find(kv_dtype=kv_dtype, query_dtype=query_dtype, byte_order=byte_order)
    arguments = one_token(spec)
    output, _ = check(arguments)
    dtype = arguments["query"].dtype
    nope, _ = unpack_kv(arguments["key"], kv_dtype, dtype, byte_order)
    for row, b, _ in rows_of(arguments):
        expected = nope[cache_index(arguments, b, 5 * spec.sparse_block_size)][0].astype(dtype)
        own = output[row].astype(np.float32)
        np.testing.assert_array_equal(own, np.broadcast_to(expected.astype(np.float32), own.shape))


@pytest.mark.parametrize("query_dtype", QUERY_DTYPES)
@pytest.mark.parametrize("kv_dtype", ORACLES)
def test_every_code_decodes_exactly(kv_dtype: str, query_dtype: str) -> None:
    """Finite codes column by column; a NaN code makes a row NaN; infinities by what they do to a score."""
    spec = find(kv_dtype=kv_dtype, query_dtype=query_dtype)
    arguments = one_token(spec)
    dtype, last = arguments["query"].dtype, 5 * spec.sparse_block_size
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(ORACLES[kv_dtype]).astype(np.float32)
    finite = np.flatnonzero(np.isfinite(values))
    assert len(finite) == {"float8_e4m3": 254, "hifloat8": 253}[kv_dtype]
    for b in range(2):
        set_part(arguments, b, last, "codes", np.resize(codes[finite], 512))
        set_part(arguments, b, last, "scales", np.ones(4))
    # Codes of 32768 cancel in a score: small factors keep what float32 loses there out of the lse.
    arguments["scale_value"] = 2.0**-20
    output, _ = run(arguments)
    expected = np.resize(values[finite], 512).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(output.astype(np.float32), np.broadcast_to(expected, output.shape))
    np.testing.assert_array_equal(expected, np.resize(values[finite], 512))

    arguments["query"] = np.full_like(arguments["query"], 1)
    for code in np.flatnonzero(~np.isfinite(values)):
        changed = arguments | {"key": aligned(arguments["key"]), "value": None}
        set_part(changed, 1, last, "codes", [code], at=int(code))
        output, lse = check(changed)
        first, second = output.reshape(2, -1).astype(np.float32)
        assert np.isfinite(first).all()
        assert np.isnan(second).all()
        expected_lse = values[code]  # a query of ones: the score is NaN, inf or -inf like the code
        np.testing.assert_array_equal(lse.reshape(2, -1)[1], np.full(spec.heads, expected_lse))


@pytest.mark.parametrize("query_dtype", QUERY_DTYPES)
def test_every_int8_code_decodes_exactly(query_dtype: str) -> None:
    spec = find(kv_dtype="int8", query_dtype=query_dtype)
    arguments = one_token(spec)
    for b in range(2):
        set_part(arguments, b, 5 * spec.sparse_block_size, "codes", np.resize(np.arange(256), 512))
        set_part(arguments, b, 5 * spec.sparse_block_size, "scales", [1, 0.5, 1, -2])
    output, _ = run(arguments)
    values = np.resize(np.arange(256, dtype=np.uint8).view(np.int8), 512).astype(np.float32)
    expected = values * np.repeat([1, 0.5, 1, -2], 128)
    np.testing.assert_array_equal(output.astype(np.float32), np.broadcast_to(expected, output.shape))


# NaN, infinity and extreme scores, where they are selected.

CHANGES: dict[str, list[tuple[str, Any, int]]] = {
    "nan rope": [("rope", np.nan, 3)],
    "inf rope": [("rope", np.inf, 63)],
    "-inf rope": [("rope", -np.inf, 0)],
    "nan scale": [("scales", np.nan, 1)],
    "inf scale": [("scales", np.inf, 3)],
    "inf scale of positive codes": [("codes", np.full(128, 8), 128), ("scales", np.inf, 1)],
    "-inf scale of positive codes": [("codes", np.full(128, 8), 128), ("scales", -np.inf, 1)],
    "inf scale of codes 0": [("codes", np.zeros(128), 0), ("scales", np.inf, 0)],
    "scale that overflows": [("scales", 3e38, 2)],
    "scale 0": [("scales", 0, 0)],
    "code 0x6F": [("codes", 0x6F, 100)],
    "code 0xEF": [("codes", 0xEF, 100)],
    "code 0x7F": [("codes", 0x7F, 511)],
    "code 0xFF": [("codes", 0xFF, 0)],
    "code 0x80": [("codes", 0x80, 0)],
}
"""Parts of one token's row: part, values, first column."""


@by_formats
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("changes", CHANGES)
def test_a_special_value_in_a_selected_row(spec: KernelSpec, changes: str, place: str) -> None:
    """Its request has three key blocks, and NaN and infinity stand exactly where the reference has them."""
    block = spec.sparse_block_size
    count = -(-600 // block)
    arguments = arguments_of(
        spec, query_counts=(2, 2), kv_counts=(count * block, count * block), selected=count
    )
    arguments[IDS][...] = np.arange(count)
    arguments["query"] = np.abs(arguments["query"])
    token = 1 if place == "first" else count * block - 2
    for part, values, at in CHANGES[changes]:
        set_part(arguments, 0, token, part, values, at)
    output, lse = check(arguments)
    for row, b, _ in rows_of(arguments):
        if b == 1:
            assert np.isfinite(output[row].astype(np.float32)).all()
            assert np.isfinite(lse[row]).all()


@by_formats
def test_scores_of_minus_infinity_alone_are_0_over_0(spec: KernelSpec) -> None:
    arguments = one_token(spec)
    arguments["query"] = np.abs(arguments["query"])
    set_part(arguments, 0, 5 * spec.sparse_block_size, "rope", -np.inf)
    output, lse = check(arguments)
    assert np.isnan(output.reshape(2, -1)[0].astype(np.float32)).all()
    assert np.isneginf(lse.reshape(2, -1)[0]).all()


@by_kernel
@pytest.mark.parametrize("scale", [0, -0.0, 1e-30, 0.3, -0.05, -3.0])
def test_scales(spec: KernelSpec, scale: float) -> None:
    arguments = arguments_of(spec, kv_counts=(300, 280), selected=290, zero_mean=True)
    _, lse = check(arguments | {"scale_value": scale})
    if abs(scale) < 1e-20:
        arguments[IDS][...] = np.arange(290)
        output, lse = check(arguments | {"scale_value": scale, "sparse_mode": 3})
        row, b, _ = rows_of(arguments)[-1]
        nope, _ = unpack_kv(arguments["key"], spec.kv_dtype, output.dtype, spec.byte_order)
        tokens = [nope[cache_index(arguments, b, token)][0] for token in range(280)]
        mean = np.array(tokens).astype(output.dtype).astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(output[row].astype(np.float64), np.tile(mean, (spec.heads, 1)), atol=2e-3)
        np.testing.assert_allclose(lse[row], np.log(280), rtol=1e-6)


@by_kernel
@pytest.mark.parametrize("sign", [1, -1])
def test_logits_of_ten_thousand(spec: KernelSpec, sign: int) -> None:
    arguments = arguments_of(spec, kv_counts=(300, 280), selected=290)
    arguments["query"] = np.abs(arguments["query"]) * arguments["query"].dtype.type(4)
    arguments["scale_value"] = sign * 60.0
    _, lse = check(arguments)
    assert np.abs(lse).max() > 2e4
    assert np.isfinite(lse).all()
