"""How long a call takes, beside PyTorch on the same maths: `python -m qsmla.tools.bench`.

All contenders run in one process, in turn, round after round, each round on another set of selected tokens
of a cache far larger than the processor's own. The machine's drift and noise fall on all of them, so the
ratios of the medians are what to read. A contender's result is checked before it is timed. PyTorch is
optional: `pip install torch==2.13.0` (the CPU build).
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

import qsmla
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES
from qsmla.runtime import reference
from qsmla.runtime.checks import check_call
from qsmla.runtime.workers import worker_count

SHAPES: Final = ((1, 128, 2048), (1, 16, 2048), (16, 1, 2048))
"""(rows, heads, selected tokens a row)."""
CACHE_ROWS: Final = 400_000
"""262 MB: several times a large last-level cache."""
SCALE: Final = (128 + 64) ** -0.5
LARGEST_ERROR: Final = 0.01
"""Allowed |difference| / |reference| (Frobenius norms): all contenders multiply bfloat16 numbers."""

Call = Callable[[int], npt.NDArray[np.float32]]
"""From the number of an index set to the output, float32 [rows, heads, 512]."""


@dataclass(frozen=True, eq=False)
class Case:
    """One shape's inputs."""

    query: npt.NDArray[Any]
    """bfloat16 [rows, heads, 576]."""
    cache: npt.NDArray[np.int8]
    """[CACHE_ROWS, 656]."""
    indices: list[npt.NDArray[np.int32]]
    """Index sets, each [rows, K]."""


@dataclass(frozen=True)
class Timing:
    """What a contender took on a shape; seconds over the rounds."""

    rows: int
    heads: int
    selected: int
    contender: str
    error: float
    first: float
    minimum: float
    median: float
    p90: float
    columns: int = 2 * NOPE_DIM + ROPE_DIM
    """Of a key and a value together."""

    @property
    def gflops(self) -> float:
        """Of the two matmuls, by the median."""
        return 2 * self.rows * self.heads * self.selected * self.columns / self.median / 1e9


def build_cache(random: np.random.Generator) -> npt.NDArray[np.int8]:
    """A packed int8 cache on a 64-byte boundary."""
    cache = qsmla.aligned_empty((CACHE_ROWS, ROW_BYTES), np.int8)
    step = CACHE_ROWS // 16
    for start in range(0, CACHE_ROWS, step):
        nope = random.standard_normal((step, NOPE_DIM), np.float32)
        rope = random.standard_normal((step, ROPE_DIM), np.float32).astype(ml_dtypes.bfloat16)
        cache[start : start + step] = qsmla.pack_kv(nope, rope, "int8")
    return cache


def build_case(
    shape: tuple[int, int, int], cache: npt.NDArray[np.int8], sets: int, random: np.random.Generator
) -> Case:
    """Random queries and `sets` random selections for a shape (rows, heads, selected tokens)."""
    rows, heads, selected = shape
    query = random.standard_normal((rows, heads, NOPE_DIM + ROPE_DIM), np.float32)
    indices = [
        np.stack([random.choice(len(cache), selected, replace=False) for _ in range(rows)]).astype(np.int32)
        for _ in range(sets)
    ]
    return Case(query.astype(ml_dtypes.bfloat16), cache, indices)


def arguments(case: Case, index_set: int) -> dict[str, Any]:
    """The operator's arguments."""
    return {
        "query": case.query[None],
        "key": case.cache[None, :, None],
        "value": None,
        "sparse_indices": case.indices[index_set][None, :, None],
        "scale_value": SCALE,
        "sparse_mode": 0,
    }


def product(case: Case) -> Call:
    """The operator on the portable schedule, worker threads as many as it takes by itself."""

    def call(index_set: int) -> npt.NDArray[np.float32]:
        output = qsmla.kv_quant_sparse_flash_attention(**arguments(case, index_set))
        rows: npt.NDArray[np.float32] = np.asarray(output)[0]
        return rows

    return call


