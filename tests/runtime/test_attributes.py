"""Every argument that is a plain value: what is refused, and each legal boundary."""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from calls import BFLOAT16, LAYOUTS, legal_arguments

from qsmla.ir.spec import HEAD_COUNTS, SPARSE_BLOCK_SIZES
from qsmla.runtime.checks import check_call

FIXED_INTEGERS = {
    "key_quant_mode": 2,
    "value_quant_mode": 2,
    "attention_mode": 2,
    "quant_scale_repo_mode": 1,
    "tile_size": 128,
    "rope_head_dim": 64,
    "pre_tokens": 2**63 - 1,
    "next_tokens": 2**63 - 1,
}
WRONG_TEXTS = {
    "layout_query": ("", "bsnd", "SBH", "PA_BSND", "BSND "),
    "layout_kv": ("", "bsnd", "PA_BNSD", "PA", "SBH"),
    "byte_order": ("", "little", "Ascend", "flash_mla"),
    "profile": ("", "Portable", "ascend_910", "cuda"),
    "kv_dtype": ("", "INT8", "float8_e4m3fn", "fp8", "e5m2"),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name, good in FIXED_INTEGERS.items() for value in (good - 1, good + 1, 0, -good)),
        *(("sparse_block_size", value) for value in (0, -1, 3, 12, 256, 2**70)),
        *(("sparse_mode", value) for value in (1, 2, 4, -3, 10**5000)),
        *((name, value) for name, texts in WRONG_TEXTS.items() for value in texts),
        *(
            ("scale_value", value)
            for value in (np.nan, np.inf, -np.inf, np.float32(np.inf), 3.5e38, 10**400, 10**5000)
        ),
        *((name, np.ones(4, np.float32)) for name in ("key_dequant_scale", "value_dequant_scale")),
        *((name, 1.0) for name in ("key_dequant_scale", "value_dequant_scale")),
    ],
    ids=lambda value: str(value)[:24] if not isinstance(value, int) or value < 2**64 else "huge",
)
def test_a_value_that_is_not_allowed(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is .*; allowed: "):
        check_call(**legal_arguments() | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, value)
            for name in (*FIXED_INTEGERS, "sparse_block_size", "sparse_mode")
            for value in (None, True, "2", 2.0, [2], np.bool_(True), np.array([2]))
        ),
        *(
            (name, value)
            for name in WRONG_TEXTS
            for value in (None, 1, b"BSND", ["BSND"], np.dtype(np.int8))
            if (name, value) != ("kv_dtype", None)
        ),
        *(("scale_value", value) for value in (None, True, np.bool_(True), 1j, "1.0", [1.0], np.ones(1))),
        ("scale_value", decimal.Decimal(1)),
        *(("return_softmax_lse", value) for value in (None, 0, 1, "True", np.array([True]))),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_kind(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name} is .*; allowed: "):
        check_call(**legal_arguments() | {name: value})


def test_the_text_says_what_came_and_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"^sparse_block_size is 3; allowed: 1, 2, 4, 8, 16, 32, 64, 128$"):
        check_call(**legal_arguments() | {"sparse_block_size": 3})


@pytest.mark.parametrize("heads", [3, 6, 12, 24, 47, 49, 96, 127, 129, 256])
def test_other_numbers_of_heads(heads: int) -> None:
    query = np.zeros((2, 3, heads, 576), BFLOAT16)
    with pytest.raises(
        ValueError, match=f"^query's number of heads is {heads}; allowed: 1, 2, 4, 8, 16, 32, 48"
    ):
        check_call(**legal_arguments() | {"query": query})


@pytest.mark.parametrize("heads", HEAD_COUNTS)
def test_each_number_of_heads(heads: int) -> None:
    assert check_call(**legal_arguments(heads=heads)).spec.heads == heads


@pytest.mark.parametrize("sparse_block_size", SPARSE_BLOCK_SIZES)
@pytest.mark.parametrize("sparse_mode", [0, 3])
def test_each_block_size_and_mode(sparse_block_size: int, sparse_mode: int) -> None:
    spec = check_call(**legal_arguments(sparse_block_size=sparse_block_size, sparse_mode=sparse_mode)).spec
    assert (spec.sparse_block_size, spec.sparse_mode) == (sparse_block_size, sparse_mode)


@pytest.mark.parametrize(("layout_query", "layout_kv"), LAYOUTS)
def test_each_pair_of_layouts(layout_query: str, layout_kv: str) -> None:
    spec = check_call(**legal_arguments(layout_query, layout_kv)).spec
    assert (spec.layout_query, spec.layout_kv) == (layout_query, layout_kv)


@pytest.mark.parametrize(("layout_query", "layout_kv"), [("BSND", "TND"), ("TND", "BSND")])
def test_unequal_layouts_without_paging(layout_query: str, layout_kv: str) -> None:
    arguments = legal_arguments(layout_query, layout_query) | {"layout_kv": layout_kv}
    with pytest.raises(ValueError, match=f"^layout_kv is '{layout_kv}'; allowed: {layout_query}, PA_BSND"):
        check_call(**arguments)


@pytest.mark.parametrize("value", [np.int64(2), np.int32(2), np.uint8(2)])
def test_numpy_integers_are_integers(value: Any) -> None:
    spec = check_call(**legal_arguments() | {"sparse_block_size": value, "key_quant_mode": value}).spec
    assert type(spec.sparse_block_size) is int
    assert spec.sparse_block_size == 2


def test_a_legal_call_does_not_open_the_door_for_an_equal_value_of_another_type() -> None:
    check_call(**legal_arguments(sparse_block_size=1))
    for value in (1.0, True):
        with pytest.raises(TypeError, match=r"^sparse_block_size is"):
            check_call(**legal_arguments() | {"sparse_block_size": value})


