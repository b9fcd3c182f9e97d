"""Arguments to a typed call: everything behind this module works on `AttentionCall` alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.spec import NOPE_DIM, ROW_BYTES, KernelSpec
from qsmla.runtime.attributes import NO_LIMIT, refuse, refuse_kind, resolve_scale
from qsmla.runtime.form import resolve_form
from qsmla.runtime.lengths import (
    as_array,
    as_block_table,
    as_int32,
    as_lengths,
    check_counts,
    check_prefix_sums,
    check_shape,
)
from qsmla.runtime.signature import named

_SHARING_WORK: Final[Any] = 10_000
"""Bound on NumPy's exact overlap search; beyond it two arrays count as overlapping."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionCall:
    """A checked call. Arrays are the caller's own memory wherever dtype and strides allow."""

    spec: KernelSpec
    query: npt.NDArray[Any]
    """[rows, heads, 576] in the query dtype; BSND has B*S1 rows, TND T."""
    key: npt.NDArray[np.uint8]
    """The cache's bytes, any strides: [B, S2, 656], [T2, 656] or [pages, page size, 656]."""
    indices: npt.NDArray[np.int32]
    """[rows, K]."""
    block_table: npt.NDArray[np.int32] | None
    """[B, width] where the cache is paged."""
    query_lengths: npt.NDArray[np.int32]
    """[B]; TND: inclusive prefix sums, BSND: counts."""
    kv_lengths: npt.NDArray[np.int32]
    """[B]; TND cache: inclusive prefix sums, else counts."""
    scale: float
    """Exact in float32."""
    return_softmax_lse: bool
    out: npt.NDArray[Any] | None
    output_shape: tuple[int, ...]
    """query's shape as it was given, the last dimension 512."""
    lse_shape: tuple[int, ...]
    """output_shape without its last dimension."""


@named("kv_quant_sparse_flash_attention")
def check_call(
    query: npt.NDArray[Any],
    key: npt.NDArray[Any],
    value: npt.NDArray[Any] | None,
    sparse_indices: npt.NDArray[Any],
    scale_value: float,
    *,
    key_quant_mode: int = 2,
    value_quant_mode: int = 2,
    key_dequant_scale: None = None,
    value_dequant_scale: None = None,
    block_table: npt.NDArray[Any] | None = None,
    actual_seq_lengths_query: Any = None,
    actual_seq_lengths_kv: Any = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = NO_LIMIT,
    next_tokens: int = NO_LIMIT,
    attention_mode: int = 2,
    quant_scale_repo_mode: int = 1,
    tile_size: int = 128,
    rope_head_dim: int = 64,
    kv_dtype: str | None = None,
    byte_order: str = "ascend",
    profile: str = "portable",
    return_softmax_lse: bool = False,
    out: npt.NDArray[Any] | None = None,
) -> AttentionCall:
    """Check every argument of `kv_quant_sparse_flash_attention`; see there for their meaning.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument has a value or shape that is not allowed; the text names it.
    """
    query_array, key_array = as_array("query", query), as_array("key", key)
    indices_array = as_array("sparse_indices", sparse_indices)
    form = resolve_form(
        query_array.dtype,
        key_array.dtype,
        query_array.shape,
        key_array.shape,
        indices_array.shape,
        key_quant_mode,
        value_quant_mode,
        sparse_block_size,
        layout_query,
        layout_kv,
        sparse_mode,
        pre_tokens,
        next_tokens,
        attention_mode,
        quant_scale_repo_mode,
        tile_size,
        rope_head_dim,
        kv_dtype,
        byte_order,
        profile,
    )
    _check_reserved("key_dequant_scale", key_dequant_scale)
    _check_reserved("value_dequant_scale", value_dequant_scale)
    if type(return_softmax_lse) is not bool and not isinstance(return_softmax_lse, np.bool_):
        refuse_kind("return_softmax_lse", return_softmax_lse, "True, False")
    spec = form.spec
    key_bytes = key_array[..., 0, :].view(np.uint8)
    if value is not None and value is not key:
        _check_value(as_array("value", value), key_array)
    query_lengths = _check_query_lengths(spec, actual_seq_lengths_query, query_array.shape)
    kv_lengths, table = _check_kv_lengths(
        spec, actual_seq_lengths_kv, block_table, key_bytes, len(query_lengths)
    )
    if out is not None:
        inputs = (query, key, sparse_indices, block_table, actual_seq_lengths_query, actual_seq_lengths_kv)
        check_out(out, form.output_shape, query_array.dtype, inputs)
    return AttentionCall(
        spec=spec,
        query=query_array.reshape(form.query_shape),
        key=key_bytes,
        indices=as_int32("sparse_indices", indices_array).reshape(form.indices_shape),
        block_table=table,
        query_lengths=query_lengths,
        kv_lengths=kv_lengths,
        scale=resolve_scale(scale_value),
        return_softmax_lse=bool(return_softmax_lse),
        out=out,
        output_shape=form.output_shape,
        lse_shape=form.lse_shape,
    )