def torch_program(case: Case, compiled: bool) -> Call:
    """Gather, dequantise, matmul, softmax, matmul in bfloat16, eagerly or through torch.compile."""
    import torch

    def attention(query: Any, cache: Any, indices: Any) -> Any:
        rows = cache[indices.long()]
        codes = rows[..., :NOPE_DIM].float().unflatten(-1, (4, 128))
        scales = rows[..., NOPE_DIM + 2 * ROPE_DIM :].view(torch.float32)
        value = (codes * scales[..., None]).flatten(-2).bfloat16()
        rope = rows[..., NOPE_DIM : NOPE_DIM + 2 * ROPE_DIM].view(torch.bfloat16)
        scores = query @ torch.cat([value, rope], -1).transpose(1, 2)
        weights = torch.softmax(scores.float() * SCALE, -1).bfloat16()
        return weights @ value

    program = torch.compile(attention) if compiled else attention
    query = torch.from_numpy(case.query.view(np.int16)).view(torch.bfloat16)
    cache = torch.from_numpy(case.cache)
    indices = [torch.from_numpy(each) for each in case.indices]

    def call(index_set: int) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            output: npt.NDArray[np.float32] = program(query, cache, indices[index_set]).float().numpy()
        return output

    return call


def contenders(case: Case, with_torch: bool, with_compile: bool) -> dict[str, Call]:
    """By name."""
    calls = {"qsmla": product(case)}
    if with_torch:
        calls["torch eager"] = torch_program(case, compiled=False)
    if with_torch and with_compile:
        calls["torch.compile"] = torch_program(case, compiled=True)
    return calls


def measure(
    shape: tuple[int, int, int],
    expected: npt.NDArray[np.float64],
    calls: dict[str, Call],
    sets: int,
    rounds: int,
) -> list[Timing]:
    """Check every contender, then time them in turn.

    Args:
        shape: rows, heads, keys of a row.
        expected: what index set 0 gives.
        calls: the contenders.
        sets: how many index sets there are.
        rounds: timed calls of each.

    Raises:
        ValueError: a contender's result is wrong.
    """
    errors: dict[str, float] = {}
    firsts: dict[str, float] = {}
    for name, call in calls.items():
        begin = time.perf_counter()
        output = call(0).astype(np.float64)
        firsts[name] = time.perf_counter() - begin
        errors[name] = float(np.linalg.norm(output - expected) / np.linalg.norm(expected))
        if not errors[name] <= LARGEST_ERROR:
            raise ValueError(f"{name} on {shape}: relative error {errors[name]}; allowed: {LARGEST_ERROR}")
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for index in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call(index % sets)
            seconds[name].append(time.perf_counter() - begin)
    timings = []
    for name, taken in seconds.items():
        p90 = statistics.quantiles(taken, n=10)[-1]
        spread = (min(taken), statistics.median(taken), p90)
        timings.append(Timing(*shape, name, errors[name], firsts[name], *spread))
    return timings


def show(timings: list[Timing], console: Console) -> None:
    """The table: a line a contender and shape, ratios against qsmla's median."""
    table = Table("rows x heads x keys", "contender", "error")
    for title in ("first s", "min ms", "median ms", "p90 ms", "GFLOP/s", "ratio"):
        table.add_column(title, justify="right", no_wrap=True)
    own: dict[str, float] = {}
    for timing in timings:
        shape = f"{timing.rows} x {timing.heads} x {timing.selected}"
        ratio = timing.median / own.setdefault(shape, timing.median)
        milliseconds = [f"{1e3 * value:.1f}" for value in (timing.minimum, timing.median, timing.p90)]
        first = [timing.contender, f"{timing.error:.1e}", f"{timing.first:.1f}"]
        table.add_row(shape, *first, *milliseconds, f"{timing.gflops:.1f}", f"{ratio:.2f}")
    console.print(table)


def main(
    rounds: Annotated[int, typer.Option(min=2, help="Timed calls of each contender on each shape.")] = 15,
    compiled: Annotated[bool, typer.Option("--compile", help="Time torch.compile too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Time the operator beside PyTorch, in one run."""
    with_torch = importlib.util.find_spec("torch") is not None
    console = Console(stderr=as_json)
    if not with_torch:
        console.print("PyTorch is not installed, so nothing stands beside qsmla: pip install torch==2.13.0")
    random = np.random.default_rng(0)
    cache = build_cache(random)
    timings: list[Timing] = []
    for shape in SHAPES:
        case = build_case(shape, cache, 8, random)
        expected = reference.attend(check_call(**arguments(case, 0))).output
        calls = contenders(case, with_torch, compiled)
        timings += measure(shape, expected, calls, len(case.indices), rounds)
    if as_json:
        print(json.dumps({"workers": worker_count(), "timings": [asdict(each) for each in timings]}))
    else:
        console.print(f"{worker_count()} workers, {CACHE_ROWS:,} cached rows, int8, medians of {rounds}")
        show(timings, console)


if __name__ == "__main__":
    typer.run(main)
