"""The reference's numbers, against a plain loop and known values, and its public face."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from calls import BFLOAT16, LAYOUTS, legal_arguments, normal
from plain import Arguments, assert_same_bits, bits, plain_attention, rows_of, run
from tolerance import assert_close

import qsmla
from qsmla.ir.codes import CODE_FORMATS, decode_table
from qsmla.runtime.checks import check_call
from qsmla.runtime.packing import ROW_LAYOUTS, unpack_kv
from qsmla.runtime.reference import attend, kv_quant_sparse_flash_attention

PLAIN, RAGGED, PAGED, RAGGED_PAGED = LAYOUTS
Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
by_layout = pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)


@by_layout
@pytest.mark.parametrize("query_dtype", [BFLOAT16, np.dtype(np.float16)], ids=str)
@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
@pytest.mark.parametrize(
    ("block", "mode", "byte_order"),
    [(1, 0, "ascend"), (1, 3, "flashmla"), (4, 3, "ascend"), (16, 0, "flashmla")],
)
def test_against_a_plain_loop(
    layouts: tuple[str, str], query_dtype: Any, kv_dtype: str, block: int, mode: int, byte_order: str
) -> None:
    arguments = legal_arguments(
        *layouts,
        query_counts=(2, 3),
        kv_counts=(37, 21),
        query_dtype=query_dtype,
        kv_dtype=kv_dtype,
        byte_order=byte_order,
        sparse_block_size=block,
        sparse_mode=mode,
    )
    output, lse = plain_attention(arguments)
    attended = attend(check_call(**arguments))
    np.testing.assert_allclose(attended.output.reshape(output.shape), output, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(attended.lse.reshape(lse.shape), lse, rtol=1e-12, atol=1e-12)
    rounded, rounded_lse = run(arguments)
    assert (rounded.dtype, rounded.shape, rounded_lse.dtype) == (query_dtype, output.shape, np.float32)
    assert_close(rounded, attended, rounded_lse)


# Numbers.


@pytest.mark.parametrize("query_dtype", [BFLOAT16, np.dtype(np.float16)], ids=str)
@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
def test_one_token_is_returned_as_its_dequantised_row(kv_dtype: str, query_dtype: Any) -> None:
    arguments = legal_arguments(kv_dtype=kv_dtype, query_dtype=query_dtype, selected=1)
    output, _ = run(arguments)
    nope, _ = unpack_kv(arguments["key"], kv_dtype, query_dtype)
    for row, b, _ in rows_of(arguments):
        expected = nope[b, arguments[IDS][row][0, 0], 0].astype(query_dtype)
        np.testing.assert_array_equal(bits(output[row]), np.broadcast_to(bits(expected), (2, 512)))


def test_scale_0_gives_the_mean() -> None:
    arguments = legal_arguments(selected=8) | {"scale_value": 0}
    arguments[IDS][...] = np.arange(8)
    nope, _ = unpack_kv(arguments["key"], "int8", BFLOAT16)
    mean = nope[:, :8, 0].astype(BFLOAT16).astype(np.float64).mean(axis=1)
    output = attend(check_call(**arguments)).output.reshape(2, 3, 2, 512)
    np.testing.assert_allclose(
        output, np.broadcast_to(mean[:, None, None], output.shape), rtol=1e-12, atol=1e-14
    )
    assert run(arguments)[1] == pytest.approx(math.log(8))


@pytest.mark.parametrize("scale", [-0.05, 20.0, -20.0])
def test_other_scales(scale: float) -> None:
    """Logits reach 1e4 with a query of this size."""
    arguments = legal_arguments() | {"scale_value": scale}
    arguments["query"] = (arguments["query"].astype(np.float32) * 8).astype(BFLOAT16)
    output, lse = plain_attention(arguments)
    attended = attend(check_call(**arguments))
    np.testing.assert_allclose(attended.output.reshape(output.shape), output, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(attended.lse.reshape(lse.shape), lse, rtol=1e-12)


def one_request(
    *,
    scale: float = 1.0,
    codes: dict[int, int] | None = None,
    rope: dict[int, float] | None = None,
    tile_scales: dict[int, float] | None = None,
    kv_dtype: str = "float8_e4m3",
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Two tokens of ones and a query of ones; changes by token: code of column 0, rope 0, scale of tile 0."""
    key = qsmla.pack_kv(np.ones((2, 1, 512), np.float32), np.ones((2, 1, 64), BFLOAT16), kv_dtype)
    rows = key.view(np.uint8)[:, 0]
    layout = ROW_LAYOUTS["ascend"]
    for token, code in (codes or {}).items():
        rows[token, 0] = code
    for token, value in (rope or {}).items():
        rows[token, layout.rope.start : layout.rope.start + 2] = np.array([value], BFLOAT16).view(np.uint8)
    for token, value in (tile_scales or {}).items():
        rows[token, layout.scales.start : layout.scales.start + 4] = np.array([value], np.float32).view(
            np.uint8
        )
    output, lse = kv_quant_sparse_flash_attention(
        np.ones((1, 1, 576), BFLOAT16),
        key,
        key,
        np.array([[[0, 1]]], np.int32),
        scale,
        layout_query="TND",
        layout_kv="TND",
        kv_dtype=kv_dtype,
        sparse_mode=0,
        actual_seq_lengths_query=[1],
        actual_seq_lengths_kv=[2],
        return_softmax_lse=True,
    )
    return output[0, 0].astype(np.float32), lse[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"codes": {1: 0x7F}},
        {"codes": {0: 0xFF}},
        {"codes": {1: 0x80}, "kv_dtype": "hifloat8"},
        {"rope": {0: np.nan}},
        {"tile_scales": {1: np.nan}},
        {"rope": {0: np.inf}, "scale": 0.0},
        # A column of code 0 under an infinite scale.
        {"codes": {0: 0x00}, "tile_scales": {0: np.inf}},
    ],
    ids=str,
)
def test_a_selected_nan_makes_the_row_nan(changes: dict[str, Any]) -> None:
    output, lse = one_request(**changes)
    assert np.isnan(output).all()
    assert np.isnan(lse).all()


