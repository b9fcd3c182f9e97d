"""Words that contradict each other are no partition; whatever is let through, some rows have as a plan."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qsmla.runtime.metadata import quant_sparse_flash_mla_metadata
from qsmla.runtime.partition import Cursor, Partition, plan_rows


def words_of(num_cores: int = 4, **lengths: Any) -> NDArray[np.int32]:
    """Two batches of 3 and 2 rows of 12 and 3 blocks, on four cores."""
    given_lengths = {"seqused_q": [3, 2], "seqused_ori_kv": [3000, 700]} | lengths
    return quant_sparse_flash_mla_metadata(16, num_cores=num_cores, **given_lengths)


def test_the_example_is_what_the_words_below_are_changed_in() -> None:
    partition = Partition.decode(words_of())
    assert [tuple(cursor) for cursor in partition.cursors] == [
        (0, 0, 0, 0),
        (0, 0, 11, 11),
        (0, 1, 10, 22),
        (0, 2, 9, 33),
        (2, 0, 0, 36),
    ]
    assert [tuple(combine) for combine in partition.combines] == [(0, 0, 12), (1, 12, 12), (2, 24, 12)]
    assert (partition.total_load, partition.largest_load) == (42, 11)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        # The header.
        ({2: 5}, "the cursors do not lead"),
        ({3: 0}, "the cursors do not lead"),
        ({3: 9}, "the cursors do not lead"),
        ({4: 0}, "core 0 begins at"),
        ({4: 2}, "the cursors pass 3 rows of 2"),
        # Three rows, all of them split, leave nothing for the rest of the load.
        ({4: 3}, "total load 42"),
        ({5: 0}, "key_block is 0; allowed: 1..2147483647"),
        ({6: 35}, "the cursors do not lead"),
        ({6: 35, 35: 35}, "the split rows have 36 slots of 35"),
        ({7: 2}, "2 split rows, or words set behind them"),
        ({8: 35}, "total load 35, largest 11; the split rows alone make 36, 11"),
        ({8: 45}, "total load 45"),
        ({9: 1}, "total load 4294967338"),
        ({10: 10}, "largest 10"),
        # Nobody can reach it: core 3 has the rest of a row and 3 of the 6 blocks behind it.
        ({10: 12}, "largest 12"),
        ({11: 1}, "largest 4294967307"),
        ({14: 1}, "the split rows alone make 42, 13"),
        ({14: 7}, "the split rows alone make 78, 25"),
        ({15: 1}, "words set behind"),
        # Cursors.
        ({17: 1, 21: 1, 25: 2, 29: 3}, "core 0 begins at"),
        ({18: 1}, "core 0 begins at"),
        ({19: 1}, "core 0 begins at"),
        ({16: 1}, "the cursors do not lead"),
        ({20: 1}, "the cursors do not lead"),
        ({21: 3}, "the cursors do not lead"),
        ({22: 0}, "names slot 11"),
        ({22: 10}, "names slot 11"),
        ({22: 12, 23: 12}, "is inside a row of 12 blocks"),
        ({23: 10}, "names slot 10"),
        ({23: 12}, "names slot 12"),
        ({28: 1}, "split row 2 is row 2 of batch 1"),
        ({29: 3}, "split row 2 is row 3 of batch 0"),
        ({28: 2}, "the cursors do not lead"),
        ({33: 1}, "the cursors do not lead"),
        # A split row that no cursor is inside of, or of another row than the cursors'.
        ({25: 0, 26: 11, 27: 11}, "split row 1 is row 2 of batch 0"),
        ({30: 0, 31: 24}, "names slot 36"),
        # Combines.
        ({36: 1}, "split row 1 is row 1 of batch 0"),
        ({39: 0}, "split row 0 is row 1 of batch 0"),
        ({39: 2}, "split row 2 is row 1 of batch 0"),
        ({36: 1, 39: 0}, "split row 0 is row 1 of batch 0"),
        ({36: -1}, "split row 4294967295 is row 0"),
        ({37: 1}, "has slots 1"),
        ({38: 11}, "has slots 12"),
        ({38: 11, 40: 11, 41: 13}, "is inside a row of 11 blocks"),
        ({38: 1}, "has slots 0"),
        ({38: 0}, "has slots 0"),
    ],
    ids=str,
)
def test_words_that_contradict_others(changed: dict[int, int], complaint: str) -> None:
    words = words_of()
    for word, value in changed.items():
        words[word] = value
    with pytest.raises(ValueError, match=f"^metadata is damaged: .*({complaint})"):
        Partition.decode(words)


@pytest.mark.parametrize("word", range(12))
def test_words_of_no_rows_that_speak_of_some(word: int) -> None:
    words = words_of(2, seqused_q=[0, 0])
    assert Partition.decode(words).rows == 0
    words[word] += 1
    if word != 5:  # another size of a key block
        with pytest.raises(ValueError, match=r"^metadata"):
            Partition.decode(words)


def test_batches_without_rows_are_no_contradiction() -> None:
    """Only the fingerprint tells this plan from the one without them."""
    words = words_of()
    words[[3, 32]] = 9
    more = words_of(seqused_q=[3, 2] + 7 * [0], seqused_ori_kv=[3000, 700] + 7 * [0])
    assert np.flatnonzero(words != more).tolist() == [12, 13]
    assert Partition.decode(words).batch_size == 9


def test_a_partition_made_by_hand_is_held_to_the_same() -> None:
    partition = Partition.decode(words_of())
    fields = {name: getattr(partition, name) for name in Partition.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"^num_cores is 133; allowed: 1..132"):
        Partition(**fields | {"num_cores": 133})
    with pytest.raises(ValueError, match=r"^fingerprint is -1; allowed: 0..18446744073709551615"):
        Partition(**fields | {"fingerprint": -1})


def test_a_largest_load_that_no_core_can_have() -> None:
    """The core with whole rows has 3 blocks, the other 4 and no row of its own."""
    partition = plan_rows(np.array([1, 0, 6]), np.array([3], np.int32), 2, 0)
    fields = {name: getattr(partition, name) for name in Partition.__dataclass_fields__}
    fields["cursors"] = (Cursor(0, 0, 0, 0), Cursor(0, 2, 2, 2), Cursor(1, 0, 0, 6))
    assert Partition(**fields | {"largest_load": 4}).balance > 1
    with pytest.raises(ValueError, match=r"^total load 7, largest 5; the split rows alone make 6, 4"):
        Partition(**fields | {"largest_load": 5})


@st.composite
def changed_words(draw: st.DrawFn) -> NDArray[np.int32]:
    """A plan of a few rows, one or two words of which may be others."""
    rows_per_batch = draw(st.lists(st.integers(0, 3), max_size=4))
    rows = sum(rows_per_batch)
    blocks = draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows))
    num_cores = draw(st.integers(1, 5))
    partition = plan_rows(np.array(blocks, np.int64), np.array(rows_per_batch, np.int32), num_cores, 0)
    words = partition.encode()
    used = 16 + 4 * len(partition.cursors) + 3 * len(partition.combines)
    for _ in range(draw(st.integers(1, 2))):
        word = draw(st.integers(2, used - 1))
        words[word] += draw(st.sampled_from([-2, -1, 1, 2, 3]))
    return words


# The same examples each time: 12,000 were run once, and a rare one is no reason for a change to fail.
@settings(max_examples=400, derandomize=True)
@given(changed_words())
def test_what_is_let_through_is_a_plan_of_some_rows(words: NDArray[np.int32]) -> None:
    try:
        partition = Partition.decode(words)
    except ValueError:
        return
    if partition.row_overhead:
        # The rules leave open how the loads are made up where rows cost something themselves.
        return
    blocks, rows_per_batch = rows_with_this_plan(partition)
    pieces = partition.pieces(blocks, rows_per_batch)
    assert (pieces.blocks >= 0).all()
    assert np.add.reduceat(pieces.blocks, np.flatnonzero(pieces.first_block == 0)).tolist() == blocks.tolist()
    assert pieces.loads.sum() == partition.total_load
    assert pieces.loads.max() == partition.largest_load
    assert len(set(pieces.row[pieces.split].tolist())) == len(partition.combines)


def rows_with_this_plan(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Blocks of each row and rows of each batch that the partition is a plan of, found by trying."""
    rows_per_batch = [0] * partition.batch_size
    for batch, row, _, _ in partition.cursors[:-1]:
        if batch < partition.batch_size:
            rows_per_batch[batch] = max(rows_per_batch[batch], row + 1)
    spare = partition.rows - sum(rows_per_batch)
    assert spare >= 0
    cores = partition.ranges
    # A row more in the last batch that a core begins in is that core's.
    growing = [core for core, (start, end) in enumerate(cores) if start.batch < end.batch]
    for count in range(min(spare, len(growing)) + 1):
        for chosen in itertools.combinations(growing, count):
            counts = list(rows_per_batch)
            for core in chosen:
                counts[cores[core].start.batch] += 1
            if spare:
                counts[cores[growing[-1]].start.batch] += spare - count
            blocks = blocks_with_this_plan(partition, counts)
            if blocks is not None:
                return np.array(blocks, np.int64), np.array(counts, np.int64)
    raise AssertionError(f"no rows have this plan: {partition}, total load {partition.total_load}")


