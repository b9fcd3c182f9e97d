"""The arguments that are plain values: which are allowed, and the kernel they ask for."""

from __future__ import annotations

import functools
import math
import numbers
import operator
import reprlib
from typing import Any, Final, NoReturn

import ml_dtypes
import numpy as np

from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.spec import HEAD_COUNTS, ROPE_DIM, SPARSE_BLOCK_SIZES, TILE_SIZE, KernelSpec

NO_LIMIT: Final = 2**63 - 1
"""The one value of pre_tokens and next_tokens: sparse_mode alone says what a row sees."""
QUERY_DTYPES: Final = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
KEY_DTYPES: Final = (np.dtype(np.int8), np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(np.uint8))
LAYOUTS_QUERY: Final = ("BSND", "TND")
LAYOUTS_KV: Final = ("BSND", "TND", "PA_BSND")
BYTE_ORDERS: Final = ("ascend", "flashmla")
PROFILES: Final = ("portable", "ascend_950", "atlas_a3", "atlas_a2")

_FORMAT_OF_DTYPE: Final = {KEY_DTYPES[0]: "int8", KEY_DTYPES[1]: "float8_e4m3"}
_LARGEST_FLOAT32: Final = float(np.finfo(np.float32).max)


def refuse(name: str, value: object, allowed: object) -> NoReturn:
    """Raise the ValueError for an argument: its name, what came, what is allowed."""
    raise ValueError(f"{name} is {_shown(value)}; allowed: {allowed}")


def refuse_kind(name: str, value: object, allowed: object) -> NoReturn:
    """Raise the TypeError for an argument of the wrong kind."""
    came = f"{_shown(value)} ({type(value).__name__})"
    raise TypeError(f"{name} is {came}; allowed: {allowed}")


def resolve_scale(scale_value: Any, name: str = "scale_value") -> float:
    """A factor as the kernels see it: a Python float that is exact in float32.

    Raises:
        TypeError: not a real number (bool, complex, array, text).
        ValueError: NaN, infinite, or beyond float32.
    """
    if type(scale_value) is not float:
        if not isinstance(scale_value, (numbers.Real, np.floating, ml_dtypes.bfloat16)) or isinstance(
            scale_value, (bool, np.bool_)
        ):
            refuse_kind(name, scale_value, "a finite real number")
        try:
            scale_value = float(scale_value)
        except OverflowError:
            refuse(name, scale_value, "a number that is finite in float32")
    if not math.isfinite(scale_value) or abs(scale_value) > _LARGEST_FLOAT32:
        refuse(name, scale_value, "a number that is finite in float32")
    return _in_float32(scale_value)


@functools.lru_cache(maxsize=256)
def _in_float32(value: float) -> float:
    return float(np.float32(value))


def resolve_kv_dtype(key_dtype: np.dtype[Any], kv_dtype: Any, name: str = "key") -> str:
    """The code format of a cache of key_dtype; kv_dtype None leaves it to the dtype.

    Raises:
        TypeError: key_dtype is no dtype of a cache, kv_dtype is not text, or the two contradict each other.
        ValueError: kv_dtype is no code format, or None where the dtype does not say.
    """
    if key_dtype not in KEY_DTYPES:
        raise TypeError(f"{name} is dtype {key_dtype}; allowed: {_names(KEY_DTYPES)}")
    known = _FORMAT_OF_DTYPE.get(key_dtype)
    if kv_dtype is None:
        if known is None:
            refuse("kv_dtype", None, f"{_names(CODE_FORMATS)} where {name} is {key_dtype}")
        return known
    chosen = resolve_code_format(kv_dtype)
    if known is not None and chosen != known:
        raise TypeError(
            f"{name} is dtype {key_dtype} and kv_dtype is {chosen!r}; allowed: kv_dtype {known!r} or None, "
            f"or uint8 holding the codes of {chosen}"
        )
    return chosen


def resolve_code_format(kv_dtype: Any) -> str:
    """Check kv_dtype, with the errors of every text argument."""
    return _text("kv_dtype", kv_dtype, CODE_FORMATS)


def resolve_byte_order(byte_order: Any) -> str:
    """Check byte_order, with the errors of every text argument."""
    return _text("byte_order", byte_order, BYTE_ORDERS)