@pytest.mark.parametrize(
    "changes",
    [{"rope": {0: np.inf}}, {"tile_scales": {1: np.inf}}, {"codes": {1: 0x6F}, "kv_dtype": "hifloat8"}],
    ids=str,
)
def test_a_score_of_infinity_is_infinity_over_infinity(changes: dict[str, Any]) -> None:
    output, lse = one_request(**changes)
    assert np.isnan(output).all()
    assert np.isposinf(lse).all()


def test_a_score_of_minus_infinity_adds_nothing() -> None:
    output, lse = one_request(rope={0: -np.inf})
    np.testing.assert_array_equal(output, np.ones(512))
    assert lse == pytest.approx([576.0])


def test_an_infinite_value_at_a_weight_of_0_is_nan_in_its_columns_only() -> None:
    output, lse = one_request(tile_scales={0: -np.inf})
    assert np.isnan(output[:128]).all()
    np.testing.assert_array_equal(output[128:], np.ones(384))
    assert lse == pytest.approx([576.0])


def test_scores_of_minus_infinity_alone_are_0_over_0() -> None:
    output, lse = one_request(rope={0: -np.inf, 1: -np.inf})
    assert np.isnan(output).all()
    assert np.isneginf(lse).all()


def test_a_float16_value_that_overflows_is_infinite_and_vmax_is_the_largest_finite_one() -> None:
    nope = np.full((2, 1, 512), 2.0, np.float32)
    nope[1, 0, :128] = 0
    nope[1, 0, 0] = 70000
    key = qsmla.pack_kv(nope, np.zeros((2, 1, 64), np.float16), "float8_e4m3")
    arguments: Arguments = {
        "query": np.zeros((1, 1, 576), np.float16),
        "key": key,
        "value": key,
        IDS: np.array([[[0, 1]]], np.int32),
        "scale_value": 1.0,
        "layout_query": "TND",
        "layout_kv": "TND",
        Q: [1],
        KV: [2],
    }
    attended = attend(check_call(**arguments))
    assert attended.vmax.tolist() == [2.0]
    assert np.isnan(attended.output).all()  # 0 x inf in the score


