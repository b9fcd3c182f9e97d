"""How even the planner's partitions are, and how long planning takes: `python -m qsmla.tools.balance`.

Beside each balance stands that of a planner in the style of FlashMLA's, which cuts whole requests, knows no
causal mask and gives each part a fixed payload. It is here for the comparison only.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from qsmla.runtime.metadata import mla_fingerprint, plan_mla, quant_sparse_flash_mla_metadata
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths, row_blocks

CORES: Final = (2, 8, 64, 132)
FIXED_OVERHEAD: Final = 5
"""Blocks that FlashMLA adds for each request on a part."""
Piece = tuple[int, int, int]
"""Request, first key block, end."""


def workloads() -> dict[str, dict[str, Any]]:
    """The planner's arguments of each workload, by name."""
    log_uniform = np.exp(np.random.default_rng(0).uniform(0, np.log(131072), 64)).astype(np.int32)
    decode = {"num_heads_q": 128, "seqused_q": np.ones(64, np.int32), "has_cmp_kv": False}
    prefill = {
        "num_heads_q": 128,
        "batch_size": 4,
        "max_seqlen_q": 8192,
        "max_seqlen_ori_kv": 8192,
        "ori_mask_mode": 3,
    }
    window = {"ori_mask_mode": 4, "ori_win_left": 127, "ori_win_right": 0, "cmp_mask_mode": 3}
    return {
        "decode, 64 requests, 1..131,072 log-uniform": decode | {"seqused_ori_kv": log_uniform},
        "prefill, 4 x 8,192 causal": prefill | {"has_cmp_kv": False},
        **{
            f"prefill, window 128 + compressed 1/{ratio}": prefill
            | window
            | {"max_seqlen_cmp_kv": 8192 // ratio, "cmp_ratio": ratio}
            | {"cmp_residual_kv": np.zeros(4, np.int32)}
            for ratio in (4, 128)
        },
        "decode, one of 131,072 and 63 of 16": decode
        | {"seqused_ori_kv": np.array([131072] + [16] * 63, np.int32)},
    }


def typed(arguments: dict[str, Any]) -> tuple[MlaAttributes, MlaLengths]:
    """The arguments of the planner as it works on them."""
    names = MlaAttributes.__dataclass_fields__.keys()
    attributes = MlaAttributes(**{name: arguments[name] for name in names & arguments.keys()})
    rest = {name: value for name, value in arguments.items() if name not in names}
    return attributes, MlaLengths.resolve(attributes, **rest)


def request_pieces(blocks: list[int], parts: int, overhead: int = FIXED_OVERHEAD) -> list[list[Piece]]:
    """Requests of key blocks cut the FlashMLA way: what each part does.

    Every part gets the same payload, an even share of all blocks and overheads, rounded up, and one more
    overhead for a cut. A part takes requests while their rest and the overhead fit.
    """
    payload = -(-(sum(blocks) + overhead * len(blocks)) // parts) + overhead
    plan: list[list[Piece]] = []
    request = begin = 0
    for _ in range(parts):
        left, pieces = payload, []
        while request < len(blocks) and left > overhead:
            end = min(blocks[request], begin + left - overhead)
            pieces.append((request, begin, end))
            left -= end - begin + overhead
            if end == blocks[request]:
                request, begin = request + 1, 0
            else:
                begin = end
        plan.append(pieces)
    return plan


def request_balance(
    blocks: NDArray[Any], rows_per_batch: NDArray[Any], parts: int, row_overhead: int
) -> float:
    """Largest load / mean load of the FlashMLA-style plan, the loads counted as this project counts them.

    A part that does key blocks begin..end of a request does those that they are of each row of it.
    """
    starts = np.cumsum(rows_per_batch) - rows_per_batch
    rows = [blocks[start : start + count] for start, count in zip(starts, rows_per_batch, strict=True)]
    longest = [int(of_request.max(initial=0)) for of_request in rows]
    loads = []
    for pieces in request_pieces(longest, parts):
        load = 0
        for request, begin, end in pieces:
            done = np.clip(rows[request], begin, end) - begin
            load += int(done.sum()) + row_overhead * int(np.count_nonzero(done))
        loads.append(load)
    return max(loads) / statistics.mean(loads)


def balance_table() -> Table:
    """Balance by workload and cores: this planner's, and the FlashMLA-style one's."""
    titles = [f"{cores} cores" for cores in CORES]
    table = Table("largest load / mean load", *titles, title="Balance: this planner | FlashMLA-style")
    for name, arguments in workloads().items():
        attributes, lengths = typed(arguments)
        cells = []
        for cores in CORES:
            partition = plan_mla(attributes, lengths, cores)
            blocks = row_blocks(attributes, lengths, partition.key_block)
            other = request_balance(blocks, lengths.query, cores, partition.row_overhead)
            cells.append(f"{partition.balance:.4f} | {other:.4f}")
        table.add_row(name, *cells)
    return table


def timed_calls() -> dict[str, dict[str, Any]]:
    """The planner's arguments of the calls whose planning is timed, by name."""
    lengths = np.random.default_rng(0).integers(1, 131072, 4096).astype(np.int32)
    decode = {"num_heads_q": 128, "seqused_q": np.ones(4096, np.int32), "seqused_ori_kv": lengths}
    prefill = {
        "num_heads_q": 128,
        "layout_q": "TND",
        "cu_seqlens_q": np.arange(0, 1_000_001, 25_000, dtype=np.int32),
        "max_seqlen_ori_kv": 25_000,
    }
    window = {
        "ori_mask_mode": 4,
        "ori_win_left": 127,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
        "cmp_ratio": 4,
        "max_seqlen_cmp_kv": 6250,
        "cmp_residual_kv": np.zeros(40, np.int32),
    }
    return {
        "decode, B = 4,096": decode | {"has_cmp_kv": False},
        "prefill, 1,000,000 rows, causal": prefill | {"ori_mask_mode": 3, "has_cmp_kv": False},
        "prefill, 1,000,000 rows, window + compressed": prefill | window,
    }


def timing_table() -> Table:
    """Milliseconds to plan, beside the plain loop of the tests where that is at hand.

    CPU time is what a busy machine leaves comparable.
    """
    plain = _plain_planner()
    titles = ("milliseconds to plan", "cores", "median", "min", "CPU median", "plain loop")
    table = Table(*titles, title="Planning")
    for name, arguments in timed_calls().items():
        mark = mla_fingerprint(*typed(arguments))
        for cores in (2, 132):
            planner = partial(quant_sparse_flash_mla_metadata, **arguments, num_cores=cores)
            times = _times(planner, time.perf_counter, 50)
            cpu = statistics.median(_times(planner, time.process_time, 50))
            loop = "-"
            if plain is not None:
                loop = f"{_times(partial(plain, arguments, cores, mark), time.perf_counter, 1)[0]:,.0f}"
            cells = (f"{milliseconds:.2f}" for milliseconds in (statistics.median(times), min(times), cpu))
            table.add_row(name, str(cores), *cells, loop)
    return table


def _times(call: Callable[[], object], clock: Callable[[], float], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        begin = clock()
        call()
        times.append(1e3 * (clock() - begin))
    return times


def _plain_planner() -> Callable[[dict[str, Any], int, int], list[int]] | None:
    """The plain loop, which comes with the sources and not with the package."""
    path = Path(__file__).resolve().parents[1] / "tests" / "runtime" / "plain_planner.py"
    spec = importlib.util.spec_from_file_location("plain_planner", path)
    if not path.exists() or spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    planner: Callable[[dict[str, Any], int, int], list[int]] = module.plain_metadata
    return planner


def main() -> None:
    """Print both tables."""
    console = Console(width=140)
    console.print(balance_table())
    console.print(timing_table())


if __name__ == "__main__":
    main()
