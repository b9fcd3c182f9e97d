"""A machine with an NVIDIA GPU, checked and measured in 8 minutes: `python -m qsmla.tools.device_check`.

First the cases of the matrix that every target runs, on `cuda` and on `vulkan` with the real driver, each
held against the reference and the CPU. Then calls of FlashMLA's own benchmark shapes, with cache, query and
ids on the device: 128 heads, 32,768 keys a request, the top 2,048; decode of 2, 64, 74 and 128 requests with
two rows each, and a prefill of 4,096 rows. What a call takes holds its planning on the host; what it should
take on an H200, and why, is in docs/gpu.md. The matrix comes with the sources, not with the package.

`--dry-run` does the same on small shapes on this machine's CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

import qsmla
from qsmla.compiler.files import staged
from qsmla.compiler.targets import Target
from qsmla.compiler.toolchain import runtime_version
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES
from qsmla.runtime.checks import check_call
from qsmla.runtime.compare import compare
from qsmla.runtime.packing import ROW_LAYOUTS
from qsmla.runtime.reference import attend
from qsmla.tools.stages import attempt

FORMAT: Final = 1
"""Of the result file."""
TARGETS: Final = ("cuda", "vulkan")
BUDGET_S: Final = 450.0
"""Nothing new is begun after that, which leaves half a minute for what has begun."""
PAGE_SIZE: Final = 64
SCALE: Final = (NOPE_DIM + ROPE_DIM) ** -0.5
ROUNDS: Final = 20
CHECKED_ROWS: Final = 2


@dataclass(frozen=True)
class Shape:
    """A call to measure."""

    name: str
    requests: int
    rows: int
    """Query rows of a request."""
    heads: int = 128
    keys: int = 32_768
    """Cached tokens of a request."""
    selected: int = 2_048


SHAPES: Final = (
    *(Shape(f"decode, {requests} requests", requests, 2) for requests in (2, 64, 74, 128)),
    Shape("prefill", 1, 4_096),
)
DRY_SHAPES: Final = (Shape("decode, 2 requests", 2, 2, 16, 512, 64), Shape("prefill", 1, 8, 16, 512, 64))


@dataclass(frozen=True)
class Measured:
    """What a shape gave: seconds a call, and the rates by the median."""

    shape: Shape
    shared_cache: bool
    """Whether the requests' pages overlap, because the device does not take a cache for each of them."""
    error: str | None
    """What went wrong; the numbers are 0 then."""
    rounds: int = 0
    first_s: float = 0.0
    """With compiling and loading."""
    median_s: float = 0.0
    minimum_s: float = 0.0
    tflops: float = 0.0
    """Of the two matmuls."""
    gbytes_per_s: float = 0.0
    """Of the selected cache rows, queries and outputs, each moved once."""
    tolerance_used: float = 0.0
    """Largest error of the first rows as a part of what is allowed."""


@dataclass(frozen=True)
class TargetReport:
    """What a target did."""

    target: str
    device: str | None
    """None where nothing here runs it; `skipped` says why."""
    skipped: str | None
    cases: int
    passed: int
    failures: list[str]
    measured: list[Measured]
    left_out: list[str]
    """What there was no time for."""