def test_the_largest_value_of_a_row_counts_attended_tokens_only() -> None:
    nope = np.array([1, 2, 4, 8], np.float32)[:, None, None] * np.ones((1, 1, 512), np.float32)
    key = qsmla.pack_kv(-nope, np.zeros((4, 1, 64), BFLOAT16), "float8_e4m3")
    call = check_call(
        np.zeros((3, 1, 576), BFLOAT16),
        key,
        None,
        np.array([[[0, 1]], [[2, 9]], [[-1, -1]]], np.int32),
        1.0,
        layout_query="TND",
        layout_kv="TND",
        sparse_mode=0,
        actual_seq_lengths_query=[3],
        actual_seq_lengths_kv=[4],
    )
    assert attend(call).vmax.tolist() == [2.0, 4.0, 0.0]
    assert attend(call, rows=[1]).vmax.tolist() == [4.0]


# The public function.


def test_layouts_and_byte_orders_of_the_same_data_agree_to_the_bit() -> None:
    plain = legal_arguments(*PLAIN, selected=12, sparse_mode=3)
    results = [run(plain)]
    nope, rope = unpack_kv(plain["key"], "int8", BFLOAT16)
    turned = qsmla.pack_kv(nope, rope, "int8", "flashmla")
    # Packing what was unpacked gives the same codes: the largest value of a tile is code 127 again.
    results.append(run(plain | {"key": turned, "value": None, "byte_order": "flashmla"}))
    ragged = {name: plain[name].reshape(6, *plain[name].shape[2:]) for name in ("query", IDS)}
    flat = plain["key"].reshape(80, 1, 656)
    ragged |= {"layout_query": "TND", "layout_kv": "TND", "key": flat, "value": flat, Q: [3, 6], KV: [40, 80]}
    results.append(run(plain | ragged))
    pages = np.zeros((6, 16, 1, 656), np.int8)
    table = np.array([[4, 0, 5], [1, 3, 2]], np.int32)
    for b in range(2):
        padded = np.zeros((48, 1, 656), np.int8)
        padded[:40] = plain["key"][b]
        pages[table[b]] = padded.reshape(3, 16, 1, 656)
    results.append(run(plain | {"key": pages, "value": pages, TABLE: table, "layout_kv": "PA_BSND"}))
    for output, lse in results[1:]:
        np.testing.assert_array_equal(bits(output).reshape(-1), bits(results[0][0]).reshape(-1))
        np.testing.assert_array_equal(lse.reshape(-1), results[0][1].reshape(-1))


@by_layout
def test_a_permuted_batch_gives_permuted_results(layouts: tuple[str, str]) -> None:
    if layouts[0] == "TND":
        arguments = legal_arguments(*layouts, query_counts=(2, 2, 2), kv_counts=(40, 40, 40))
    else:
        arguments = legal_arguments(*layouts, query_counts=(2, 1, 2), kv_counts=(40, 30, 20))
    order = np.array([2, 0, 1])
    permuted = dict(arguments)

    def by_request(array: npt.NDArray[Any], ragged: bool) -> npt.NDArray[Any]:
        return array.reshape(3, -1, *array.shape[1:])[order].reshape(array.shape) if ragged else array[order]

    for name in ("query", IDS):
        permuted[name] = by_request(arguments[name], layouts[0] == "TND")
    if layouts[1] == "PA_BSND":
        permuted[TABLE] = arguments[TABLE][order]
    else:
        permuted["key"] = permuted["value"] = by_request(arguments["key"], layouts[1] == "TND")
    for name, layout in ((Q, layouts[0]), (KV, layouts[1])):
        permuted[name] = arguments[name] if layout == "TND" else arguments[name][order]
    output, lse = run(arguments)
    permuted_output, permuted_lse = run(permuted)
    np.testing.assert_array_equal(bits(permuted_output), bits(by_request(output, layouts[0] == "TND")))
    np.testing.assert_array_equal(permuted_lse, by_request(lse, layouts[0] == "TND"))


@pytest.mark.parametrize("layouts", [PLAIN, RAGGED_PAGED], ids="-".join)
def test_strided_and_int64_arguments(layouts: tuple[str, str]) -> None:
    arguments = legal_arguments(*layouts)
    changed = dict(arguments)
    for name in ("query", "key", IDS):
        changed[name] = np.repeat(arguments[name], 2, axis=0)[::-2][::-1]
        assert not changed[name].flags.c_contiguous
    changed |= {"value": changed["key"][..., :512], IDS: changed[IDS].astype(np.int64)}
    for name in (Q, KV, TABLE):
        if name in arguments:
            changed[name] = arguments[name].astype(np.int64)
    assert_same_bits(arguments, changed)


