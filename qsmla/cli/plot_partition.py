"""A picture of a partition: each core's load, built of the pieces of the rows it works on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from qsmla.runtime.partition import Partition, Pieces, counted
from qsmla.tools.picture import save_picture

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MOST_BARS: Final = 5000
"""Beyond it neighbouring whole rows of a core, too thin to be seen, share a bar."""
_GREYS: Final = ("#c4c4c4", "#dcdcdc")
# Neighbours differ for every kind of colour vision, and black text is readable on each.
_COLOURS: Final = ("#56b4e9", "#e69f00", "#5fbf9b", "#cc79a7", "#f0e442", "#d98c5f")
_BAR_WIDTH: Final = 0.84
_TEXT_POINTS: Final = 7.0
_HEIGHT_INCHES: Final = 6.0


@dataclass(frozen=True)
class Bars:
    """Rectangles on the cores' stacks, in order; arrays [bars]."""

    core: NDArray[np.int64]
    bottom: NDArray[np.int64]
    top: NDArray[np.int64]
    row: NDArray[np.int64]
    """The row's place among all rows in order; that of the first row where several share the bar."""
    split: NDArray[np.bool_]


def bars_of(partition: Partition, pieces: Pieces) -> Bars:
    """One bar for each piece that has keys, or fewer if there are more than can be told apart."""
    keyed = pieces.blocks > 0
    core, row, split = pieces.core[keyed], pieces.row[keyed], pieces.split[keyed]
    height = pieces.blocks[keyed] + partition.row_overhead
    if len(core) > MOST_BARS:
        begin = np.append(True, (core[1:] != core[:-1]) | split[1:] | split[:-1])
        height = np.add.reduceat(height, np.flatnonzero(begin))
        core, row, split = core[begin], row[begin], split[begin]
    below = np.cumsum(pieces.loads) - pieces.loads
    top = np.cumsum(height) - below[core]
    return Bars(core, top - height, top, row, split)


def plot_partition(
    partition: Partition, pieces: Pieces, rows_per_batch: NDArray[np.integer[Any]], path: Path
) -> None:
    """Draw the cores on one axis and their load on the other, each row's piece a bar.

    Whole rows are grey. A split row has one colour on all its cores, and its name (batch:row) where there is
    space. The dashed line is the mean load.

    Raises:
        OSError, ValueError: `path` cannot be written, as it is or as its suffix says.
    """
    from matplotlib.figure import Figure

    width = float(np.clip(3 + 0.115 * partition.num_cores, 8, 18))
    figure = Figure(figsize=(width, _HEIGHT_INCHES), dpi=130, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlim(-0.6, partition.num_cores - 0.4)
    highest = max(partition.largest_load * 1.02, 1.0)
    axes.set_ylim(0, highest)
    bars = bars_of(partition, pieces)
    _draw_bars(axes, bars)
    # About what remains of the picture beside labels and title.
    per_core = (width - 0.9) * 72 / partition.num_cores
    per_block = (_HEIGHT_INCHES - 1.3) * 72 / highest
    _draw_names(axes, bars, rows_per_batch, per_core, per_block)
    axes.axhline(partition.mean_load, color="black", linestyle="--", linewidth=1.2)
    axes.set_xlabel("core")
    axes.set_ylabel(f"load: blocks of {partition.key_block} keys, and {partition.row_overhead} for each row")
    axes.locator_params(axis="x", integer=True, nbins=20)
    axes.locator_params(axis="y", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    title = (
        f"{counted(partition.rows, 'row')} in {counted(partition.batch_size, 'batch')} over "
        f"{counted(partition.num_cores, 'core')}: "
        f"largest load {partition.largest_load}, mean {partition.mean_load:.2f}, "
        f"balance {partition.balance:.4f}"
    )
    figure.suptitle(title, fontsize=10)
    _draw_legend(axes, bars, merged=len(bars.core) < int(np.count_nonzero(pieces.blocks)))
    save_picture(figure, path)


def _draw_bars(axes: Axes, bars: Bars) -> None:
    from matplotlib.collections import PolyCollection

    begins = np.append(True, bars.row[1:] != bars.row[:-1])[: len(bars.row)]
    nth_split = np.cumsum(begins & bars.split) - 1
    nth_whole = np.cumsum(begins & ~bars.split) - 1
    colours = np.where(
        bars.split,
        np.array(_COLOURS)[nth_split % len(_COLOURS)],
        np.array(_GREYS)[nth_whole % len(_GREYS)],
    )
    left, right = bars.core - _BAR_WIDTH / 2, bars.core + _BAR_WIDTH / 2
    x = np.stack([left, left, right, right], axis=1)
    y = np.stack([bars.bottom, bars.top, bars.top, bars.bottom], axis=1)
    edge = 0.4 if len(bars.core) <= MOST_BARS else 0.0
    axes.add_collection(
        PolyCollection(
            list(np.stack([x, y], axis=2)), facecolors=colours, edgecolors="white", linewidths=edge
        )
    )


def _draw_names(
    axes: Axes, bars: Bars, rows_per_batch: NDArray[np.integer[Any]], per_core: float, per_block: float
) -> None:
    """Write batch:row on each split row; `per_core` and `per_block` are points of the picture."""
    ends = np.cumsum(rows_per_batch, dtype=np.int64)
    for row in np.unique(bars.row[bars.split]):
        mine = np.flatnonzero(bars.row == row)
        batch = int(ends.searchsorted(row, side="right"))
        text = f"{batch}:{row - (ends[batch] - rows_per_batch[batch])}"
        length = 0.62 * _TEXT_POINTS * len(text)
        # Cores that do nothing else stand between the first and the last: there a name can span several.
        inner = mine[1:-1]
        if len(inner) * per_core >= length:
            x, y = bars.core[inner].mean(), (bars.bottom[inner] + bars.top[inner]).mean() / 2
            axes.text(x, y, text, fontsize=_TEXT_POINTS, ha="center", va="center")
            continue
        tallest = mine[np.argmax(bars.top[mine] - bars.bottom[mine])]
        height = (bars.top[tallest] - bars.bottom[tallest]) * per_block
        upright = per_core < length
        fits = height >= length and per_core >= _TEXT_POINTS if upright else height >= _TEXT_POINTS
        if fits:
            y = (bars.bottom[tallest] + bars.top[tallest]) / 2
            axes.text(
                bars.core[tallest],
                y,
                text,
                fontsize=_TEXT_POINTS,
                ha="center",
                va="center",
                rotation=90 if upright else 0,
            )


def _draw_legend(axes: Axes, bars: Bars, merged: bool) -> None:
    """What the picture's bars are, each by the colour of the first one of its kind."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = []
    if not bars.split.all():
        own = "rows on one core, many to a bar" if merged else "row on one core"
        handles.append(Patch(facecolor=_GREYS[0], label=own))
    split_rows = len(np.unique(bars.row[bars.split]))
    if split_rows:
        colour = "each of one colour on all its cores" if split_rows > 1 else "of one colour on all its cores"
        shared = f"{counted(split_rows, 'split row')} (batch:row), {colour}"
        handles.append(Patch(facecolor=_COLOURS[0], label=shared + ", too thin to be seen" * merged))
    handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1.2, label="ideal: mean load"))
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9
    )
