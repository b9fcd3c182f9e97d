from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mla_calls import mla_arguments

from qsmla.ir.spec import MlaSpec
from qsmla.runtime.mla_checks import check_mla_call

INT32_MAX = 2**31 - 1
Change = dict[str, Any]


def zeros(*shape: int, dtype: Any = np.uint8) -> Any:
    return np.zeros(shape, dtype)


def int32(*values: int) -> Any:
    return np.array(values, np.int32)


# layout_q, layout_kv, what to change in a legal call (... takes the argument away), what the error says
VALUE_ERRORS: list[tuple[str, str, Change, str]] = [
    (
        "BSND",
        "BSND",
        {"q": zeros(2, 3, 2, 256)},
        r"q has shape \(2, 3, 2, 256\); allowed: \[B, S1, N",
    ),
    ("BSND", "BSND", {"q": zeros(3, 2, 512)}, r"q has shape \(3, 2, 512\); allowed: \[B, S1, N, 512\]"),
    ("TND", "BSND", {"q": zeros(2, 3, 2, 512)}, r"q has shape .*; allowed: \[T, N, 512\]"),
    ("BSND", "BSND", {"q": zeros(2, 3, 129, 512)}, r"q's number of heads is 129; allowed: 1\.\.128"),
    ("BSND", "BSND", {"q": zeros(2, 3, 0, 512)}, "q's number of heads is 0"),
    (
        "BSND",
        "BSND",
        {"ori_kv": ..., "cmp_kv": ...},
        "ori_kv is None; allowed: an array",
    ),
    (
        "BSND",
        "BSND",
        {"ori_kv": zeros(3, 9, 1, 512)},
        r"ori_kv has shape .*; allowed: \[2, S2, 1, 512\]",
    ),
    ("BSND", "BSND", {"cmp_kv": zeros(2, 9, 2, 512)}, r"cmp_kv has shape \(2, 9, 2, 512\)"),
    ("TND", "TND", {"cmp_kv": zeros(2, 9, 1, 512)}, r"cmp_kv has shape .*; allowed: \[T2, 1, 512\]"),
    (
        "BSND",
        "PA_BBND",
        {"ori_kv": zeros(9, 24, 1, 512)},
        "ori_kv's block_size is 24; allowed: multiples",
    ),
    ("BSND", "PA_BBND", {"ori_block_table": ...}, r"ori_block_table is None; allowed: int32 \[B, pages\]"),
    ("BSND", "PA_BBND", {"cmp_block_table": int32(0, 1)}, r"cmp_block_table has shape \(2,\)"),
    (
        "BSND",
        "PA_BBND",
        {"cmp_block_table": np.full((2, 2), 99, np.int32)},
        r"cmp_block_table\[0, 0\] is 99; allowed: 0\.\.5, the pages of cmp_kv",
    ),
    ("BSND", "PA_BBND", {"seqused_ori_kv": int32(1000, 1)}, r"seqused_ori_kv\[0\] is 1000"),
    ("BSND", "PA_BBND", {"seqused_ori_kv": ...}, "seqused_ori_kv is None; .* or max_seqlen_ori_kv"),
    (
        "BSND",
        "BSND",
        {"ori_block_table": int32(0)},
        "ori_block_table is .*; allowed: None with",
    ),
    (
        "BSND",
        "PA_BBND",
        {"ori_kv": ..., "seqused_ori_kv": ...},
        "ori_block_table is .*; allowed: None without ori_kv",
    ),
    ("BSND", "BSND", {"cmp_kv": ...}, "cmp_sparse_indices is .*; allowed: None without cmp_kv"),
    ("BSND", "BSND", {"cmp_sparse_indices": zeros(2, 3, 5, dtype=np.int32)}, "cmp_sparse_indices has shape"),
    ("BSND", "BSND", {"cmp_sparse_indices": zeros(2, 3, 1, 0, dtype=np.int32)}, "cmp_sparse_indices's last"),
    ("TND", "TND", {"cu_seqlens_q": ...}, "cu_seqlens_q is None; allowed: prefix sums"),
    ("TND", "TND", {"cu_seqlens_cmp_kv": ...}, "cu_seqlens_cmp_kv is None; allowed: prefix sums"),
    ("TND", "TND", {"cu_seqlens_q": int32(0, 3, 6)}, r"cu_seqlens_q\[2\] is 6; allowed: at most 5 \(q's T\)"),
    (
        "TND",
        "TND",
        {"cu_seqlens_ori_kv": int32(0, 40, 99)},
        r"cu_seqlens_ori_kv\[2\] is 99; .* at most 73",
    ),
    ("TND", "TND", {"cu_seqlens_q": int32(1, 3, 5)}, r"cu_seqlens_q\[0\] is 1; allowed: 0"),
    ("TND", "TND", {"cu_seqlens_q": int32()}, "cu_seqlens_q's number of values is 0"),
    ("BSND", "BSND", {"cu_seqlens_q": int32(0, 3, 5)}, "cu_seqlens_q is .*; allowed: None with layout BSND"),
    ("BSND", "BSND", {"seqused_q": int32(3, 4)}, r"seqused_q\[1\] is 4; allowed: 0\.\.3 \(q's S1\)"),
    ("BSND", "BSND", {"seqused_q": int32(3)}, r"seqused_q has shape \(1,\); allowed: \[2\]"),
    ("BSND", "BSND", {"seqused_cmp_kv": int32(3, 31)}, r"seqused_cmp_kv\[1\] is 31; allowed: 0\.\.30"),
    ("BSND", "BSND", {"batch_size": 3}, "batch_size is 3; allowed: 0, or 2"),
    ("BSND", "BSND", {"max_seqlen_q": 2}, "max_seqlen_q is 2; allowed: 0, or 3, q's S1"),
    ("BSND", "BSND", {"max_seqlen_cmp_kv": 31}, "max_seqlen_cmp_kv is 31; allowed: 0..30, cmp_kv's S2"),
    ("BSND", "BSND", {"cmp_ratio": 4, "cmp_mask_mode": 3}, "cmp_residual_kv is None"),
    ("BSND", "BSND", {"cmp_ratio": 4, "cmp_residual_kv": int32(0, 4)}, r"cmp_residual_kv\[1\] is 4"),
    ("BSND", "BSND", {"cmp_ratio": 0}, "cmp_ratio is 0"),
    ("BSND", "BSND", {"ori_mask_mode": 1}, "ori_mask_mode is 1; allowed: 0, 3, 4"),
    ("BSND", "BSND", {"cmp_mask_mode": 4}, "cmp_mask_mode is 4; allowed: 0, 3"),
    ("BSND", "BSND", {"ori_win_left": -2}, "ori_win_left is -2"),
    ("BSND", "BSND", {"ori_win_right": INT32_MAX + 1}, "ori_win_right is 2147483648"),
    ("BSND", "BSND", {"layout_q": "BNSD"}, "layout_q is 'BNSD'; allowed: BSND, TND"),
    ("BSND", "BSND", {"layout_kv": "PA_BSND"}, "layout_kv is 'PA_BSND'; allowed: BSND, TND, PA_BBND"),
    ("BSND", "BSND", {"q_descale": float("nan")}, "q_descale is nan"),
    ("BSND", "BSND", {"q_descale": None}, "q_descale is None; allowed: a float32 number"),
    ("BSND", "BSND", {"ori_kv_descale": ...}, "ori_kv_descale is None"),
    ("BSND", "BSND", {"cmp_kv_descale": np.ones(2, np.float32)}, r"cmp_kv_descale's shape is \(2,\)"),
    ("BSND", "BSND", {"cmp_kv_descale": np.float32(np.inf)}, "cmp_kv_descale is "),
    ("BSND", "BSND", {"softmax_scale": float("inf")}, "softmax_scale is inf"),
    (
        "BSND",
        "BSND",
        {"q_descale": 1e30, "softmax_scale": 1e30},
        r"q_descale \* softmax_scale is 1\.0.*e\+60",
    ),
    (
        "BSND",
        "BSND",
        {"q_descale": 1e30, "ori_kv_descale": 1e10},
        r"q_descale \* softmax_scale \* ori_kv_descale \* log2\(e\) is ",
    ),
    ("BSND", "BSND", {"sinks": zeros(3, dtype=np.float32)}, r"sinks has shape \(3,\); allowed: \[2\]"),
    ("BSND", "BSND", {"out": zeros(2, 3, 1, 512, dtype=ml_dtypes.bfloat16)}, "out has shape"),
]
TYPE_ERRORS: list[tuple[Change, str]] = [
    ({"q": [1, 2]}, r"q is \[1, 2\] \(list\); allowed: a NumPy array"),
    ({"q": zeros(2, 3, 2, 512, dtype=np.int8)}, "q is dtype int8; allowed: uint8"),
    ({"ori_kv": zeros(2, 40, 1, 512, dtype=np.float32)}, "ori_kv is dtype float32; allowed: uint8"),
    ({"cmp_sparse_indices": zeros(2, 3, 1, 5, dtype=np.int16)}, "cmp_sparse_indices is dtype int16"),
    ({"cmp_kv_descale": np.ones(1)}, "cmp_kv_descale is dtype float64; allowed: float32"),
    ({"q_descale": "1"}, "q_descale is '1'"),
    ({"softmax_scale": True}, "softmax_scale is True"),
    ({"sinks": zeros(2, dtype=np.float64)}, "sinks is dtype float64; allowed: float32"),
    ({"seqused_q": int32(1, 2).astype(np.float32)}, "seqused_q is dtype float32"),
    ({"cmp_ratio": 4.0}, r"cmp_ratio is 4\.0"),
    ({"max_seqlen_q": 3.0}, r"max_seqlen_q is 3\.0"),
    ({"max_seqlen_ori_kv": "40"}, "max_seqlen_ori_kv is '40'"),
    ({"layout_q": 1}, "layout_q is 1"),
    ({"return_softmax_lse": 1}, "return_softmax_lse is 1"),
    ({"out": zeros(2, 3, 2, 512, dtype=np.float16)}, "out is dtype float16; allowed: bfloat16"),
]