def test_out_is_filled_and_returned() -> None:
    arguments = legal_arguments(query_counts=(3, 2))
    expected, _ = run(arguments)
    out = np.full((2, 3, 2, 600), 7.0, BFLOAT16)
    returned, _ = run(arguments | {"out": out[..., 40:552]})
    np.testing.assert_array_equal(bits(returned.copy()), bits(expected))
    assert np.shares_memory(returned, out)
    assert (out[..., :40].astype(np.float32) == 7).all()
    assert (out[..., 552:].astype(np.float32) == 7).all()


def test_without_lse_the_output_comes_alone() -> None:
    arguments = legal_arguments()
    alone = kv_quant_sparse_flash_attention(**arguments)
    assert isinstance(alone, np.ndarray)
    np.testing.assert_array_equal(bits(alone), bits(run(arguments)[0]))


@by_layout
def test_no_requests_and_no_rows(layouts: tuple[str, str]) -> None:
    arguments = legal_arguments(*layouts)
    rows = (0,) if layouts[0] == "TND" else (2, 0)
    arguments |= {
        "query": np.zeros((*rows, 2, 576), BFLOAT16),
        IDS: np.zeros((*rows, 1, 5), np.int32),
        Q: [0, 0],
    }
    output, lse = run(arguments)
    assert (output.shape, lse.shape) == ((*rows, 2, 512), (*rows, 2))


def test_chosen_rows_are_those_of_the_whole() -> None:
    call = check_call(**legal_arguments(*RAGGED, query_counts=(4, 3)))
    whole, part = attend(call), attend(call, rows=[5, 0])
    for name in ("output", "lse", "vmax"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[[5, 0]])


def test_a_negative_zero_scale_and_denormal_values_stay_finite() -> None:
    arguments = legal_arguments()
    tiny = np.float32(1e-38)
    nope = normal(np.random.default_rng(0), (2, 40, 1, 512), np.float32) * tiny
    key = qsmla.pack_kv(nope, np.zeros((2, 40, 1, 64), BFLOAT16), "int8")
    output, lse = run(arguments | {"key": key, "value": key, "scale_value": -0.0})
    assert np.isfinite(output.astype(np.float32)).all()
    assert lse == pytest.approx(math.log(5), abs=1e-6)


def test_bad_arguments_are_refused_before_anything_is_written() -> None:
    out = np.full((2, 3, 2, 512), 7.0, BFLOAT16)
    with pytest.raises(ValueError, match="scale_value"):
        kv_quant_sparse_flash_attention(**legal_arguments() | {"scale_value": math.nan}, out=out)
    assert (out.astype(np.float32) == 7).all()


def test_the_public_name_is_the_reference() -> None:
    assert qsmla.reference.kv_quant_sparse_flash_attention is kv_quant_sparse_flash_attention


def test_decoded_codes_reach_the_values_unchanged() -> None:
    """All 256 codes of a format, one a column, come out of a call that selects one token."""
    for kv_dtype in ("float8_e4m3", "hifloat8"):
        key = qsmla.pack_kv(np.ones((1, 1, 512), np.float32), np.zeros((1, 1, 64), BFLOAT16), kv_dtype)
        rows = key.view(np.uint8)
        table = decode_table(kv_dtype)
        finite = np.flatnonzero(np.isfinite(table)).astype(np.uint8)
        rows[..., :512] = np.resize(finite, 512)
        rows[..., 640:656] = np.ones(4, np.float32).view(np.uint8)
        output = kv_quant_sparse_flash_attention(
            np.zeros((1, 1, 576), ml_dtypes.bfloat16),
            key,
            key,
            np.zeros((1, 1, 1), np.int32),
            1.0,
            layout_query="TND",
            layout_kv="TND",
            kv_dtype=kv_dtype,
            actual_seq_lengths_query=[1],
            actual_seq_lengths_kv=[1],
        )
        assert isinstance(output, np.ndarray)
        np.testing.assert_array_equal(output[0, 0].astype(np.float32), table[np.resize(finite, 512)])
