"""What dtypes, shapes and plain attributes say of a call: the same for one call after another, and kept."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES, KernelSpec
from qsmla.runtime.attributes import refuse, resolve_spec
from qsmla.runtime.lengths import INT32_MAX, check_shape

_QUERY_DIM: Final = NOPE_DIM + ROPE_DIM
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A call without its values."""

    spec: KernelSpec
    query_shape: Shape
    """[rows, heads, 576]."""
    indices_shape: Shape
    """[rows, K]."""
    output_shape: Shape
    """query's shape as it was given, the last dimension 512."""
    lse_shape: Shape
    """output_shape without its last dimension."""


def resolve_form(*arguments: Any) -> Form:
    """The form of a call of `kv_quant_sparse_flash_attention`; the arguments are those of `_form`.

    Raises:
        TypeError: a dtype or the kind of an attribute is wrong; the text names it.
        ValueError: a shape or the value of an attribute is not allowed; the text names it.
    """
    try:
        return _form_once(*arguments)
    except TypeError:
        # Either a wrong kind, or one that cannot be hashed; without the cache both name the argument.
        return _form(*arguments)


def _form(
    query_dtype: np.dtype[Any],
    key_dtype: np.dtype[Any],
    query_shape: Shape,
    key_shape: Shape,
    indices_shape: Shape,
    *attributes: Any,
) -> Form:
    """`attributes` in the order of `resolve_spec`, behind the number of selected blocks."""
    if len(query_shape) not in (3, 4):
        refuse("query's shape", query_shape, "[B, S1, N, 576] in BSND, [T, N, 576] in TND")
    selected = indices_shape[-1] if indices_shape else 0
    spec = resolve_spec(query_dtype, key_dtype, query_shape[-2], selected, *attributes)
    rows = _query_rows(spec, query_shape)
    check_shape("sparse_indices", indices_shape, (*query_shape[:-2], 1, "K"))
    if not 1 <= selected <= INT32_MAX // spec.sparse_block_size:
        refuse("sparse_indices' last dimension K", selected, "1 or more, with K * sparse_block_size in int32")
    _check_key(spec, key_shape, "B" if spec.layout_query == "TND" else query_shape[0])
    output_shape = (*query_shape[:-1], NOPE_DIM)
    return Form(
        spec=spec,
        query_shape=(rows, *query_shape[-2:]),
        indices_shape=(rows, selected),
        output_shape=output_shape,
        lse_shape=output_shape[:-1],
    )


# Forms are few and calls are many; typed, since True == 1 == 1.0 and only one of them is allowed.
_form_once = functools.lru_cache(maxsize=1024, typed=True)(_form)


def _query_rows(spec: KernelSpec, shape: Shape) -> int:
    if spec.layout_query == "TND":
        check_shape("query", shape, ("T", "N", _QUERY_DIM))
        rows = shape[0]
    else:
        check_shape("query", shape, ("B", "S1", "N", _QUERY_DIM))
        rows = shape[0] * shape[1]
    if rows > INT32_MAX:
        refuse("query's number of rows", rows, f"at most {INT32_MAX}")
    return rows


def _check_key(spec: KernelSpec, shape: Shape, batch: int | str) -> None:
    if spec.layout_kv == "TND":
        check_shape("key", shape, ("T2", 1, ROW_BYTES))
        rows = shape[0]
    elif spec.layout_kv == "BSND":
        check_shape("key", shape, (batch, "S2", 1, ROW_BYTES))
        rows = shape[0] * shape[1]
    else:
        check_shape("key", shape, ("block_num", "block_size", 1, ROW_BYTES))
        page_size = shape[1]
        check_page_size("key", page_size)
        if page_size % spec.sparse_block_size:
            refuse("sparse_block_size", spec.sparse_block_size, f"divisors of key's block_size {page_size}")
        rows = shape[0] * page_size
    if rows > INT32_MAX:
        refuse("key's number of rows", rows, f"at most {INT32_MAX}")


def check_page_size(name: str, page_size: int) -> None:
    """Refuse a block_size of the cache `name` that is no multiple of 16 up to 1024.

    Raises:
        ValueError: it is not.
    """
    if page_size % 16 or not 16 <= page_size <= 1024:
        refuse(f"{name}'s block_size", page_size, "multiples of 16, 16..1024")
