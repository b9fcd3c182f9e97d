"""`qsmla compile`: one kernel, or a matrix of them, to artifacts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from qsmla.cli.matrix import Matrix, read_matrix
from qsmla.cli.options import (
    CacheOption,
    JsonOption,
    TargetOption,
    TimeoutOption,
    named_path,
    spec_of,
    with_spec_options,
)
from qsmla.cli.report import CommandError, print_json, refuse_overwriting, sentence
from qsmla.compiler import toolchain
from qsmla.compiler.artifact import Artifact
from qsmla.compiler.build import DEFAULT_TIMEOUT_S
from qsmla.compiler.build import compile as compile_kernel
from qsmla.compiler.targets import parse_targets
from qsmla.ir.spec import Spec


@dataclass(frozen=True)
class _Outcome:
    """One kernel of a run: an artifact, or the sentence that says why not."""

    spec: Spec
    target: str
    seconds: float
    artifact: Artifact | None
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        artifact = self.artifact
        return {
            "spec": self.spec.to_dict(),
            "label": self.spec.label,
            "target": self.target,
            "path": str(artifact.path) if artifact and artifact.path else None,
            "bytes": len(artifact.data) if artifact else None,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }


@with_spec_options
def compile_command(
    fields: dict[str, Any],
    target: TargetOption = "llvm-cpu",
    matrix: Annotated[
        Path | None,
        typer.Option(
            "--matrix",
            "-m",
            help="TOML file: fields of the kernel and `target`, each a value or a list; their product is "
            "compiled. Options give what the file leaves out.",
            metavar="FILE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file, or a folder (a path without a suffix) that gets one file a kernel. Without it "
            "artifacts go to the cache.",
            metavar="PATH",
            parser=named_path,
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=1, help="Compilers at a time.", show_default="CPUs", metavar="N"),
    ] = os.cpu_count() or 1,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    cache: CacheOption = True,
    as_json: JsonOption = False,
) -> None:
    """Compile a kernel, or a matrix of kernels in parallel, and print where the artifacts are."""
    if output is None and not cache:
        raise CommandError("without the cache an artifact needs a place: give --output")
    work = Matrix([(spec_of(fields), target)], []) if matrix is None else read_matrix(matrix, fields, target)
    places = _places(work, output, to_folder=matrix is not None)
    for place in places:
        refuse_overwriting(place, matrix)

    def build(spec: Spec, target: str, place: Path | None) -> _Outcome:
        start = time.perf_counter()
        try:
            artifact = compile_kernel(
                spec, target, cache=cache, timeout=timeout, progress=False, output=place
            )
        except Exception as error:
            if matrix is None:
                raise
            return _Outcome(spec, target, time.perf_counter() - start, None, sentence(error))
        return _Outcome(spec, target, time.perf_counter() - start, artifact, None)

    calls = [(spec, target, place) for (spec, target), place in zip(work.kernels, places, strict=True)]
    _report(_run_all(build, calls, jobs), work.skipped, as_json)


def _places(work: Matrix, output: Path | None, to_folder: bool) -> list[Path | None]:
    """Where each artifact is written; a folder is made if need be."""
    if output is None:
        return [None] * len(work.kernels)
    is_file = output.exists() and not output.is_dir()
    if not to_folder and (is_file or (output.suffix and not output.is_dir())):
        return [output]
    if is_file:
        raise CommandError(f"--output is {output}, a file; allowed: a folder, for a matrix of kernels")
    output.mkdir(parents=True, exist_ok=True)
    return [output / f"{spec.label}.{_file_part(target)}.vmfb" for spec, target in work.kernels]


def _file_part(target: str) -> str:
    return "+".join(one.label.replace(":", "-") for one in parse_targets(target))


def _run_all(
    build: Callable[..., _Outcome], calls: list[tuple[Spec, str, Path | None]], jobs: int
) -> list[_Outcome]:
    """Every call's outcome, in order; an interrupt or an error stops the compilers that run."""
    bar = Progress(
        TextColumn("compiling"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
    pool = ThreadPoolExecutor(min(jobs, len(calls)))
    with bar:
        task = bar.add_task("compiling", total=len(calls))
        futures: list[Future[_Outcome]] = [pool.submit(build, *call) for call in calls]
        try:
            for future in as_completed(futures):
                future.result()
                bar.advance(task)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            toolchain.stop_all()
            raise
        finally:
            pool.shutdown()
    return [future.result() for future in futures]


def _report(outcomes: list[_Outcome], skipped: list[str], as_json: bool) -> None:
    """Print the paths, name what was skipped, and fail if a kernel failed."""
    failed = [outcome for outcome in outcomes if outcome.error]
    if as_json:
        print_json({"kernels": [outcome.to_dict() for outcome in outcomes], "skipped": skipped})
    else:
        for outcome in outcomes:
            if outcome.artifact:
                print(outcome.artifact.path or f"{outcome.spec.label}: not stored, the cache cannot be used")
        for reason in skipped:
            print(f"qsmla: skipped, no such kernel: {reason}", file=sys.stderr)
    if failed:
        details = "; ".join(f"{one.spec.label} for {one.target}: {one.error}" for one in failed)
        raise CommandError(f"{len(failed)} of {len(outcomes)} kernels did not compile: {details}")
