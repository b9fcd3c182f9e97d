"""The optimal cut of rows of key blocks into contiguous ranges, one a core.

The rows are laid out along a line: a row of n key blocks takes `row_overhead` + n units, its overhead first;
a row without keys takes none. A core that begins in front of block j of a row begins at the row's start + j,
so that the overhead it pays for the rest of that row is part of the distance it covers. From a start and a
load the furthest end is therefore one look-up in the prefix sums, and the least load that reaches the end of
the line in `num_cores` steps is the optimum.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Cuts:
    """Where each core begins, and what it has to do.

    Core i runs from block `blocks[i]` of row `rows[i]` up to, and without, block `blocks[i + 1]` of row
    `rows[i + 1]`.
    """

    rows: tuple[int, ...]
    """[num_cores + 1]; the last is the number of rows."""
    blocks: tuple[int, ...]
    """[num_cores + 1]; 0 at the beginning of a row."""
    loads: tuple[int, ...]
    """[num_cores], in blocks: a core's blocks, and `row_overhead` for every row with keys that it touches."""


def cut_rows(blocks: NDArray[np.integer[Any]], num_cores: int, row_overhead: int) -> Cuts:
    """Cuts rows into `num_cores` contiguous ranges so that the largest load is as small as it can be.

    Of the optimal partitions it takes the one in which every core fills up to the largest load, except that
    a core ends early, at the beginning of a row, where this keeps the row whole and the cores behind it can
    still do the rest. Cores that find nothing left come last. Rows without keys at a cut stay with the core
    in front of it; those in front of all keys go to core 0, those behind all keys to the last core that has
    any (core 0 if no row has).

    Args:
        blocks: integers [rows], key blocks of each row, none negative.
        num_cores: at least 1.
        row_overhead: in blocks, not negative.
    """
    line = _Line(blocks, row_overhead)
    load, earliest = _least_load(line, num_cores)
    cuts, loads = line.fill(load, earliest)
    rows = line.starts.searchsorted(cuts, side="right") - 1
    # Rows without keys in front of the first key belong to core 0 like all the others.
    rows[0] = 0
    inside = cuts - line.starts[rows]
    return Cuts(tuple(rows.tolist()), tuple(inside.tolist()), tuple(loads))


def _least_load(line: _Line, num_cores: int) -> tuple[int, list[int]]:
    """The least load with which the cores do the whole line, and its earliest cuts."""
    if line.total == 0:
        return 0, [0] * (num_cores + 1)
    # Every core but the first may pay the overhead of a row again: with that added the load always suffices.
    progress = line.row_overhead + 1
    low = max(-(-line.total // num_cores), progress)
    high = max(-(-(line.total + (num_cores - 1) * line.row_overhead) // num_cores), progress)
    best = None
    while low < high:
        middle = (low + high) // 2
        cuts = line.earliest_cuts(num_cores, middle)
        if cuts[0] == 0:
            high, best = middle, cuts
        else:
            low = middle + 1
    return high, best or line.earliest_cuts(num_cores, high)


class _Line:
    """The line of rows; a cut is a position on it, 0..total."""

    def __init__(self, blocks: NDArray[np.integer[Any]], row_overhead: int) -> None:
        self.row_overhead = row_overhead
        bound = int(blocks.sum(dtype=np.int64)) + row_overhead * len(blocks)
        # Half the memory where it suffices: for a million rows, touching it takes most of the time.
        dtype = np.int32 if bound < 2**31 else np.int64
        self.starts: NDArray[np.integer[Any]] = np.empty(len(blocks) + 1, dtype)
        """[rows + 1]; where each row begins, and the end of the line."""
        self.starts[0] = 0
        costs = self.starts[1:]
        np.minimum(blocks, 1, out=costs)
        costs *= row_overhead
        costs += blocks
        np.cumsum(costs, out=costs)
        self.total = int(self.starts[-1])

    def earliest_cuts(self, num_cores: int, load: int) -> list[int]:
        """For each core, and the end: the earliest cut from which it and the cores behind it can do the rest.

        The first is 0 if the load suffices for the whole line. `load` is more than the overhead of a row.
        """
        starts, overhead = self._look_up(), self.row_overhead
        cuts = [self.total]
        end = self.total
        while len(cuts) <= num_cores:
            first = end - load
            if first <= 0:
                cuts += [0] * (num_cores + 1 - len(cuts))
                break
            row = bisect_right(starts, first) - 1
            if starts[row + 1] - first <= overhead:
                # Too little of the load would be left for a block of this row.
                first = end = starts[row + 1]
            else:
                # The core in front that ends inside this row pays its overhead too.
                end = first + overhead if first > starts[row] else first
            cuts.append(first)
        cuts.reverse()
        return cuts

    def fill(self, load: int, earliest: list[int]) -> tuple[list[int], list[int]]:
        """The cuts that fill each core up to `load`, and what they give it to do.

        A core gives way to the beginning of a row if that keeps the row whole and is not in front of the
        earliest cut for those behind it.
        """
        starts, overhead, total = self._look_up(), self.row_overhead, self.total
        cuts, loads = [0], []
        cut = 0
        for least in earliest[1:]:
            begin, end = cut, cut + load
            if end >= total:
                cut = end = total
            else:
                row = bisect_right(starts, end) - 1
                start = starts[row]
                fits_whole = start >= least and starts[row + 1] - start <= load
                if end - start <= overhead or fits_whole:
                    cut = end = start
                else:
                    cut = end - overhead
            cuts.append(cut)
            loads.append(end - begin)
        return cuts, loads

    def _look_up(self) -> memoryview:
        """The starts; single look-ups here cost a third of NumPy's, and give Python's integers."""
        return self.starts.data
