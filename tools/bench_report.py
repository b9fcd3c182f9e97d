"""What the bench found, as tables and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from qsmla.tools.bench import Report, Result
from qsmla.tools.bench_calls import Calls
from qsmla.tools.bench_measure import OWN, Absent, Timing

_BOX: Final = box.SIMPLE_HEAD
_SHORT: Final = {"float8_e4m3": "e4m3"}


def peer_names(results: Iterable[Result]) -> list[str]:
    """Contenders beside qsmla that were measured on any case, in order."""
    names = (timing.name for result in results for timing in result.timings[1:])
    return list(dict.fromkeys(names))


def as_json(report: Report) -> dict[str, Any]:
    """All that was measured; times in seconds, rates in GFLOP/s and GB/s."""
    return {
        "machine": report.machine,
        "settings": {
            "operator": report.settings.operator,
            "rounds": report.settings.rounds,
            "cache_rows": report.settings.cache_rows,
            "target": report.settings.choice.target,
        },
        "results": [_result_as_json(result) for result in report.results],
    }


def calls_as_json(calls: Calls) -> dict[str, Any]:
    """The second table; seconds and nanoseconds."""
    return dataclasses.asdict(calls)


def _result_as_json(result: Result) -> dict[str, Any]:
    return {
        "shape": result.name,
        "kv_dtype": result.kv_dtype,
        "flops": result.flops,
        "gathered_bytes": result.gathered_bytes,
        "contenders": {timing.name: _timing_as_json(result, timing) for timing in result.timings},
        "roofs": dataclasses.asdict(result.roofs) | {"best": result.roofs.best},
        "absent": [dataclasses.asdict(absent) for absent in result.absent],
    }


def _timing_as_json(result: Result, timing: Timing) -> dict[str, Any]:
    gflops, best = result.gflops(timing), result.roofs.best
    return {
        **dataclasses.asdict(timing.spread),
        "first": timing.first,
        "error": timing.error,
        "gflops": gflops,
        "gbytes_per_s": result.gbytes(timing),
        "ratio": result.ratio(timing),
        "of_roof": gflops / best if best else None,
        "of_own_matmul": gflops / result.roofs.own if result.roofs.own else None,
        "of_read": result.gbytes(timing) / result.roofs.read,
    }


def show(report: Report, console: Console) -> None:
    """A row a shape: qsmla's times and rates, and how many times as long the others take."""
    peers = peer_names(report.results)
    table = Table(box=_BOX, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("shape", no_wrap=True)
    table.add_column("codes", no_wrap=True)
    rates = ("median\nms", "min\nms", "p90\nms", "GFLOP/s", "GB/s", "of\nroof", "of own\nmatmul", "of\nread")
    for title in (*rates, *(name.replace(" ", "\n") for name in peers)):
        table.add_column(title, justify="right", no_wrap=True)
    for result in report.results:
        table.add_row(result.name, _SHORT.get(result.kv_dtype, result.kv_dtype), *_cells(result, peers))
    console.print(_heading(report))
    console.print(table)
    console.print(_roof_lines(report.results), soft_wrap=True)
    for line in absent_lines(report.results):
        console.print(line, soft_wrap=True)


def _cells(result: Result, peers: list[str]) -> list[str]:
    own = result.own
    numbers = _timing_as_json(result, own)
    cells = [_milliseconds(value) for value in (own.spread.median, own.spread.minimum, own.spread.p90)]
    cells += [f"{numbers['gflops']:.1f}", f"{numbers['gbytes_per_s']:.2f}"]
    cells += [_share(numbers[name]) for name in ("of_roof", "of_own_matmul", "of_read")]
    ratios = {timing.name: f"{result.ratio(timing):.2f}x" for timing in result.timings}
    return [*cells, *(ratios.get(name, "-") for name in peers)]


def _heading(report: Report) -> str:
    settings, machine = report.settings, report.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{settings.operator} on {settings.choice.target}, {machine['cpu']}, {machine['workers']} workers, "
        f"{settings.rounds} rounds; {versions}\n"
        "Of the peers: how many times as long as qsmla they take, by the medians of the same rounds."
    )


def _roof_lines(results: list[Result]) -> str:
    """What the shares refer to."""
    lines = []
    reads = [result.roofs.read for result in results]
    for dtype in dict.fromkeys(dtype for result in results for dtype in result.roofs.square):
        rates = [result.roofs.square[dtype] for result in results]
        detail = results[0].roofs.details[f"{dtype} matmul"]
        lines.append(f"{dtype} matmul of PyTorch, {detail}: {_span(rates)} GFLOP/s")
    if lines:
        lines.append("roof: the faster of these, in the shape's own rounds; own matmul: the shape's two")
        lines[-1] += f" matmuls alone, one sequence for all rows: {_span(_own_rates(results))} GFLOP/s"
    lines.append(f"memory read, all workers: {_span(reads)} GB/s; GB/s counts cached rows, once a query row")
    return "\n".join(lines)


def _own_rates(results: list[Result]) -> list[float]:
    return [result.roofs.own for result in results if result.roofs.own is not None]


def absent_lines(results: list[Result]) -> list[str]:
    """Who is missing and why, a line each; with the shapes where it is not all of them."""
    places: dict[Absent, list[str]] = {}
    for result in results:
        for absent in result.absent:
            places.setdefault(absent, []).append(result.name)
    lines = []
    for absent, names in places.items():
        where = "" if len(names) == len(results) else f" on {', '.join(dict.fromkeys(names))}"
        lines.append(f"{absent.name} is absent{where}: {absent.reason}")
    return lines


def show_calls(calls: Calls, console: Console) -> None:
    """The second table: what a call costs beside its arithmetic, and how costs grow."""
    table = Table("what", "", "value", box=_BOX, padding=(0, 1, 0, 0), show_edge=False)
    table.columns[2].justify = "right"
    for name, spread in calls.overhead.items():
        span = f"min {spread.minimum * 1e6:.0f}, p90 {spread.p90 * 1e6:.0f}"
        table.add_row("call of 1 row, 1 head, 16 keys", name, f"{spread.median * 1e6:.0f} us ({span})")
    for name, first in calls.first.items():
        table.add_row("first call, nothing cached", name, f"{first.cold:.2f} s")
        table.add_row("first call, artifact cached", name, f"{first.warm:.3f} s")
    for name, speed in calls.scaling.items():
        work = f"{name}, 128 heads, 2048 keys" if name == OWN else name
        table.add_row(f"{calls.workers} workers over 1", work, f"{speed:.2f}x")
    for cost in calls.costs:
        table.add_row(
            f"{cost.heads} heads, {cost.rows} row{'s' * (cost.rows > 1)} of {cost.keys} keys",
            "per row, head and key",
            f"{cost.nanoseconds:.3f} ns",
        )
    for name, flatness in calls.flatness.items():
        table.add_row(name, "largest over smallest", f"{flatness:.3f}")
    console.print(table)
    for absent in calls.absent:
        console.print(f"{absent.name} is absent: {absent.reason}", soft_wrap=True)


def _milliseconds(seconds: float) -> str:
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.3f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"