@dataclass(frozen=True)
class Report:
    """The result file."""

    format: int
    versions: dict[str, str]
    machine: str
    seconds: float
    dry_run: bool
    targets: list[TargetReport]

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The inverse of `to_json`.

        Raises:
            ValueError: not a result file of this format.
        """
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise ValueError(f"format is {fields['format']}; allowed: {FORMAT}")
            targets = []
            for target in fields.pop("targets"):
                measured = [
                    Measured(**one | {"shape": Shape(**one["shape"])}) for one in target.pop("measured")
                ]
                targets.append(TargetReport(**target, measured=measured))
            return cls(**fields, targets=targets)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no result file of device_check: {error}") from error

    @property
    def passed(self) -> bool:
        """Whether a device was there, and everything that ran on one is right."""
        ran = [target for target in self.targets if target.device]
        wrong = [one for target in ran for one in target.measured if one.error]
        return bool(ran) and not wrong and not any(target.failures for target in ran)


def check_target(
    name: str, shapes: tuple[Shape, ...], deadline: float, most_cases: int | None
) -> TargetReport:
    """The matrix and the shapes on one target, as far as time allows."""
    try:
        target = Target.parse(name)
        device = target.find_device()
    except ValueError as error:
        device = str(error)
    if isinstance(device, str):
        return TargetReport(name, None, device, 0, 0, [], [], [])
    failures, left_out, measured = [], [], []
    cases = list(_matrix())[:most_cases]
    done = 0
    # Half of the time that is left is for the shapes.
    pause = time.monotonic() + (deadline - time.monotonic()) / 2
    for case in cases:
        if time.monotonic() > pause:
            left_out.append(f"{len(cases) - done} cases of the matrix")
            break
        made = attempt(case.spec, case.arguments(), target.label)
        done += 1
        if not made.passed:
            failures.append(f"{case.name} at stage {made.failed_stage}: {made.reason}")
    for shape in shapes:
        if time.monotonic() > deadline:
            left_out.append(shape.name)
        else:
            measured.append(measure(shape, target))
    passed = done - len(failures)
    return TargetReport(target.label, device.name, None, done, passed, failures, measured, left_out)


def measure(shape: Shape, target: Target) -> Measured:
    """Time calls of a shape with everything on the device; errors are part of the result."""
    largest = target.largest_buffer or shape.requests * shape.keys * ROW_BYTES
    pages = min(shape.requests * shape.keys, largest // ROW_BYTES) // PAGE_SIZE
    shared = pages < shape.requests * -(-shape.keys // PAGE_SIZE)
    arguments = build_call(shape, pages)
    try:
        on_device = arguments | {"value": None}
        for name in ("query", "key", "sparse_indices"):
            on_device[name] = qsmla.to_device(arguments[name], target)
        begin = time.perf_counter()
        output: Any = qsmla.kv_quant_sparse_flash_attention(**on_device, target=target)
        first = time.perf_counter() - begin
        used = _tolerance_used(arguments, output.numpy())
        times: list[float] = []
        while len(times) < ROUNDS and sum(times) < 10:
            begin = time.perf_counter()
            qsmla.kv_quant_sparse_flash_attention(**on_device, target=target)
            times.append(time.perf_counter() - begin)
    except (RuntimeError, ValueError, MemoryError) as error:
        return Measured(shape, shared, f"{type(error).__name__}: {error}")
    median = statistics.median(times)
    rows = shape.requests * shape.rows
    flops = 2 * rows * shape.heads * shape.selected * (2 * NOPE_DIM + ROPE_DIM)
    moved = rows * (shape.selected * ROW_BYTES + 2 * shape.heads * (2 * NOPE_DIM + ROPE_DIM))
    return Measured(
        shape=shape,
        shared_cache=shared,
        error=None if used <= 1 else f"{used:.3g} of the tolerance",
        rounds=len(times),
        first_s=first,
        median_s=median,
        minimum_s=min(times),
        tflops=flops / median / 1e12,
        gbytes_per_s=moved / median / 1e9,
        tolerance_used=used,
    )


def build_call(shape: Shape, pages: int, seed: int = 0) -> dict[str, Any]:
    """A call of a shape on a paged int8 cache of `pages` pages, every row of which selects at random."""
    random = np.random.default_rng(seed)
    rows = shape.requests * shape.rows
    key = qsmla.aligned_empty((pages, PAGE_SIZE, 1, ROW_BYTES), np.int8)
    flat = key.reshape(-1, ROW_BYTES).view(np.uint8)
    layout = ROW_LAYOUTS["ascend"]
    step = 1 << 16
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        part[...] = np.frombuffer(random.bytes(part.size), np.uint8).reshape(part.shape)
        rope = random.standard_normal((len(part), ROPE_DIM), np.float32).astype(ml_dtypes.bfloat16)
        part[:, layout.rope] = rope.view(np.uint8)
        part[:, layout.scales] = np.full((len(part), 4), 1 / 64, np.float32).view(np.uint8)
    query = random.standard_normal((rows, shape.heads, NOPE_DIM + ROPE_DIM), np.float32)
    # Distinct in a row, as a top-k is: one token of each stretch of keys.
    stride = shape.keys // shape.selected
    ids = random.integers(0, stride, (rows, 1, shape.selected), dtype=np.int32)
    ids += np.arange(shape.selected, dtype=np.int32) * stride
    table_width = -(-shape.keys // PAGE_SIZE)
    table = np.resize(random.permutation(pages).astype(np.int32), (shape.requests, table_width))
    return {
        "query": query.astype(ml_dtypes.bfloat16),
        "key": key,
        "value": key,
        "sparse_indices": ids,
        "scale_value": SCALE,
        "block_table": table,
        "actual_seq_lengths_query": np.arange(1, shape.requests + 1, dtype=np.int32) * shape.rows,
        "actual_seq_lengths_kv": np.full(shape.requests, shape.keys, np.int32),
        "layout_query": "TND",
        "layout_kv": "PA_BSND",
        "sparse_mode": 0,
    }


def _tolerance_used(arguments: dict[str, Any], output: npt.NDArray[Any]) -> float:
    """The largest error of the first rows as a part of what is allowed."""
    first = arguments | {
        "query": arguments["query"][:CHECKED_ROWS],
        "sparse_indices": arguments["sparse_indices"][:CHECKED_ROWS],
        "actual_seq_lengths_query": np.array([CHECKED_ROWS], np.int32),
        "actual_seq_lengths_kv": arguments["actual_seq_lengths_kv"][:1],
        "block_table": arguments["block_table"][:1],
    }
    expected = attend(check_call(**first))
    found = compare(output[:CHECKED_ROWS], expected.output, expected.vmax)
    return math.inf if found.misplaced else found.tolerance_used


def _matrix() -> Iterator[Any]:
    """The cases that every target runs, of both operators in turn, from the sources' tests.

    Of `quant_sparse_flash_mla` also a case of every kernel with more heads, whose matmuls fill matrix units.
    """
    tests = Path(__file__).resolve().parents[1] / "tests"
    if not (tests / "matrix" / "cases.py").exists():
        raise FileNotFoundError(f"{tests}: the matrix comes with the sources; run this from a checkout")
    if str(tests) not in sys.path:
        sys.path.insert(0, str(tests))
    from matrix.cases import cases  # type: ignore[import-not-found]
    from matrix.mla_cases import mla_cases  # type: ignore[import-not-found]

    many_heads = (case for case in mla_cases() if case.spec.heads >= 20 and case.scenario == "prefill")
    of_mla = itertools.chain(mla_cases("some"), many_heads)
    for pair in itertools.zip_longest(cases("some"), of_mla):
        yield from (case for case in pair if case is not None)


def run(targets: tuple[str, ...], dry_run: bool) -> Report:
    """All of it."""
    begin = time.monotonic()
    shapes, most_cases = (DRY_SHAPES, 4) if dry_run else (SHAPES, None)
    reports = []
    for number, target in enumerate(targets):
        left = BUDGET_S - (time.monotonic() - begin)
        deadline = time.monotonic() + left / (len(targets) - number)
        reports.append(check_target(target, shapes, deadline, most_cases))
    versions = {"qsmla": _version(), "iree": runtime_version()}
    seconds = time.monotonic() - begin
    return Report(FORMAT, versions, platform.platform(), seconds, dry_run, reports)


def _version() -> str:
    from importlib.metadata import version

    return version("qsmla")


def main(arguments: list[str] | None = None) -> int:
    """Write the result file and print a summary; 1 if something is wrong or there is no device."""
    parser = argparse.ArgumentParser(prog="python -m qsmla.tools.device_check")
    parser.add_argument("-o", "--output", type=Path, default=Path("device_check.json"))
    parser.add_argument("--target", nargs="+", default=None, help="cuda and vulkan without it")
    parser.add_argument("--dry-run", action="store_true", help="small shapes on the CPU")
    options = parser.parse_args(arguments)
    chosen = options.target or (["llvm-cpu"] if options.dry_run else TARGETS)
    report = run(tuple(chosen), options.dry_run)
    with staged(options.output) as file:
        file.write(report.to_json().encode())
    for target in report.targets:
        if target.skipped:
            print(f"{target.target}: not run: {target.skipped}")
            continue
        print(f"{target.target} on {target.device}: {target.passed} of {target.cases} cases pass")
        for line in (*target.failures, *(f"no time for {what}" for what in target.left_out)):
            print(f"  {line}")
        for one in target.measured:
            rates = f"{one.median_s * 1e3:.3f} ms, {one.tflops:.2f} TFLOP/s, {one.gbytes_per_s:.1f} GB/s"
            print(f"  {one.shape.name}: {one.error or rates}")
    print(f"{options.output} after {report.seconds:.0f} s")
    return int(not report.passed)


if __name__ == "__main__":
    sys.exit(main())
