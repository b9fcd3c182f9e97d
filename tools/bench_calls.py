"""What a call costs beside its arithmetic, and whether costs grow as the work does: `qsmla bench --calls`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from qsmla.compiler.cache import ENVIRONMENT_VARIABLE as CACHE_VARIABLE
from qsmla.runtime.workers import ENVIRONMENT_VARIABLE as WORKERS_VARIABLE
from qsmla.runtime.workers import worker_count
from qsmla.tools.bench import SEED, Settings, threads
from qsmla.tools.bench_measure import OWN, Absent, Spread, admit, interleave, one_line
from qsmla.tools.bench_peers import COMPILED, Choice, product, torch_attention
from qsmla.tools.bench_roof import multiplies_bf16, square
from qsmla.tools.bench_shapes import AttentionCase, Shape, build_cache, build_case

SMALLEST: Final = Shape(1, 1, 16)
SMALL_CACHE: Final = 4096
SCALING: Final = Shape(1, 128, 2048)
FIRST: Final = Shape(1, 16, 2048)
COST_HEADS: Final = (16, 128)
COST_KEYS: Final = (512, 1024, 2048, 4096, 8192, 16_384, 32_768)
COST_ROWS: Final = (1, 4, 16, 64, 256)
_OVERHEAD_ROUNDS: Final = 200
_OVERHEAD_PAUSE_S: Final = 0.0005
_CHILD_SECONDS: Final = 300


@dataclass(frozen=True)
class First:
    """Seconds of the first call in a fresh process: nothing cached, and what that left cached."""

    cold: float
    warm: float


@dataclass(frozen=True)
class Cost:
    """Nanoseconds per query row, head and key that is attended to, by the median."""

    heads: int
    rows: int
    keys: int
    nanoseconds: float


@dataclass(frozen=True)
class Calls:
    """The second table.

    Attributes:
        workers: threads.
        overhead: seconds of the smallest call, by contender.
        first: first calls, by contender.
        scaling: speed of all workers over that of one, of qsmla and of what the machine gives to a large
            matmul of PyTorch's; empty with one worker.
        costs: of growing lists and of growing numbers of rows.
        flatness: the largest cost over the smallest, by the name of a sweep.
        absent: what was not measured.
    """

    workers: int
    overhead: dict[str, Spread]
    first: dict[str, First]
    scaling: dict[str, float]
    costs: list[Cost]
    flatness: dict[str, float]
    absent: list[Absent] = field(default_factory=list)


def run(settings: Settings, say: Callable[[str], None] = lambda text: None) -> Calls:
    """Measure all of the second table, on the first code format of the settings.

    Args:
        settings: as for the first table; its shapes are not used. Lists of keys that the cache cannot hold
            are left out.
        say: told what is being done.
    """
    with threads(settings.workers, settings.choice):
        return _run(settings, say)


def _run(settings: Settings, say: Callable[[str], None]) -> Calls:
    random = np.random.default_rng(SEED)
    kv_dtype, choice, rounds = settings.kv_dtypes[0], settings.choice, settings.rounds
    absent: list[Absent] = []
    say("call overhead")
    overhead = _overhead(kv_dtype, choice, random, absent)
    say("first calls")
    first = _first_calls(kv_dtype, choice, absent)
    cache = build_cache(settings.cache_rows, kv_dtype, random)

    def case(shape: Shape) -> AttentionCase:
        return build_case(shape, cache, kv_dtype, random)

    say("scaling")
    scaling = {}
    if worker_count() == 1:
        absent.append(Absent("scaling", "there is one worker"))
    else:
        scaling = _scaling(case(SCALING), rounds, choice)
    costs, flatness = [], {}
    for heads in COST_HEADS:
        lists = [Shape(1, heads, keys) for keys in COST_KEYS if keys <= settings.cache_rows]
        for name, shapes in (("keys", lists), ("rows", [Shape(rows, heads, 512) for rows in COST_ROWS])):
            say(f"cost per key, {heads} heads, more {name}")
            found = _costs([case(shape) for shape in shapes], rounds, choice)
            costs += found
            values = [cost.nanoseconds for cost in found]
            flatness[f"{heads} heads, {_range(name, found)}"] = max(values) / min(values)
    return Calls(worker_count(), overhead, first, scaling, costs, flatness, absent)


def _range(name: str, costs: list[Cost]) -> str:
    values = [getattr(cost, name) for cost in costs]
    return f"{values[0]} to {values[-1]} {name}"


def _overhead(
    kv_dtype: str, choice: Choice, random: np.random.Generator, absent: list[Absent]
) -> dict[str, Spread]:
    cache = build_cache(SMALL_CACHE, kv_dtype, random)
    case = build_case(SMALLEST, cache, kv_dtype, random)
    found, missing = torch_attention(case, choice)
    contenders = [product(case, choice.target), *found]
    admitted, refused = admit(contenders, case.expected)
    absent += [*missing, *refused]
    calls = {one.name: one.call for one in contenders if one.name in admitted}
    return interleave(calls, _OVERHEAD_ROUNDS, _OVERHEAD_PAUSE_S)


def _ready(case: AttentionCase, choice: Choice) -> Callable[[int], Any]:
    """qsmla's calls of a case, compiled and found right."""
    contender = product(case, choice.target)
    admit([contender], case.expected)
    return contender.call


