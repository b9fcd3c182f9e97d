"""Small legal calls of the operator, for tests to run or to spoil."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from qsmla.runtime.packing import pack_kv

LAYOUTS = (("BSND", "BSND"), ("TND", "TND"), ("BSND", "PA_BSND"), ("TND", "PA_BSND"))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def normal(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any = BFLOAT16) -> npt.NDArray[Any]:
    """Standard normal values of a dtype."""
    return generator.standard_normal(shape, dtype=np.float32).astype(dtype)


def legal_arguments(
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    *,
    query_counts: tuple[int, ...] = (3, 3),
    kv_counts: tuple[int, ...] = (40, 40),
    heads: int = 2,
    selected: int = 5,
    page_size: int = 16,
    query_dtype: Any = BFLOAT16,
    kv_dtype: str = "int8",
    byte_order: str = "ascend",
    sparse_block_size: int = 1,
    sparse_mode: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """All arguments that a call needs, by name; every request's own tokens are selected at random.

    BSND pads to the largest count; a paged cache has its pages in random order and two spare ones.
    """
    generator = np.random.default_rng(seed)
    batch, tokens, width = len(query_counts), max(query_counts), max(kv_counts)
    arguments: dict[str, Any] = {}
    rows = (sum(query_counts),) if layout_query == "TND" else (batch, tokens)
    counts = {"query": query_counts, "kv": kv_counts}
    for name, layout in (("query", layout_query), ("kv", layout_kv)):
        lengths = np.array(counts[name], np.int32)
        arguments[f"actual_seq_lengths_{name}"] = (
            np.cumsum(lengths, dtype=np.int32) if layout == "TND" else lengths
        )
    cache: tuple[int, ...]
    if layout_kv == "TND":
        cache = (sum(kv_counts),)
    elif layout_kv == "BSND":
        cache = (batch, width)
    else:
        pages = -(-width // page_size)
        cache = (batch * pages + 2, page_size)
        table = generator.permutation(batch * pages + 2)[: batch * pages]
        arguments["block_table"] = table.reshape(batch, pages).astype(np.int32)
    key = pack_kv(
        normal(generator, (*cache, 1, 512), query_dtype),
        normal(generator, (*cache, 1, 64), query_dtype),
        kv_dtype,
        byte_order,
    )
    blocks = max(1, -(-width // sparse_block_size))
    return arguments | {
        "query": normal(generator, (*rows, heads, 576), query_dtype),
        "key": key,
        "value": key,
        "sparse_indices": generator.integers(0, blocks, (*rows, 1, selected), dtype=np.int32),
        "scale_value": 0.05,
        "layout_query": layout_query,
        "layout_kv": layout_kv,
        "kv_dtype": kv_dtype,
        "byte_order": byte_order,
        "sparse_block_size": sparse_block_size,
        "sparse_mode": sparse_mode,
    }