@pytest.mark.parametrize(
    ("scale", "seen"),
    [
        (0.0, 0.0),
        (-2.5, -2.5),
        (3, 3.0),
        (np.float64(0.25), 0.25),
        (np.float16(0.5), 0.5),
        (np.int64(2), 2.0),
        (ml_dtypes.bfloat16(1.5), 1.5),
        (fractions.Fraction(1, 4), 0.25),
        (0.1, float(np.float32(0.1))),
        (float(np.finfo(np.float32).max), float(np.finfo(np.float32).max)),
    ],
    ids=str,
)
def test_the_scale_is_rounded_to_float32(scale: Any, seen: float) -> None:
    checked = check_call(**legal_arguments() | {"scale_value": scale}).scale
    assert type(checked) is float
    assert checked == seen


@pytest.mark.parametrize("lse", [True, False, np.bool_(True)])
def test_return_softmax_lse(lse: Any) -> None:
    assert check_call(**legal_arguments() | {"return_softmax_lse": lse}).return_softmax_lse is bool(lse)


@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "resolved"),
    [
        (np.int8, None, "int8"),
        (np.int8, "int8", "int8"),
        (ml_dtypes.float8_e4m3fn, None, "float8_e4m3"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3", "float8_e4m3"),
        (np.uint8, "int8", "int8"),
        (np.uint8, "float8_e4m3", "float8_e4m3"),
        (np.uint8, "hifloat8", "hifloat8"),
    ],
)
def test_the_code_format_follows_from_dtype_and_kv_dtype(dtype: Any, kv_dtype: Any, resolved: str) -> None:
    arguments = legal_arguments()
    key = arguments["key"].view(dtype)
    assert (
        check_call(**arguments | {"key": key, "value": key, "kv_dtype": kv_dtype}).spec.kv_dtype == resolved
    )


@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "error", "text"),
    [
        (
            np.uint8,
            None,
            ValueError,
            "^kv_dtype is None; allowed: int8, float8_e4m3, hifloat8 where key is uint8",
        ),
        (np.int8, "hifloat8", TypeError, "^key is dtype int8 and kv_dtype is 'hifloat8'; allowed: "),
        (np.int8, "float8_e4m3", TypeError, "^key is dtype int8 and kv_dtype is 'float8_e4m3'; allowed: "),
        (ml_dtypes.float8_e4m3fn, "int8", TypeError, "^key is dtype float8_e4m3fn and kv_dtype is 'int8'"),
        (
            ml_dtypes.float8_e4m3fn,
            "hifloat8",
            TypeError,
            "^key is dtype float8_e4m3fn and kv_dtype is 'hifloat8'",
        ),
    ],
)
def test_dtype_and_kv_dtype_that_contradict(dtype: Any, kv_dtype: Any, error: type, text: str) -> None:
    arguments = legal_arguments()
    key = arguments["key"].view(dtype)
    with pytest.raises(error, match=text):
        check_call(**arguments | {"key": key, "value": key, "kv_dtype": kv_dtype})


@pytest.mark.parametrize(
    ("profile", "changes", "text"),
    [
        (
            "ascend_950",
            {"sparse_block_size": 2},
            "^sparse_block_size is 2; allowed: 1 with profile ascend_950",
        ),
        (
            "ascend_950",
            {"kv_dtype": "hifloat8"},
            "^sparse_indices' last dimension K is 5; allowed: 2048 with hifloat8",
        ),
        ("ascend_950", {"kv_dtype": "hifloat8", "selected": 2047}, "K is 2047; allowed: 2048"),
        (
            "atlas_a3",
            {"kv_dtype": "hifloat8"},
            "^kv_dtype is 'hifloat8'; allowed: int8 with profile atlas_a3",
        ),
        ("atlas_a3", {"kv_dtype": "float8_e4m3"}, "^kv_dtype is 'float8_e4m3'; allowed: int8"),
        ("atlas_a3", {"sparse_block_size": 32}, "^sparse_block_size is 32; allowed: 1, 2, 4, 8, 16 with"),
        (
            "atlas_a3",
            {"heads": 48},
            "^query's number of heads is 48; allowed: 1, 2, 4, 8, 16, 32, 64, 128 with",
        ),
        ("atlas_a2", {"kv_dtype": "float8_e4m3"}, "^kv_dtype is 'float8_e4m3'; allowed: int8"),
        ("atlas_a2", {"sparse_block_size": 128}, "^sparse_block_size is 128; allowed: 1, 2, 4, 8, 16 with"),
        ("atlas_a2", {"heads": 48}, "^query's number of heads is 48"),
    ],
)
def test_what_a_profile_refuses(profile: str, changes: dict[str, Any], text: str) -> None:
    arguments = legal_arguments(**changes)
    check_call(**arguments)
    with pytest.raises(ValueError, match=text):
        check_call(**arguments | {"profile": profile})


@pytest.mark.parametrize(
    ("profile", "changes"),
    [
        ("portable", {"kv_dtype": "hifloat8", "sparse_block_size": 128, "heads": 48}),
        ("ascend_950", {"kv_dtype": "hifloat8", "selected": 2048}),
        ("ascend_950", {"kv_dtype": "int8", "selected": 7, "heads": 48}),
        ("ascend_950", {"kv_dtype": "float8_e4m3"}),
        ("atlas_a3", {"sparse_block_size": 16}),
        ("atlas_a2", {"sparse_block_size": 1, "heads": 128}),
    ],
)
def test_what_a_profile_allows(profile: str, changes: dict[str, Any]) -> None:
    arguments = legal_arguments(**changes)
    assert check_call(**arguments | {"profile": profile}).spec == check_call(**arguments).spec