def resolve_spec(
    query_dtype: np.dtype[Any],
    key_dtype: np.dtype[Any],
    heads: int,
    selected: int,
    key_quant_mode: Any,
    value_quant_mode: Any,
    sparse_block_size: Any,
    layout_query: Any,
    layout_kv: Any,
    sparse_mode: Any,
    pre_tokens: Any,
    next_tokens: Any,
    attention_mode: Any,
    quant_scale_repo_mode: Any,
    tile_size: Any,
    rope_head_dim: Any,
    kv_dtype: Any,
    byte_order: Any,
    profile: Any,
) -> KernelSpec:
    """The kernel that the attributes ask for.

    Raises:
        TypeError: an attribute is of the wrong kind; the text names it.
        ValueError: an attribute has a value that is not allowed; the text names it.
    """
    if query_dtype not in QUERY_DTYPES:
        raise TypeError(f"query is dtype {query_dtype}; allowed: {_names(QUERY_DTYPES)}")
    code_format = resolve_kv_dtype(key_dtype, kv_dtype)
    if heads not in HEAD_COUNTS:
        refuse("query's number of heads", heads, _names(HEAD_COUNTS))
    check_integer("key_quant_mode", key_quant_mode, (2,))
    check_integer("value_quant_mode", value_quant_mode, (2,))
    check_integer("pre_tokens", pre_tokens, (NO_LIMIT,))
    check_integer("next_tokens", next_tokens, (NO_LIMIT,))
    check_integer("attention_mode", attention_mode, (2,))
    check_integer("quant_scale_repo_mode", quant_scale_repo_mode, (1,))
    check_integer("tile_size", tile_size, (TILE_SIZE,))
    check_integer("rope_head_dim", rope_head_dim, (ROPE_DIM,))
    layout_query = _text("layout_query", layout_query, LAYOUTS_QUERY)
    layout_kv = _text("layout_kv", layout_kv, LAYOUTS_KV)
    if layout_kv not in (layout_query, "PA_BSND"):
        refuse("layout_kv", layout_kv, f"{layout_query}, PA_BSND with layout_query {layout_query}")
    spec = KernelSpec(
        layout_query=layout_query,
        layout_kv=layout_kv,
        query_dtype=query_dtype.name,
        kv_dtype=code_format,
        heads=heads,
        sparse_block_size=check_integer("sparse_block_size", sparse_block_size, SPARSE_BLOCK_SIZES),
        sparse_mode=check_integer("sparse_mode", sparse_mode, (0, 3)),
        byte_order=resolve_byte_order(byte_order),
    )
    _check_profile(_text("profile", profile, PROFILES), spec, selected)
    return spec


def _check_profile(profile: str, spec: KernelSpec, selected: int) -> None:
    """Refuse what the table's portable part allows and the profile's machine does not."""
    if profile == "ascend_950":
        if spec.sparse_block_size != 1:
            refuse("sparse_block_size", spec.sparse_block_size, f"1 with profile {profile}")
        if spec.kv_dtype == "hifloat8" and selected != 2048:
            refuse("sparse_indices' last dimension K", selected, f"2048 with hifloat8 and profile {profile}")
    elif profile in ("atlas_a3", "atlas_a2"):
        if spec.kv_dtype != "int8":
            refuse("kv_dtype", spec.kv_dtype, f"int8 with profile {profile}")
        if spec.sparse_block_size > 16:
            refuse("sparse_block_size", spec.sparse_block_size, f"1, 2, 4, 8, 16 with profile {profile}")
        if spec.heads == 48:
            refuse("query's number of heads", 48, f"1, 2, 4, 8, 16, 32, 64, 128 with profile {profile}")


def check_integer(name: str, value: object, allowed: range | tuple[int, ...]) -> int:
    """A Python or NumPy integer among the allowed ones, as Python's.

    Raises:
        TypeError: no integer; the text names it.
        ValueError: not among them.
    """
    # A range knows exact integers at once, and searches one by one for anything else that equals one.
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(operator.index(value))
        if number in allowed:
            return number
    shown = f"{allowed[0]}..{allowed[-1]}" if isinstance(allowed, range) else _names(allowed)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        refuse_kind(name, value, f"the integer {shown}" if len(allowed) == 1 else f"integers {shown}")
    refuse(name, value, shown)


def _text(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        refuse_kind(name, value, _names(allowed))
    if value not in allowed:
        refuse(name, value, _names(allowed))
    return str(value)


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {value.shape}"
    try:
        return _brief.repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return f"a {type(value).__name__} too long to print"


_brief = reprlib.Repr()
_brief.maxlevel, _brief.maxlist, _brief.maxtuple, _brief.maxdict = 2, 4, 8, 4


def _names(values: tuple[Any, ...]) -> str:
    return ", ".join(map(str, values))