def _check_reserved(name: str, value: Any) -> None:
    if value is not None:
        refuse(name, value, "None; the scales lie in key's rows")


def _check_value(value: npt.NDArray[Any], key: npt.NDArray[Any]) -> None:
    """Refuse a value that is not key's own memory: it would be ignored."""
    if value.dtype != key.dtype:
        raise TypeError(f"value is dtype {value.dtype}; allowed: key's dtype {key.dtype}")
    if value.shape[:-1] != key.shape[:-1] or value.shape[-1] not in (ROW_BYTES, NOPE_DIM):
        raise ValueError(
            f"value has shape {value.shape}; allowed: {key.shape}, or its first {NOPE_DIM} columns"
        )
    if not value.size:
        return
    # The stride of a dimension of 1 is never used and may be anything.
    steps = [(a, b) for a, b, n in zip(value.strides, key.strides, key.shape, strict=True) if n > 1]
    if value.ctypes.data != key.ctypes.data or any(a != b for a, b in steps):
        raise ValueError(
            "value is a tensor of its own, which would be ignored: values are read from key's rows; allowed: "
            f"key, a view of its memory (all {ROW_BYTES} columns or the first {NOPE_DIM}), or None"
        )


def _check_query_lengths(spec: KernelSpec, lengths: Any, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    name = "actual_seq_lengths_query"
    if spec.layout_query == "TND":
        if lengths is None:
            refuse(name, None, "inclusive prefix sums, int32 [B]; required by layout_query TND")
        sums = as_lengths(name, lengths, None)
        check_prefix_sums(name, sums, shape[0], "query's T")
        return sums
    batch, tokens = shape[:2]
    if lengths is None:
        return _alike(batch, tokens)
    counts = as_lengths(name, lengths, batch)
    check_counts(name, counts, tokens, "query's S1")
    return counts


def _check_kv_lengths(
    spec: KernelSpec, lengths: Any, block_table: Any, key: npt.NDArray[np.uint8], batch: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32] | None]:
    """The cache's lengths, and the block table where it is paged."""
    name = "actual_seq_lengths_kv"
    if block_table is not None and not spec.paged:
        refuse("block_table", block_table, f"None with layout_kv {spec.layout_kv}")
    if lengths is None:
        if spec.layout_kv != "BSND":
            refuse(name, None, f"int32 [B]; required by layout_kv {spec.layout_kv}")
        return _alike(batch, key.shape[1]), None
    checked = as_lengths(name, lengths, batch)
    if spec.paged:
        if block_table is None:
            refuse("block_table", None, "int32 [B, width]; required by layout_kv PA_BSND")
        return checked, as_block_table(block_table, checked, page_size=key.shape[1], pages=key.shape[0])
    if spec.layout_kv == "TND":
        check_prefix_sums(name, checked, key.shape[0], "key's T2")
    else:
        check_counts(name, checked, key.shape[1], "key's S2")
    return checked, None


@functools.lru_cache(maxsize=64)
def _alike(batch: int, length: int) -> npt.NDArray[np.int32]:
    """The same length for each request; read-only, since other calls have it too."""
    lengths = np.full(batch, length, np.int32)
    lengths.flags.writeable = False
    return lengths


def check_out(
    out: Any,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    inputs: tuple[Any, ...],
    why: str = "query's dtype ",
) -> None:
    """Check the caller's array for the result; `why` says where its dtype comes from.

    Raises:
        TypeError: not an array, or of another dtype.
        ValueError: another shape, not writable, or memory that is shared among elements or with an input.
    """
    array = as_array("out", out)
    if array.dtype != dtype:
        raise TypeError(f"out is dtype {array.dtype}; allowed: {why}{dtype}")
    check_shape("out", array.shape, shape)
    if not array.flags.writeable:
        raise ValueError("out is read-only; allowed: a writable array")
    if not array.flags.c_contiguous and _shares_elements(array):
        raise ValueError(
            f"out has strides {array.strides}: elements share memory; allowed: elements of their own"
        )
    for given in inputs:
        if isinstance(given, np.ndarray) and np.may_share_memory(array, given) and _overlap(array, given):
            raise ValueError("out overlaps the memory of an input; allowed: memory of its own")


def _shares_elements(array: npt.NDArray[Any]) -> bool:
    """Whether elements may lie on each other: a stride that does not step over what is inside it."""
    inside = array.itemsize
    steps = ((abs(step), size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1)
    for step, size in sorted(steps):
        if step < inside:
            return True
        inside += (size - 1) * step
    return False


def _overlap(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=_SHARING_WORK))
    except np.exceptions.TooHardError:
        return True
