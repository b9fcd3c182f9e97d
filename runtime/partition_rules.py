"""What the words of a partition must say of each other: otherwise no call has that plan."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from qsmla.runtime.lengths import INT32_MAX

if TYPE_CHECKING:
    from qsmla.runtime.partition import Partition

MAX_CORES: Final = 132
_WORD: Final = 2**32
_ALLOWED: Final = {
    "num_cores": range(1, MAX_CORES + 1),
    "batch_size": range(INT32_MAX + 1),
    "rows": range(INT32_MAX + 1),
    "key_block": range(1, INT32_MAX + 1),
    "row_overhead": range(INT32_MAX + 1),
    "slots": range(_WORD),
    "total_load": range(_WORD**2),
    "largest_load": range(_WORD**2),
    "fingerprint": range(_WORD**2),
}


def flaw(partition: Partition) -> str | None:
    """What in a partition contradicts the rest of it, if anything: then no rows of key blocks have that plan.

    Whether the rows are those of a call, and the cuts the best ones, is for `given_plan` to say.
    """
    return (
        _flaw_of_numbers(partition)
        or _flaw_of_places(partition)
        or _flaw_of_split_rows(partition)
        or _flaw_of_loads(partition)
    )


def _flaw_of_numbers(partition: Partition) -> str | None:
    """Each by itself."""
    for name, allowed in _ALLOWED.items():
        value = getattr(partition, name)
        if value not in allowed:
            return f"{name} is {value}; allowed: {allowed[0]}..{allowed[-1]}"
    cursors, combines, cores = len(partition.cursors), len(partition.combines), partition.num_cores
    if cursors != cores + 1 or combines >= cores:
        return f"{cursors} cursors and {combines} split rows for {cores} cores"
    return None


def _flaw_of_places(partition: Partition) -> str | None:
    """Where the cursors stand: from the first row to the end, in order."""
    cursors, rows = partition.cursors, partition.rows
    if cursors[-1] != (partition.batch_size, 0, 0, partition.slots) or list(cursors) != sorted(cursors):
        return "the cursors do not lead from the first row to the end"
    if any(cursors[0][1:]) or (cursors[0].batch == partition.batch_size) != (rows == 0):
        return f"core 0 begins at {tuple(cursors[0])}, which is not the first of {rows} rows"
    known = _known_rows(partition)
    if known > rows:
        return f"the cursors pass {known} rows of {rows}"
    return None


def _known_rows(partition: Partition) -> int:
    """How many rows there are at least, by the cursors: in each batch those up to its last cursor."""
    pairs = itertools.pairwise(partition.cursors)
    return sum(here.row + 1 for here, there in pairs if there.batch > here.batch)


def _flaw_of_split_rows(partition: Partition) -> str | None:
    """The split rows are those with a cursor inside; their slots and the cursors' follow each other."""
    combines = partition.combines
    slots = 0
    for combine in combines:
        if combine.first_slot != slots or not 2 <= combine.slots <= INT32_MAX:
            return f"split row {combine.row} has slots {combine.first_slot}..+{combine.slots} behind {slots}"
        slots += combine.slots
    if slots != partition.slots:
        return f"the split rows have {slots} slots of {partition.slots}"
    # Where the rows of the cursor's batch begin in the output: at the least, or as a split row there says.
    first_row, is_known = 0, False
    slots, nth, before = 0, -1, partition.cursors[0]
    for cursor in partition.cursors:
        if cursor.batch > before.batch:
            first_row, is_known = first_row + before.row + 1, False
        if cursor.block:
            if nth < 0 or not before.block or cursor[:2] != before[:2]:
                nth += 1
                if nth == len(combines):
                    return f"more rows than {nth} split rows have a cursor inside, at {tuple(cursor)}"
                begins = combines[nth].row - cursor.row
                if begins < first_row or (is_known and begins > first_row) or combines[nth].row > INT32_MAX:
                    return f"split row {combines[nth].row} is row {cursor.row} of batch {cursor.batch}"
                first_row, is_known = begins, True
                slots = combines[nth].first_slot + combines[nth].slots
            if cursor.block >= combines[nth].slots:
                return f"the cursor {tuple(cursor)} is inside a row of {combines[nth].slots} blocks"
        if cursor.slot != (combines[nth].first_slot + cursor.block if cursor.block else slots):
            return f"the cursor {tuple(cursor)} names slot {cursor.slot}"
        before = cursor
    # A split row without a cursor inside has slots that the last cursor counts and those in front do not.
    return None


def _flaw_of_loads(partition: Partition) -> str | None:
    """The loads have room for the pieces of split rows, and whole rows can make up the rest."""
    least, with_rows, by_more_rows = _least_loads(partition)
    total, largest, overhead = partition.total_load, partition.largest_load, partition.row_overhead
    whole_rows = partition.rows - len(partition.combines)
    rest = total - sum(least)
    room = [largest - least[core] for core in with_rows]
    # A row that no cursor tells of can be one more core's.
    more = sorted((largest - least[core] for core in by_more_rows), reverse=True)
    spare = partition.rows - _known_rows(partition)
    most = sum(room) + sum(more[:spare])
    if max(least) < largest and not any(one <= rest for one in room):
        # Then one of those is the core with the largest load, by such a row.
        fits = [nth for nth, one in enumerate(more) if one <= rest] if spare else []
        most = sum(room) + more.pop(fits[0]) + sum(more[: spare - 1]) if fits else -1
    most = min(most, whole_rows * (INT32_MAX + overhead))
    if max(least) > largest or not 0 <= rest <= most or 0 < rest <= overhead:
        return f"total load {total}, largest {largest}; the split rows alone make {sum(least)}, {max(least)}"
    return None


def _least_loads(partition: Partition) -> tuple[list[int], list[int], list[int]]:
    """What each core's pieces of split rows cost; the cores that have whole rows; others that may have some.

    The latter have them only if there are rows behind a batch's last cursor.
    """
    loads: list[int] = []
    with_rows: list[int] = []
    by_more_rows: list[int] = []
    nth = -1
    for core, (start, end) in enumerate(partition.ranges):
        same_row = start[:2] == end[:2]
        load = 0
        if start.block:
            blocks = (end.block if same_row else partition.combines[nth].slots) - start.block
            load += blocks + partition.row_overhead * (blocks > 0)
        if end.block and not (start.block and same_row):
            load += end.block + partition.row_overhead
            nth += 1
        loads.append(load)
        whole_rows = end.row - (start.block > 0) + (1 if end.batch > start.batch else -start.row)
        if whole_rows > 0:
            with_rows.append(core)
        elif end.batch > start.batch:
            by_more_rows.append(core)
    return loads, with_rows, by_more_rows