def blocks_with_this_plan(partition: Partition, rows_per_batch: list[int]) -> list[int] | None:
    """Blocks of each row: those of split rows, and in a whole row of each core what the loads leave over."""
    places = [(batch, row) for batch, rows in enumerate(rows_per_batch) for row in range(rows)]
    split = sorted({cursor[:2] for cursor in partition.cursors if cursor.block})
    assert len(split) == len(partition.combines)
    blocks = dict.fromkeys(places, 0)
    for place, combine in zip(split, partition.combines, strict=True):
        assert place in blocks
        blocks[place] = combine.slots
    loads, whole = [], {}
    for core, (start, end) in enumerate(partition.ranges):
        loads.append(sum(start[:3] <= (*place, n) < end[:3] for place in split for n in range(blocks[place])))
        mine = [place for place in places if start[:3] <= (*place, 0) < end[:3] and place not in split]
        if mine:
            whole[core] = mine[0]
    rest = partition.total_load - sum(loads)
    room = {core: partition.largest_load - loads[core] for core in whole}
    first = [None] if max(loads) == partition.largest_load else whole
    for filled in first:
        left = rest
        extra = dict.fromkeys(whole, 0)
        for core in [filled, *(core for core in whole if core != filled)] if filled is not None else whole:
            extra[core] = min(left, room[core])
            left -= extra[core]
        reached = filled is None or extra[filled] == room[filled]
        if left == 0 and reached and min([0, *extra.values()]) >= 0 and max(loads) <= partition.largest_load:
            return [blocks[place] + sum(extra[c] for c in whole if whole[c] == place) for place in places]
    return None
