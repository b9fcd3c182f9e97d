"""How long a call takes, beside what a user would take instead: `qsmla bench`.

All contenders run in one process, in turn, round after round, each call on another set of selected tokens of
a cache far larger than the processor's own; so do the probes of the machine's roofs. The machine's drift and
noise fall on all of them: the ratios of the medians are what to read. A result is checked before it is timed.
PyTorch is optional: `pip install torch==2.13.0` (the CPU build).
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.compiler import cpu
from qsmla.ir.spec import ROW_BYTES, KernelSpec
from qsmla.runtime.workers import ENVIRONMENT_VARIABLE, worker_count
from qsmla.tools import bench_mla
from qsmla.tools.bench_measure import Absent, Contender, Timing, admit, interleave
from qsmla.tools.bench_peers import Choice, Found, attention_peers, product
from qsmla.tools.bench_roof import Roofs, probes, roofs
from qsmla.tools.bench_shapes import CACHE_ROWS, SHAPES, Case, Shape, build_cache, build_case

SEED: Final = 0


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        operator: whose calls.
        shapes: of kv_quant_sparse_flash_attention; the other operator has its own.
        kv_dtypes: code formats, one after the other; of kv_quant_sparse_flash_attention.
        rounds: timed calls of each contender on each shape, at least 2.
        workers: threads of every contender; None: what qsmla takes by itself.
        cache_rows: cached tokens.
        choice: which contenders.
    """

    operator: str = KernelSpec.operator
    shapes: tuple[Shape, ...] = SHAPES
    kv_dtypes: tuple[str, ...] = ("int8",)
    rounds: int = 15
    workers: int | None = None
    cache_rows: int = CACHE_ROWS
    choice: Choice = field(default_factory=Choice)


@dataclass(frozen=True)
class Result:
    """A case, measured.

    Attributes:
        case: whose inputs are gone.
        timings: qsmla's first.
        absent: contenders and roofs that were not measured.
        roofs: of the same rounds.
    """

    name: str
    kv_dtype: str
    flops: int
    gathered_bytes: int
    timings: list[Timing]
    absent: list[Absent]
    roofs: Roofs

    @property
    def own(self) -> Timing:
        """qsmla's."""
        return self.timings[0]

    def gflops(self, timing: Timing) -> float:
        """GFLOP/s of the two matmuls, keys that are attended to alone, by the median."""
        return self.flops / timing.spread.median / 1e9

    def gbytes(self, timing: Timing) -> float:
        """GB/s of the cached rows that are attended to, by the median."""
        return self.gathered_bytes / timing.spread.median / 1e9

    def ratio(self, timing: Timing) -> float:
        """How many times as long as qsmla it takes, by the medians."""
        return timing.spread.median / self.own.spread.median


@dataclass(frozen=True)
class Report:
    """A run."""

    machine: dict[str, Any]
    settings: Settings
    results: list[Result]


def run(settings: Settings, say: Callable[[str], None] = lambda text: None) -> Report:
    """Measure all cases.

    Args:
        settings: what to measure.
        say: told what is being done.

    Raises:
        ValueError: the cache is too small for a shape, or a result of qsmla is wrong.
    """
    with threads(settings.workers, settings.choice):
        results = []
        for case, peers, memory in _cases(settings):
            say(f"{case.name} {case.kv_dtype}")
            results.append(measure(case, peers, memory, settings))
        return Report(machine(settings.choice), settings, results)


def _cases(settings: Settings) -> Iterator[tuple[Case, Found, npt.NDArray[np.uint8]]]:
    """Each case, its peers, and memory to read."""
    random = np.random.default_rng(SEED)
    if settings.operator != KernelSpec.operator:
        memory = np.ones(settings.cache_rows * ROW_BYTES, np.uint8)
        for mla_case in bench_mla.build_cases(random):
            yield mla_case, bench_mla.peers(mla_case, settings.choice), memory
        return
    for kv_dtype in settings.kv_dtypes:
        cache = build_cache(settings.cache_rows, kv_dtype, random)
        for shape in settings.shapes:
            case = build_case(shape, cache, kv_dtype, random)
            yield case, attention_peers(case, settings.choice), cache


def measure(
    case: Case,
    peers: Found,
    memory: npt.NDArray[np.uint8],
    settings: Settings,
    others: Sequence[Contender] = (),
) -> Result:
    """Check every contender on a case, then time those that are right, and the roofs, in turn.

    Args:
        case: the inputs.
        peers: contenders beside qsmla, and those that are missing.
        memory: what the read of memory reads.
        settings: rounds, and which target qsmla runs on.
        others: more contenders.

    Raises:
        ValueError: a result of qsmla is wrong.
    """
    found, absent = peers
    contenders = [product(case, settings.choice.target), *found, *others]
    admitted, refused = admit(contenders, case.expected)
    chosen, no_roof = probes(case, memory, settings.choice.why_no_torch())
    calls = {contender.name: contender.call for contender in contenders if contender.name in admitted}
    spreads = interleave(calls | {probe.name: probe.call for probe in chosen}, settings.rounds)
    timings = [Timing(name, *admitted[name], spreads[name]) for name in calls]
    return Result(
        name=case.name,
        kv_dtype=case.kv_dtype,
        flops=case.flops,
        gathered_bytes=case.gathered_bytes,
        timings=timings,
        absent=[*absent, *refused, *no_roof],
        roofs=roofs(chosen, spreads),
    )


@contextlib.contextmanager
def threads(workers: int | None, choice: Choice) -> Iterator[None]:
    """As many threads for qsmla and for PyTorch, as long as the block runs."""
    before = os.environ.get(ENVIRONMENT_VARIABLE)
    if workers is not None:
        os.environ[ENVIRONMENT_VARIABLE] = str(workers)
    try:
        if choice.why_no_torch() is None:
            import torch

            torch.set_num_threads(worker_count())
        yield
    finally:
        if before is not None:
            os.environ[ENVIRONMENT_VARIABLE] = before
        elif workers is not None:
            del os.environ[ENVIRONMENT_VARIABLE]


def machine(choice: Choice) -> dict[str, Any]:
    """Where and with what it was measured."""
    here = cpu.host()
    names = ["qsmla", "iree-base-runtime", "numpy"] + ["torch"] * (choice.why_no_torch() is None)
    return {
        "cpu": cpu.host_name(),
        "architecture": here.architecture,
        "features": list(here.features),
        "system": platform.platform(),
        "workers": worker_count(),
        "versions": {name: metadata.version(name) for name in names},
    }


if __name__ == "__main__":
    from qsmla.cli import main

    sys.exit(main(["bench", *sys.argv[1:]]))
