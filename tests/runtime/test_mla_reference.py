from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mla_calls import NAN_CODE, mla_arguments, plain_mla, poisoned

from qsmla.reference import quant_sparse_flash_mla
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attend

LAYOUTS = [*itertools.product(("BSND", "TND"), ("BSND", "TND", "PA_BBND"))]
WINDOW = {"ori_mask_mode": 4, "ori_win_left": 12, "ori_win_right": 1}
CAUSAL = {"ori_mask_mode": 3, "cmp_mask_mode": 3, "cmp_ratio": 4, "cmp_residual_kv": [0, 3]}
PARTS: list[dict[str, Any]] = [
    {"ori_topk": 0, "cmp_topk": 5},
    {"ori_topk": 6, "cmp_topk": 0},
    {"ori_topk": 6, "cmp_topk": 5},
    {"ori_counts": None},
    {"cmp_counts": None},
]


@pytest.mark.parametrize(("layout_q", "layout_kv"), LAYOUTS)
@pytest.mark.parametrize("masks", [{}, WINDOW, CAUSAL, WINDOW | {"ori_win_right": -1}], ids=str)
def test_one_score_one_weight_one_sum_at_a_time(layout_q: str, layout_kv: str, masks: dict[str, Any]) -> None:
    for number, parts in enumerate(PARTS):
        arguments = mla_arguments(layout_q, layout_kv, padding=number % 3, seed=number, **parts, **masks)
        if number % 2:
            arguments["sinks"] = np.array([0.5, -np.inf], np.float32)
        found = attend(check_mla_call(**arguments))
        output, lse = plain_mla(arguments)
        np.testing.assert_allclose(found.output.reshape(output.shape), output, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.lse.reshape(lse.shape), lse, rtol=1e-12)


@pytest.mark.parametrize("layout_kv", ["BSND", "TND", "PA_BBND"])
def test_what_is_not_attended_to_is_not_read(layout_kv: str) -> None:
    arguments = mla_arguments("TND", layout_kv, ori_topk=7, padding=2, **CAUSAL)
    plain, spoilt = (
        quant_sparse_flash_mla(**call, return_softmax_lse=True) for call in (arguments, poisoned(arguments))
    )
    for before, after in zip(plain, spoilt, strict=True):
        np.testing.assert_array_equal(before, after)
        assert np.isfinite(np.asarray(after[:3], np.float32)).all()


def test_a_result_has_the_query_s_shape_in_bfloat16_and_may_go_to_out() -> None:
    arguments = mla_arguments()
    out = np.zeros(arguments["q"].shape, ml_dtypes.bfloat16)
    output, lse = quant_sparse_flash_mla(**arguments, out=out, return_softmax_lse=True)
    assert output is out
    assert (output.dtype, output.shape) == (ml_dtypes.bfloat16, (2, 3, 2, 512))
    assert (lse.dtype, lse.shape) == (np.float32, (2, 3, 2))
    assert output[1, 2].astype(np.float32).tolist() == np.zeros((2, 512)).tolist()
    assert lse[1, 2].tolist() == [-np.inf, -np.inf]


def test_sinks_take_weight_and_add_no_value() -> None:
    arguments = mla_arguments(heads=4)
    none, none_lse = quant_sparse_flash_mla(**arguments, return_softmax_lse=True)
    sinks = np.array([-np.inf, np.inf, 2.0, -300.0], np.float32)
    output, lse = quant_sparse_flash_mla(**arguments, sinks=sinks, return_softmax_lse=True)
    np.testing.assert_array_equal(output[0, :, [0, 3]], none[0, :, [0, 3]])
    np.testing.assert_array_equal(lse[0, :, [0, 3]], none_lse[0, :, [0, 3]])
    assert not output[0, :, 1].any()
    assert (lse[0, :, 1] == np.inf).all()
    np.testing.assert_allclose(lse[0, :, 2], np.logaddexp(none_lse[0, :, 2], 2.0), rtol=1e-6)
    share = np.exp(none_lse[0, :, 2] - lse[0, :, 2])[:, None]
    expected = none[0, :, 2].astype(np.float32) * share
    np.testing.assert_allclose(output[0, :, 2].astype(np.float32), expected, rtol=0.01)


def test_a_row_without_keys_is_its_sink_and_zeros() -> None:
    sinks = np.array([1.5, -np.inf], np.float32)
    arguments = mla_arguments(
        query_counts=(3, 1), ori_counts=(1, 4), cmp_counts=(0, 3), cmp_topk=0, sinks=sinks
    )
    output, lse = quant_sparse_flash_mla(**arguments, ori_mask_mode=3, return_softmax_lse=True)
    assert not output[0, :2].any()
    np.testing.assert_array_equal(lse[0, :2], [sinks, sinks])
    assert output[0, 2].any()


@pytest.mark.parametrize("sink", [None, 3.0, np.inf])
def test_nan_in_an_attended_row_propagates(sink: float | None) -> None:
    arguments = mla_arguments(cmp_counts=None, ori_mask_mode=3)
    arguments["ori_kv"][0, 38, 0, 100] = NAN_CODE
    if sink is not None:
        arguments["sinks"] = np.full(2, sink, np.float32)
    output, lse = quant_sparse_flash_mla(**arguments, return_softmax_lse=True)
    # Rows 1 and 2 of batch 0 see token 38, row 0 does not.
    assert np.isnan(output[0, 1:].astype(np.float32)).all()
    assert np.isnan(lse[0, 1:]).all()
    assert np.isfinite(output[[0, 1], [0, 1]].astype(np.float32)).all()
