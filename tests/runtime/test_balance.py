from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsmla.runtime.balance import Cuts, cut_rows

from .plain_planner import plain_cuts

Unit = tuple[int, int]

ROWS = st.lists(st.one_of(st.just(0), st.integers(1, 4), st.integers(1, 40)), max_size=12)
FEW_BLOCKS = st.lists(st.integers(0, 4), max_size=6).filter(lambda blocks: sum(blocks) <= 9)
CORES = st.one_of(st.integers(1, 8), st.sampled_from([20, 132]))
OVERHEAD = st.sampled_from([0, 1, 1, 2, 5, 17])


def cut(blocks: list[int], num_cores: int, overhead: int) -> Cuts:
    return cut_rows(np.array(blocks, np.int64), num_cores, overhead)


def units_of(blocks: list[int]) -> list[Unit]:
    """Every (row, block), in order."""
    return [(row, block) for row, count in enumerate(blocks) for block in range(count)]


def work_of(blocks: list[int], cuts: Cuts) -> list[list[Unit]]:
    """The (row, block) of each core, found by comparing places only."""
    places = list(zip(cuts.rows, cuts.blocks, strict=True))
    return [
        [unit for unit in units_of(blocks) if start <= unit < end]
        for start, end in itertools.pairwise(places)
    ]


def load_of(work: list[Unit], overhead: int) -> int:
    return len(work) + overhead * len({row for row, _ in work})


def least_load(units: list[Unit], num_cores: int, overhead: int) -> int:
    """The optimum, from every way there is to cut the units into contiguous ranges."""
    least = math.inf
    for inner in itertools.combinations_with_replacement(range(len(units) + 1), num_cores - 1):
        ends = (0, *inner, len(units))
        ranges = (units[start:end] for start, end in itertools.pairwise(ends))
        least = min(least, max(load_of(work, overhead) for work in ranges))
    return int(least)


@given(FEW_BLOCKS, st.integers(1, 4), OVERHEAD)
def test_largest_load_equals_the_exhaustive_optimum(blocks: list[int], num_cores: int, overhead: int) -> None:
    loads = cut(blocks, num_cores, overhead).loads
    assert max(loads) == least_load(units_of(blocks), num_cores, overhead)


@given(ROWS, CORES, OVERHEAD)
def test_ranges_are_contiguous_whole_and_as_heavy_as_stated(
    blocks: list[int], num_cores: int, overhead: int
) -> None:
    cuts = cut(blocks, num_cores, overhead)
    work = work_of(blocks, cuts)
    assert [unit for units in work for unit in units] == units_of(blocks)
    assert [load_of(units, overhead) for units in work] == list(cuts.loads)
    assert (cuts.rows[0], cuts.blocks[0]) == (0, 0)
    assert (cuts.rows[-1], cuts.blocks[-1]) == (len(blocks), 0)


@given(ROWS, CORES, OVERHEAD)
def test_cuts_equal_the_plain_loops(blocks: list[int], num_cores: int, overhead: int) -> None:
    cuts = cut(blocks, num_cores, overhead)
    places, loads = plain_cuts(blocks, num_cores, overhead)
    assert list(zip(cuts.rows, cuts.blocks, strict=True)) == places
    assert list(cuts.loads) == loads


