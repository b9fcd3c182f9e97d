"""A decode step of each operator at full size, compiled, run and checked: `make demo`."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import qsmla
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM
from qsmla.runtime import compare, reference
from qsmla.runtime.checks import check_call
from qsmla.runtime.selection import row_geometry
from qsmla.runtime.workers import worker_count
from qsmla.tools import demo_mla

HEADS: Final = 128
CONTEXTS: Final = (1_024, 4_096, 16_384, 32_768)
"""Cached tokens of each request."""
PAGE_SIZE: Final = 64
TOP_K: Final = 2_048
SCALE: Final = (128 + 64) ** -0.5
"""DeepSeek's own: one over the root of the head's width before absorption."""
SEED: Final = 20_260
RUNS: Final = 5


@dataclass(frozen=True)
class DecodeStep:
    """The operator's arguments, and how long the cache took to pack."""

    arguments: dict[str, Any]
    pack_seconds: float


def build_decode_step(contexts: tuple[int, ...] = CONTEXTS, heads: int = HEADS) -> DecodeStep:
    """One query row a request; a paged int8 cache of bf16 latents; the tokens with the largest scores.

    Args:
        contexts: cached tokens of each request.
        heads: query heads.
    """
    random = np.random.default_rng(SEED)
    pages_of = [-(-context // PAGE_SIZE) for context in contexts]
    # Physical pages in random order, as a cache that has served other requests hands them out.
    physical = random.permutation(sum(pages_of)).astype(np.int32)
    cache = qsmla.aligned_empty((len(physical), PAGE_SIZE, 1, 656), np.int8)
    table = np.zeros((len(contexts), max(pages_of)), np.int32)
    query = random.standard_normal((len(contexts), heads, NOPE_DIM + ROPE_DIM), np.float32)
    query = query.astype(ml_dtypes.bfloat16)
    indices = np.full((len(contexts), 1, TOP_K), -1, np.int32)
    pack_seconds = 0.0
    first = 0
    for request, (context, pages) in enumerate(zip(contexts, pages_of, strict=True)):
        latents = random.standard_normal((context, NOPE_DIM + ROPE_DIM), np.float32)
        latents = latents.astype(ml_dtypes.bfloat16)
        indices[request, 0, : min(context, TOP_K)] = _top_tokens(query[request], latents)
        begin = time.perf_counter()
        packed = qsmla.pack_kv(latents[:, :NOPE_DIM], latents[:, NOPE_DIM:], "int8")
        pack_seconds += time.perf_counter() - begin
        own = physical[first : first + pages]
        table[request, :pages] = own
        rows = (own[:, None] * PAGE_SIZE + np.arange(PAGE_SIZE)).ravel()[:context]
        cache.reshape(-1, 656)[rows] = packed
        first += pages
    arguments = {
        "query": query,
        "key": cache,
        "value": cache,
        "sparse_indices": indices,
        "scale_value": SCALE,
        "block_table": table,
        "actual_seq_lengths_query": np.arange(1, len(contexts) + 1, dtype=np.int32),
        "actual_seq_lengths_kv": np.array(contexts, np.int32),
        "layout_query": "TND",
        "layout_kv": "PA_BSND",
        "sparse_mode": 3,
        "return_softmax_lse": True,
    }
    return DecodeStep(arguments, pack_seconds)


def _top_tokens(query: npt.NDArray[Any], latents: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The tokens whose score is largest over the heads, best first."""
    scores = (query.astype(np.float32) @ latents.astype(np.float32).T).max(axis=0)
    return np.argsort(-scores, kind="stable")[:TOP_K]


def run(step: DecodeStep, console: Console) -> bool:
    """Compile, run, check and time the step; prints what came out and says whether it is right."""
    arguments = step.arguments
    call = check_call(**arguments)
    begin = time.perf_counter()
    artifact = qsmla.compile(call.spec)
    console.print(f"kernel    {call.spec.label}", soft_wrap=True)
    console.print(f"target    {artifact.targets[0].label}, {worker_count()} workers")
    console.print(f"artifact  {len(artifact.data):,} bytes in {time.perf_counter() - begin:.2f} s")
    console.print(
        f"cache     {call.key.nbytes / 2**20:.1f} MiB packed from bf16 in {step.pack_seconds:.2f} s"
    )

    output, lse = qsmla.kv_quant_sparse_flash_attention(**arguments)
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        qsmla.kv_quant_sparse_flash_attention(**arguments)
        seconds.append(time.perf_counter() - begin)
    expected = reference.attend(call)
    report = compare.compare(output, expected.output, expected.vmax, lse=lse, reference_lse=expected.lse)

    geometry = row_geometry(call)
    table = Table("row", "context", "tokens attended", "largest error", "lse error")
    total = 0
    for row, context in enumerate(np.asarray(arguments["actual_seq_lengths_kv"])):
        tokens = len(reference.attended_tokens(call, geometry, row))
        total += tokens
        error = np.abs(output[row].astype(np.float64) - expected.output[row]).max()
        lse_error = np.abs(lse[row] - expected.lse[row]).max()
        table.add_row(str(row), f"{context:,}", f"{tokens:,}", f"{error:.2e}", f"{lse_error:.1e}")
    console.print(table)
    median = statistics.median(seconds)
    flops = 2 * call.spec.heads * total * (2 * NOPE_DIM + ROPE_DIM)
    console.print(
        f"time      {median * 1e3:.1f} ms a call (median of {RUNS}), {flops / median / 1e9:.1f} GFLOP/s"
    )
    console.print(f"reference {report}", soft_wrap=True)
    return bool(report.passed)


def main() -> int:
    """Run the demo; 0 if every result passed."""
    console = Console()
    console.rule("kv_quant_sparse_flash_attention: a DeepSeek-V3.2 decode step")
    passed = run(build_decode_step(), console)
    return 0 if demo_mla.demo(console) and passed else 1


if __name__ == "__main__":
    sys.exit(main())