def changed(layout_q: str, layout_kv: str, change: Change) -> dict[str, Any]:
    arguments = mla_arguments(layout_q, layout_kv) | change
    return {name: value for name, value in arguments.items() if value is not ...}


@pytest.mark.parametrize(("layout_q", "layout_kv", "change", "text"), VALUE_ERRORS)
def test_a_wrong_value_is_named(layout_q: str, layout_kv: str, change: Change, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_mla_call(**changed(layout_q, layout_kv, change))


@pytest.mark.parametrize(("change", "text"), TYPE_ERRORS)
def test_a_wrong_kind_is_named(change: Change, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        check_mla_call(**changed("BSND", "BSND", change))


@pytest.mark.parametrize(
    ("layout_kv", "sizes", "spec"),
    [
        ("BSND", {}, MlaSpec(ori="dense", cmp="sparse", kv_cache="contiguous", heads=2)),
        ("TND", {"ori_topk": 3}, MlaSpec(ori="sparse", cmp="sparse", kv_cache="contiguous", heads=2)),
        ("PA_BBND", {"ori_counts": None}, MlaSpec(ori="none", cmp="sparse", kv_cache="paged", heads=2)),
        (
            "PA_BBND",
            {"cmp_topk": 0, "heads": 7},
            MlaSpec(ori="dense", cmp="dense", kv_cache="paged", heads=7),
        ),
        ("BSND", {"cmp_counts": None, "ori_topk": 9}, MlaSpec(ori="sparse", cmp="none", heads=2)),
    ],
)
def test_a_call_s_kernel(layout_kv: str, sizes: dict[str, Any], spec: MlaSpec) -> None:
    assert check_mla_call(**mla_arguments("TND", layout_kv, **sizes)).spec == spec


def test_where_sequences_begin() -> None:
    call = check_mla_call(**mla_arguments("TND", "BSND"))
    assert call.parts["ori"].starts.tolist() == [0, 40]
    assert call.lengths.first_rows.tolist() == [0, 3]
    call = check_mla_call(**mla_arguments("BSND", "TND", padding=2))
    assert call.parts["cmp"].starts.tolist() == [0, 32]
    assert call.lengths.first_rows.tolist() == [0, 5]
    assert check_mla_call(**mla_arguments("BSND", "PA_BBND")).parts["cmp"].starts.tolist() == [0, 0]


def test_lengths_that_nothing_says_are_those_of_the_arrays() -> None:
    arguments = mla_arguments("BSND", "BSND")
    for name in ("seqused_q", "seqused_ori_kv", "seqused_cmp_kv"):
        del arguments[name]
    lengths = check_mla_call(**arguments).lengths
    found = [part.tolist() for part in (lengths.query, lengths.ori, lengths.cmp)]
    assert found == [[3, 3], [40, 40], [30, 30]]
    lengths = check_mla_call(**arguments, max_seqlen_ori_kv=11).lengths
    assert lengths.ori.tolist() == [11, 11]
    arguments = mla_arguments("BSND", "PA_BBND", max_seqlen_cmp_kv=30)
    del arguments["seqused_cmp_kv"]
    assert check_mla_call(**arguments).lengths.cmp.tolist() == [30, 30]


@pytest.mark.parametrize("descale", [0.5, np.float32(0.5), np.array([0.5], np.float32), np.float64(0.5)])
def test_a_descale_is_one_number(descale: Any) -> None:
    call = check_mla_call(**mla_arguments() | {"q_descale": descale, "cmp_kv_descale": descale})
    assert call.scale == 0.5 * 0.0625
    assert call.parts["cmp"].descale == 0.5


def test_no_sinks_are_sinks_of_minus_infinity() -> None:
    assert check_mla_call(**mla_arguments()).sinks.tolist() == [-np.inf, -np.inf]
    sinks = np.array([1, np.inf], np.float32)
    assert check_mla_call(**mla_arguments(), sinks=sinks).sinks is sinks


def test_memory_is_the_caller_s_own() -> None:
    arguments = mla_arguments("BSND", "PA_BBND")
    call = check_mla_call(**arguments)
    assert np.shares_memory(call.query, arguments["q"])
    assert np.shares_memory(call.parts["ori"].cache, arguments["ori_kv"])
    assert np.shares_memory(call.parts["cmp"].indices, arguments["cmp_sparse_indices"])
    out = arguments["ori_kv"].reshape(-1)[: 2 * 3 * 2 * 1024].view(ml_dtypes.bfloat16).reshape(2, 3, 2, 512)
    with pytest.raises(ValueError, match="out overlaps the memory of an input"):
        check_mla_call(**arguments, out=out)
