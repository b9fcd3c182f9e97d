"""The demo's second part: HiFloat8 attention over a window of tokens and selected compressed ones."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from rich.console import Console

import qsmla
from qsmla.ir.codes import encode
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime import compare, mla_reference
from qsmla.runtime.mla_checks import MlaCall, check_mla_call
from qsmla.runtime.workers import worker_count

HEADS: Final = 64
CONTEXTS: Final = (900, 8_190, 65_534)
"""Tokens each request has seen."""
QUERY_ROWS: Final = (1, 2, 1)
WINDOW: Final = 128
RATIO: Final = 4
"""Tokens that one compressed token stands for."""
TOP_K: Final = 512
PAGE_SIZE: Final = 64
DESCALES: Final = {"q": 0.5, "ori_kv": 0.25, "cmp_kv": 0.125}
SEED: Final = 20_261
RUNS: Final = 5


def build_step(contexts: tuple[int, ...] = CONTEXTS, heads: int = HEADS) -> dict[str, Any]:
    """The operator's arguments: paged caches, of the originals the window alone, random selections and sinks.

    Args:
        contexts: tokens of each request.
        heads: query heads.
    """
    random = np.random.default_rng(SEED)
    rows = np.resize(QUERY_ROWS, len(contexts))
    # All that a window of the last rows reaches; what lies before it has left the cache.
    originals = np.minimum(contexts, WINDOW + rows - 1).astype(np.int32)
    compressed = (np.array(contexts) // RATIO).astype(np.int32)
    arguments: dict[str, Any] = {
        "q": _codes(random, (int(rows.sum()), heads, NOPE_DIM), DESCALES["q"]),
        "cu_seqlens_q": np.concatenate([[0], np.cumsum(rows)]).astype(np.int32),
        "softmax_scale": NOPE_DIM**-0.5,
        "sinks": random.standard_normal(heads, dtype=np.float32),
        "cmp_residual_kv": (np.array(contexts) % RATIO).astype(np.int32),
        "layout_q": "TND",
        "layout_kv": "PA_BBND",
        "ori_mask_mode": 4,
        "ori_win_left": WINDOW - 1,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
        "cmp_ratio": RATIO,
    }
    for part, lengths in (("ori", originals), ("cmp", compressed)):
        pages = -(-lengths // PAGE_SIZE)
        # Physical pages in random order, as a cache that has served other requests hands them out.
        physical = random.permutation(int(pages.sum())).astype(np.int32)
        table = np.zeros((len(contexts), pages.max()), np.int32)
        for request, first in enumerate(np.cumsum(pages) - pages):
            table[request, : pages[request]] = physical[first : first + pages[request]]
        name = f"{part}_kv"
        arguments[name] = _codes(random, (len(physical), PAGE_SIZE, 1, NOPE_DIM), DESCALES[name])
        arguments[f"{part}_block_table"] = table
        arguments[f"seqused_{name}"] = lengths
    for name, descale in DESCALES.items():
        arguments[f"{name}_descale"] = descale
    limits = compressed.repeat(rows)
    arguments["cmp_sparse_indices"] = np.stack([_selected(random, int(limit)) for limit in limits])[:, None]
    return arguments


def _codes(random: np.random.Generator, shape: tuple[int, ...], descale: float) -> npt.NDArray[np.uint8]:
    """Codes of standard normal values divided by `descale`, in memory that is read in place."""
    codes = qsmla.aligned_empty(shape, np.uint8)
    for part in codes:
        values = random.standard_normal(part.shape, dtype=np.float32) / np.float32(descale)
        part[...] = encode(values, "hifloat8")
    return codes


def _selected(random: np.random.Generator, tokens: int) -> npt.NDArray[np.int32]:
    """TOP_K of the compressed tokens, or all of them with -1 behind."""
    ids = np.full(TOP_K, -1, np.int32)
    chosen = random.choice(tokens, min(TOP_K, tokens), replace=False)
    ids[: len(chosen)] = chosen
    return ids


def plan(call: MlaCall, arguments: dict[str, Any], num_cores: int) -> npt.NDArray[np.int32]:
    """The work partition of the step, from its lengths alone."""
    lengths = {name: arguments[name] for name in ("cu_seqlens_q", "seqused_ori_kv", "seqused_cmp_kv")}
    masks = {
        name: arguments[name]
        for name in (
            *("ori_mask_mode", "ori_win_left", "ori_win_right", "cmp_mask_mode", "cmp_ratio"),
            *("cmp_residual_kv", "layout_q", "layout_kv"),
        )
    }
    return qsmla.quant_sparse_flash_mla_metadata(
        call.spec.heads, cmp_topk=TOP_K, num_cores=num_cores, **lengths, **masks
    )


def run(arguments: dict[str, Any], console: Console) -> bool:
    """Plan, compile, run, check and time the step; prints what came out and says whether it is right."""
    call = check_mla_call(**arguments)
    begin = time.perf_counter()
    artifact = qsmla.compile(call.spec)
    console.print(f"kernel    {call.spec.label}", soft_wrap=True)
    console.print(f"artifact  {len(artifact.data):,} bytes in {time.perf_counter() - begin:.2f} s")
    words = plan(call, arguments, worker_count())
    partition = qsmla.Partition.decode(words)
    console.print(
        f"plan      {partition.rows} rows over {partition.num_cores} cores: largest load "
        f"{partition.largest_load} key blocks, balance {partition.balance:.3f}, "
        f"{len(partition.combines)} split rows",
        soft_wrap=True,
    )
    output, lse = qsmla.quant_sparse_flash_mla(**arguments, metadata=words, return_softmax_lse=True)
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        qsmla.quant_sparse_flash_mla(**arguments, metadata=words)
        seconds.append(time.perf_counter() - begin)
    rows = [(b, s) for b, count in enumerate(call.lengths.query) for s in range(count)]
    keys = sum(len(t) for b, s in rows for t in mla_reference.attended_tokens(call, b, s).values())
    median = statistics.median(seconds)
    flops = 4 * call.spec.heads * keys * NOPE_DIM
    console.print(
        f"time      {median * 1e3:.1f} ms a call (median of {RUNS}), {keys:,} keys attended to, "
        f"{flops / median / 1e9:.1f} GFLOP/s"
    )
    expected = mla_reference.attend(call)
    report = compare.compare(output, expected.output, expected.vmax, lse=lse, reference_lse=expected.lse)
    console.print(f"reference {report}", soft_wrap=True)
    return bool(report.passed)


def demo(console: Console) -> bool:
    """The whole part; whether every result passed."""
    console.rule("quant_sparse_flash_mla: a window, and 512 of the compressed tokens")
    return run(build_step(), console)
