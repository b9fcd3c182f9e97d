"""Calls of a kernel on random inputs that exercise its addressing: ragged lengths, invalid ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from qsmla.ir.codes import encode
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, KernelSpec, MlaSpec, Spec
from qsmla.runtime.packing import pack_kv

_QUERY_DTYPES: Final[dict[str, Any]] = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
PAGE_SIZE: Final = 128


@dataclass(frozen=True)
class Shape:
    """Sizes of a generated call, each at least 1.

    Attributes:
        batch: requests.
        query_tokens: most query tokens of a request.
        kv_tokens: most cached tokens of a request.
        topk: selected blocks of a row.
    """

    batch: int = 3
    query_tokens: int = 2
    kv_tokens: int = 300
    topk: int = 64


def generated_call(spec: Spec, shape: Shape, seed: int = 0) -> dict[str, Any]:
    """All arguments of a call that `spec` is for, by name.

    Raises:
        TypeError: `spec` is of no operator that calls are generated for.
    """
    if isinstance(spec, KernelSpec):
        return _attention_call(spec, shape, seed)
    if isinstance(spec, MlaSpec):
        return _mla_call(spec, shape, seed)
    raise TypeError(f"spec is a {type(spec).__name__}; allowed: a KernelSpec or an MlaSpec")


def _attention_call(spec: KernelSpec, shape: Shape, seed: int) -> dict[str, Any]:
    """A call of `kv_quant_sparse_flash_attention`.

    The first request has the full lengths and the others random ones; about a quarter of a row's ids lie
    behind its sequence or are -1.
    """
    generator = np.random.default_rng(seed)
    dtype = _QUERY_DTYPES[spec.query_dtype]

    def normal(*sizes: int) -> npt.NDArray[Any]:
        return generator.standard_normal(sizes, dtype=np.float32).astype(dtype)

    query_counts, kv_counts = (
        np.array([most, *generator.integers(0, most + 1, shape.batch - 1)], np.int32)
        for most in (shape.query_tokens, shape.kv_tokens)
    )
    ragged_query, ragged_kv = spec.layout_query == "TND", spec.layout_kv == "TND"
    rows = (int(query_counts.sum()),) if ragged_query else (shape.batch, shape.query_tokens)
    pages = -(-shape.kv_tokens // PAGE_SIZE)
    fields = ("layout_query", "layout_kv", "kv_dtype", "sparse_block_size", "sparse_mode", "byte_order")
    arguments = {name: getattr(spec, name) for name in fields}
    if spec.paged:
        cache: tuple[int, ...] = (shape.batch * pages, PAGE_SIZE)
        table = generator.permutation(shape.batch * pages).reshape(shape.batch, pages)
        arguments["block_table"] = table.astype(np.int32)
    else:
        cache = (int(kv_counts.sum()),) if ragged_kv else (shape.batch, shape.kv_tokens)
    blocks = -(-shape.kv_tokens // spec.sparse_block_size)
    indices = generator.integers(0, blocks + blocks // 3 + 1, (*rows, 1, shape.topk), dtype=np.int32)
    return arguments | {
        "query": normal(*rows, spec.heads, NOPE_DIM + ROPE_DIM),
        "key": pack_kv(
            normal(*cache, 1, NOPE_DIM), normal(*cache, 1, ROPE_DIM), spec.kv_dtype, spec.byte_order
        ),
        "value": None,
        "sparse_indices": np.where(indices < blocks + 1, indices, np.int32(-1)),
        "scale_value": (NOPE_DIM + ROPE_DIM) ** -0.5,
        "actual_seq_lengths_query": _lengths(query_counts, ragged_query),
        "actual_seq_lengths_kv": _lengths(kv_counts, ragged_kv),
    }


def _mla_call(spec: MlaSpec, shape: Shape, seed: int) -> dict[str, Any]:
    """A call of `quant_sparse_flash_mla`: a window of 128 original tokens, one compressed token for four.

    Lengths and ids as in the other operator's call, sinks at random.
    """
    generator = np.random.default_rng(seed)

    def codes(*sizes: int) -> npt.NDArray[np.uint8]:
        return encode(generator.standard_normal(sizes, dtype=np.float32), "hifloat8")

    def counts(most: int) -> npt.NDArray[np.int32]:
        return np.array([most, *generator.integers(0, most + 1, shape.batch - 1)], np.int32)

    rows = (shape.batch, shape.query_tokens)
    arguments: dict[str, Any] = {
        "q": codes(*rows, spec.heads, NOPE_DIM),
        "q_descale": 1.0,
        "softmax_scale": NOPE_DIM**-0.5,
        "sinks": generator.standard_normal(spec.heads, dtype=np.float32),
        "seqused_q": counts(shape.query_tokens),
        "layout_kv": "PA_BBND" if spec.paged else "BSND",
        "ori_mask_mode": 4,
        "ori_win_left": 127,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
        "cmp_ratio": 4,
        "cmp_residual_kv": generator.integers(0, 4, shape.batch, dtype=np.int32),
    }
    for part, kind in spec.parts.items():
        tokens = shape.kv_tokens if part == "ori" else max(1, shape.kv_tokens // 4)
        pages = -(-tokens // PAGE_SIZE)
        if spec.paged:
            table = generator.permutation(shape.batch * pages).reshape(shape.batch, pages)
            arguments[f"{part}_block_table"] = table.astype(np.int32)
        cache = (shape.batch * pages, PAGE_SIZE) if spec.paged else (shape.batch, tokens)
        arguments[f"{part}_kv"] = codes(*cache, 1, NOPE_DIM)
        arguments[f"{part}_kv_descale"] = 1.0
        arguments[f"seqused_{part}_kv"] = counts(tokens)
        if kind == "sparse":
            ids = generator.integers(0, tokens + tokens // 3 + 1, (*rows, 1, shape.topk), dtype=np.int32)
            arguments[f"{part}_sparse_indices"] = np.where(ids < tokens + 1, ids, np.int32(-1))
    return arguments


def _lengths(counts: npt.NDArray[np.int32], ragged: bool) -> npt.NDArray[np.int32]:
    return np.cumsum(counts, dtype=np.int32) if ragged else counts