def _scaling(case: AttentionCase, rounds: int, choice: Choice) -> dict[str, float]:
    every = worker_count()
    probes = {OWN: (_ready(case, choice), _use_workers)}
    if choice.why_no_torch() is None:
        matmul = square("bf16" if multiplies_bf16() else "f32")
        probes[matmul.name] = (matmul.call, _use_torch_threads)

    def timed(call: Callable[[int], Any], use: Callable[[int], None], count: int) -> Callable[[int], Any]:
        def timed_call(number: int) -> Any:
            use(count)
            return call(number)

        return timed_call

    before = os.environ.get(WORKERS_VARIABLE)
    try:
        spreads = interleave(
            {
                f"{name} {count}": timed(*probe, count)
                for name, probe in probes.items()
                for count in (1, every)
            },
            rounds,
        )
    finally:
        os.environ.pop(WORKERS_VARIABLE, None)
        if before is not None:
            os.environ[WORKERS_VARIABLE] = before
        if len(probes) > 1:
            _use_torch_threads(every)
    return {name: spreads[f"{name} 1"].median / spreads[f"{name} {every}"].median for name in probes}


def _use_workers(count: int) -> None:
    os.environ[WORKERS_VARIABLE] = str(count)


def _use_torch_threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)


def _costs(cases: list[AttentionCase], rounds: int, choice: Choice) -> list[Cost]:
    calls = {case.name: _ready(case, choice) for case in cases}
    spreads = interleave(calls, rounds)
    return [
        Cost(case.heads, case.rows, case.keys, 1e9 * spreads[case.name].median / case.attended / case.heads)
        for case in cases
    ]


def _first_calls(kv_dtype: str, choice: Choice, absent: list[Absent]) -> dict[str, First]:
    """In fresh processes, with caches of their own."""
    names = ["qsmla"]
    if choice.why_no_torch() is None and choice.compiled:
        names.append(COMPILED)
    first = {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="qsmla-bench-") as folder:
            environment = os.environ | {
                CACHE_VARIABLE: folder,
                "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "inductor"),
            }
            words = [sys.executable, "-m", "qsmla.tools.bench_calls", name, kv_dtype, choice.target]
            seconds = []
            for _ in range(2):
                try:
                    seconds.append(_seconds_in_child(words, environment))
                except (OSError, subprocess.SubprocessError, ValueError) as error:
                    absent.append(Absent(f"first call of {name}", one_line(error)))
                    break
        if len(seconds) == 2:
            first[name] = First(*seconds)
    return first


def _seconds_in_child(words: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=_CHILD_SECONDS, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ValueError(lines[-1] if lines else f"the process ended with {done.returncode}")
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _child(name: str, kv_dtype: str, target: str) -> None:
    """Print the seconds of this process's first call of a contender; imports and inputs come before."""
    import time

    random = np.random.default_rng(0)
    case = build_case(FIRST, build_cache(SMALL_CACHE, kv_dtype, random), kv_dtype, random)
    choice = Choice(target)
    if name == "qsmla":
        contender = product(case, target)
    else:
        found, _ = torch_attention(case, choice)
        contender = next(one for one in found if one.name.startswith(name))
    begin = time.perf_counter()
    result = contender.call(0)
    seconds = time.perf_counter() - begin
    contender.output(result)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