@given(ROWS, CORES, OVERHEAD)
def test_idle_cores_come_last(blocks: list[int], num_cores: int, overhead: int) -> None:
    loads = cut(blocks, num_cores, overhead).loads
    busy = sum(load > 0 for load in loads)
    assert all(loads[:busy])
    assert busy == 0 or busy >= min(num_cores, -(-sum(blocks) // max(loads)))


@given(FEW_BLOCKS, st.integers(2, 4), OVERHEAD)
def test_a_row_is_split_only_where_the_optimum_needs_it(
    blocks: list[int], num_cores: int, overhead: int
) -> None:
    cuts = cut(blocks, num_cores, overhead)
    largest = max(cuts.loads)
    for core, (row, block) in enumerate(zip(cuts.rows, cuts.blocks, strict=True)):
        begun_here = block and (cuts.rows[core - 1], cuts.blocks[core - 1]) <= (row, 0)
        if begun_here and overhead + blocks[row] <= largest:
            # Core `core - 1` might have left the row to those behind it: they could not have done it.
            rest = [unit for unit in units_of(blocks) if unit >= (row, 0)]
            assert least_load(rest, num_cores - core, overhead) > largest


@pytest.mark.parametrize(
    ("blocks", "num_cores", "overhead", "rows", "inside", "loads"),
    [
        ([], 2, 1, (0, 0, 0), (0, 0, 0), (0, 0)),
        ([0, 0, 0], 2, 1, (0, 3, 3), (0, 0, 0), (0, 0)),
        ([5], 2, 1, (0, 0, 1), (0, 3, 0), (4, 3)),
        ([5], 2, 0, (0, 0, 1), (0, 3, 0), (3, 2)),
        # One block for each core, as long as there are blocks.
        ([2], 4, 1, (0, 0, 1, 1, 1), (0, 1, 0, 0, 0), (2, 2, 0, 0)),
        # Rows without keys: leading ones with core 0, those at a cut with the core in front of it.
        ([0, 3, 0, 3, 0], 2, 1, (0, 3, 5), (0, 0, 0), (4, 4)),
        ([0, 0, 8, 0], 2, 2, (0, 2, 4), (0, 4, 0), (6, 6)),
        # Both cores pay the overhead of the row that they share.
        ([4, 4, 4], 2, 1, (0, 1, 3), (0, 2, 0), (8, 8)),
        # Core 0 could take one more block; it leaves row 1 whole.
        ([5, 3], 2, 1, (0, 1, 2), (0, 0, 0), (6, 4)),
        # One giant and many empty.
        ([0] * 3 + [100] + [0] * 3, 3, 1, (0, 3, 3, 7), (0, 34, 68, 0), (35, 35, 33)),
    ],
)
def test_cuts_by_hand(
    blocks: list[int],
    num_cores: int,
    overhead: int,
    rows: tuple[int, ...],
    inside: tuple[int, ...],
    loads: tuple[int, ...],
) -> None:
    assert cut(blocks, num_cores, overhead) == Cuts(rows, inside, loads)


def test_slack_is_spent_on_keeping_rows_whole() -> None:
    # With the optimal load of 281 a core does 31 rows of 8 + 1, which leaves 4 of the 4,096 rows over. Cuts
    # inside rows gain a block each: 32 of them do it, where filling every core up would split 131 rows.
    cuts = cut([8] * 4096, 132, 1)
    assert max(cuts.loads) == 281
    assert sum(block > 0 for block in cuts.blocks) <= 32


@pytest.mark.parametrize("overhead", [0, 1, 1000, 2**31 - 1])
def test_loads_over_32_bits(overhead: int) -> None:
    blocks = [2**31 - 1, 0, 2**31 - 1, 2**30, 2**31 - 2]
    places, loads = plain_cuts(blocks, 1, overhead)
    cuts = cut(blocks, 1, overhead)
    assert (cuts.rows, cuts.loads) == ((0, 5), (sum(blocks) + 4 * overhead,))
    assert loads == list(cuts.loads)
    assert places == [(0, 0), (5, 0)]
    two = cut(blocks, 2, overhead)
    assert sum(two.loads) == cuts.loads[0] + overhead * (two.blocks[1] > 0)
    assert max(two.loads) - min(two.loads) <= overhead + 1


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_input_is_left_alone_in_either_dtype(dtype: type[np.int32 | np.int64]) -> None:
    blocks = np.array([3, 0, 900, 17], dtype)
    before = blocks.copy()
    assert cut_rows(blocks, 7, 1) == cut([3, 0, 900, 17], 7, 1)
    np.testing.assert_array_equal(blocks, before)
