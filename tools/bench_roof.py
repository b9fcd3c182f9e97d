"""What the machine can do at most, measured in the same rounds as the contenders.

The roof of arithmetic is the faster of PyTorch's bfloat16 and float32 matmuls on large square matrices: a CPU
without bfloat16 instructions multiplies float32 faster. The roof of memory is a plain read of the cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.compiler import cpu
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.workers import worker_count
from qsmla.tools.bench_measure import Absent, Spread
from qsmla.tools.bench_shapes import Case

DTYPES: Final = {"bf16": "bfloat16", "f32": "float32"}
READ: Final = "memory read"
OWN: Final = "own matmul"
MOST_ROWS: Final = 512
SIDE: Final = 1536
"""Of the square matmuls: 7.2 GFLOP."""
SLOW_SIDE: Final = 512
"""Of the bfloat16 one without instructions for it: PyTorch reaches some 5 GFLOP/s there, 0.3 GFLOP."""


@dataclass(frozen=True, eq=False)
class Probe:
    """One measurement of the machine.

    Attributes:
        name: what it is.
        detail: sizes, for the reader.
        work: FLOPs or bytes of a call.
        call: what is timed.
    """

    name: str
    detail: str
    work: int
    call: Callable[[int], Any]


@dataclass(frozen=True)
class Roofs:
    """Rates of a round's probes, by their medians.

    Attributes:
        square: GFLOP/s of square matmuls, by dtype, "bf16" and "f32"; empty without PyTorch.
        own: GFLOP/s of the matmuls that the shape itself has, of keys that lie ready, in the CPU's dtype.
        read: GB/s.
        details: sizes of the matmuls, by name.
    """

    square: dict[str, float]
    own: float | None
    read: float
    details: dict[str, str]

    @property
    def best(self) -> float | None:
        """The roof that shares refer to: the faster of the square ones, GFLOP/s."""
        return max(self.square.values(), default=None)


def square_name(dtype: str) -> str:
    """A square matmul's name among the probes."""
    return f"{dtype} matmul"


def multiplies_bf16() -> bool:
    """Whether this CPU has instructions for it; without them float32 is the faster by far."""
    return not {"avx512bf16", "bf16"}.isdisjoint(cpu.host().features)


def probes(
    case: Case, memory: npt.NDArray[np.uint8], why_no_torch: str | None
) -> tuple[list[Probe], list[Absent]]:
    """What to measure beside a case: matmuls, and a read of `memory`; and what is missing of it."""
    read = Probe(READ, f"{memory.nbytes / 1e6:.0f} MB", memory.nbytes, _reader(memory))
    if why_no_torch is not None:
        names = [*map(square_name, DTYPES), OWN]
        return [read], [Absent(name, why_no_torch) for name in names]
    return [read, *(square(dtype) for dtype in DTYPES), _own(case)], []


def roofs(chosen: Sequence[Probe], spreads: Mapping[str, Spread]) -> Roofs:
    """The rates of probes that were timed."""
    rates = {probe.name: probe.work / spreads[probe.name].median / 1e9 for probe in chosen}
    square = {dtype: rates[square_name(dtype)] for dtype in DTYPES if square_name(dtype) in rates}
    details = {probe.name: probe.detail for probe in chosen}
    return Roofs(square, rates.get(OWN), rates[READ], details)


def _reader(memory: npt.NDArray[np.uint8]) -> Callable[[int], Any]:
    """Sum all of it up, a part a thread; the sum is what keeps NumPy reading."""
    words = memory.reshape(-1)[: memory.nbytes // 8 * 8].view(np.int64)
    parts = np.array_split(words, worker_count())
    pool = ThreadPoolExecutor(len(parts))
    return lambda number: list(pool.map(np.add.reduce, parts))


def square(dtype: str) -> Probe:
    """A large square matmul of PyTorch's, "bf16" or "f32"."""
    side = SIDE if dtype == "f32" or multiplies_bf16() else SLOW_SIDE
    return Probe(square_name(dtype), f"{side} x {side} x {side}", 2 * side**3, _matmul(dtype, side))


@functools.cache
def _matmul(dtype: str, side: int) -> Callable[[int], Any]:
    """As a linear layer has it, the right matrix by its columns: the order PyTorch is best at."""
    left, right = _random(dtype, side, side), _random(dtype, side, side)
    return lambda number: left @ right.T


def _own(case: Case) -> Probe:
    """Q.K and P.V of one sequence of keys for all rows, which is kinder to matmuls than the shape is."""
    dtype = "bf16" if multiplies_bf16() else "f32"
    rows, key_columns = min(case.rows * case.heads, MOST_ROWS), case.columns - NOPE_DIM
    query, key = _random(dtype, rows, key_columns), _random(dtype, case.keys, key_columns)
    weights, value = _random(dtype, rows, case.keys), _random(dtype, case.keys, NOPE_DIM)
    detail = f"{dtype}, {rows} x {key_columns} x {case.keys} and {rows} x {case.keys} x {NOPE_DIM}"
    work = 2 * rows * case.keys * case.columns
    return Probe(OWN, detail, work, lambda number: (query @ key.T, weights @ value))


def _random(dtype: str, *sizes: int) -> Any:
    import torch

    return torch.randn(*sizes, dtype=getattr(torch, DTYPES[dtype]))
