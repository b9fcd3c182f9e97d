"""A picture of a report: a group of bars a shape, one a contender, against the roof of the same rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsmla.tools.bench import Report, Result
from qsmla.tools.bench_measure import OWN
from qsmla.tools.bench_report import peer_names
from qsmla.tools.picture import save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Neighbours differ for every kind of colour vision.
_COLOURS: Final = ("#0072b2", "#e69f00", "#f4c56b", "#7a7a7a", "#bdbdbd", "#cc79a7", "#5fbf9b")
_BAR_INCHES: Final = 0.17
_WIDTH_INCHES: Final = 6.0


def plot_report(report: Report, path: Path) -> None:
    """Draw GFLOP/s by the medians, a panel a code format; the black stroke is the roof.

    Raises:
        OSError: `path` cannot be written.
    """
    from matplotlib.figure import Figure

    names = [OWN, *peer_names(report.results)]
    formats = list(dict.fromkeys(result.kv_dtype for result in report.results))
    panels = [[result for result in report.results if result.kv_dtype == name] for name in formats]
    bars = max(map(len, panels)) * (len(names) + 1)
    figure = Figure(
        figsize=(1.6 + _WIDTH_INCHES * len(panels), 1.7 + _BAR_INCHES * bars), dpi=130, layout="constrained"
    )
    grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name, results in zip(grid, formats, panels, strict=True):
        _draw(axes, results, names)
        axes.set_title(name, fontsize=10)
    machine = report.machine
    figure.suptitle(
        f"{report.settings.operator}, {machine['cpu']}, {machine['workers']} workers: GFLOP/s, "
        f"medians of {report.settings.rounds} rounds",
        fontsize=10,
    )
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_picture(figure, path)


def _draw(axes: Axes, results: list[Result], names: list[str]) -> None:
    step = len(names) + 1
    for place, name in enumerate(names):
        rates = {}
        for group, result in enumerate(results):
            for timing in result.timings:
                if timing.name == name:
                    rates[group * step + place] = result.gflops(timing), result.ratio(timing)
        drawn = axes.barh(
            list(rates), [rate for rate, _ in rates.values()], 0.9, color=_COLOURS[place], label=name
        )
        texts = [
            f" {rate:.3g}" if name == OWN else f" {rate:.3g} ({ratio:.3g}x the time)"
            for rate, ratio in rates.values()
        ]
        # On white, because the strokes of the roofs may cross the text.
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        axes.bar_label(drawn, texts, fontsize=7, bbox=box, zorder=3)
    for group, result in enumerate(results):
        _mark(axes, result, group * step, step, labelled=group == 0)
    axes.set_yticks(
        [group * step + (len(names) - 1) / 2 for group in range(len(results))],
        [result.name for result in results],
    )
    axes.set_ylim(len(results) * step - 0.8, -1.0)
    axes.margins(x=0.16)
    axes.set_xlabel("GFLOP/s (keys that are attended to alone)")
    axes.spines[["top", "right"]].set_visible(False)


def _mark(axes: Axes, result: Result, top: float, step: int, labelled: bool) -> None:
    """The roof, and what the shape's matmuls alone reach."""
    span = top - 0.5, top + step - 1.5
    marks = (
        (result.roofs.best, "-", f"roof: {_faster(result)} matmul"),
        (result.roofs.own, ":", "the shape's matmuls alone"),
    )
    for rate, style, label in marks:
        if rate is not None:
            axes.vlines(rate, *span, color="black", linestyle=style, label=label if labelled else "_")


def _faster(result: Result) -> str:
    return max(result.roofs.square, key=lambda dtype: result.roofs.square[dtype], default="")
