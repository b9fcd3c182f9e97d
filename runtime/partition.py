"""The work partition: int32[1024] for kernels, a typed object for everybody else.

The 1024 words have layout version 1 of `quant_sparse_flash_mla_metadata`. They serve every attention
operator: `plan_rows` needs nothing but the key blocks of each row.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.balance import cut_rows
from qsmla.runtime.lengths import INT32_MAX, as_array, check_shape
from qsmla.runtime.partition_rules import MAX_CORES, flaw

ROW_OVERHEAD: Final = 0
"""What a row costs each core that touches it beside its blocks (query, fold, output), in blocks.

Measured on a CPU, 64 rows of one block against 8 rows of 8: 0.05 to 0.13 of a block with 1 to 128 heads, so
0 is the nearest whole number; 1 would count short rows as twice the work they are.
"""
NUM_CORES: Final = range(1, MAX_CORES + 1)
METADATA_WORDS: Final = 1024
MAGIC: Final = 0x314D5351
"""The bytes "QSM1" as a little-endian word."""
VERSION: Final = 1

_HEADER_WORDS: Final = 16
_WORD: Final = 2**32


class Cursor(NamedTuple):
    """A place in the work; rows in order (batch, row), key blocks in order inside a row."""

    batch: int
    row: int
    """Row in the batch."""
    block: int
    """Key block in the row; more than 0 only inside a split row."""
    slot: int
    """How many slots the blocks in front of this place have: the slot of the block here if its row is split,
    else the next slot that is stored to from here on."""


class Combine(NamedTuple):
    """A split row; the partial results of its blocks lie in consecutive slots, in block order."""

    row: int
    """Flat row: where the row stands in the output."""
    first_slot: int
    slots: int
    """As many as the row has key blocks."""


class CoreRange(NamedTuple):
    """What one core does: everything from `start` up to, and without, `end`."""

    start: Cursor
    end: Cursor

    @property
    def empty(self) -> bool:
        """Whether the core has nothing to do."""
        return self.start[:3] == self.end[:3]


@dataclass(frozen=True)
class Pieces:
    """What each core does of each row, an entry a piece, in order; arrays [pieces]."""

    core: NDArray[np.int64]
    row: NDArray[np.int64]
    """The row's place among all rows in order (not in the output)."""
    first_block: NDArray[np.int64]
    blocks: NDArray[np.int64]
    split: NDArray[np.bool_]
    """Whether other cores work on the row too."""
    loads: NDArray[np.int64]
    """[num_cores], in blocks: the blocks of a core's pieces, and the overhead of every row with keys."""


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The work of a call cut into contiguous ranges, one a core; what int32[1024] metadata says.

    Raises:
        ValueError: the fields contradict each other.
    """

    num_cores: int
    batch_size: int
    rows: int
    key_block: int
    row_overhead: int
    """In blocks."""
    slots: int
    """Blocks of all split rows: one partial result each."""
    total_load: int
    """Sum of the cores' loads, in blocks."""
    largest_load: int
    fingerprint: int
    """64 bits over the lengths and attributes that were planned for."""
    cursors: tuple[Cursor, ...]
    """[num_cores + 1]; core i runs from cursor i up to cursor i + 1, exclusive."""
    combines: tuple[Combine, ...]
    """The split rows, in order."""

    def __post_init__(self) -> None:
        found = flaw(self)
        if found is not None:
            raise ValueError(found)

    @functools.cached_property
    def ranges(self) -> tuple[CoreRange, ...]:
        """[num_cores]; what each core does."""
        return tuple(map(CoreRange, self.cursors, self.cursors[1:]))

    @property
    def split_rows(self) -> tuple[int, ...]:
        """Flat rows that more than one core works on."""
        return tuple(combine.row for combine in self.combines)

    @property
    def mean_load(self) -> float:
        """In blocks."""
        return self.total_load / self.num_cores

    @property
    def balance(self) -> float:
        """Largest load / mean load; 1.0 is perfect, also when there is no work."""
        return self.largest_load / self.mean_load if self.total_load else 1.0

    def pieces(self, blocks: NDArray[np.integer[Any]], rows_per_batch: NDArray[np.integer[Any]]) -> Pieces:
        """What each core does of each row, and the cores' loads, from the arrays that were planned for.

        Args:
            blocks: integers [rows]; key blocks of each row.
            rows_per_batch: integers [batch_size].

        Raises:
            ValueError: the arrays are not those of this partition.
        """
        if len(blocks) != self.rows or len(rows_per_batch) != self.batch_size:
            raise ValueError(
                f"blocks has {len(blocks)} rows and rows_per_batch {len(rows_per_batch)} batches; "
                f"the partition is for {self.rows} and {self.batch_size}"
            )
        batch, row, block, _ = np.array(self.cursors, np.int64).T
        row = row + np.concatenate(([0], np.cumsum(rows_per_batch, dtype=np.int64)))[batch]
        inside = block > 0
        # A piece begins with every row, and at every cursor inside a row.
        rows = np.insert(np.arange(self.rows), row[inside] + 1, row[inside])
        first = np.insert(np.zeros(self.rows, np.int64), row[inside] + 1, block[inside])
        # The pieces in front of a cursor: the rows in front, and the cursors inside rows up to this one.
        begin = row + np.cumsum(inside)
        core = np.repeat(np.arange(self.num_cores), np.diff(begin))
        follows = np.zeros(len(rows) + 1, np.bool_)
        follows[1:-1] = rows[1:] == rows[:-1]
        counts = np.where(follows[1:], np.append(first[1:], 0), blocks[rows]) - first
        costs = np.concatenate(([0], np.cumsum(counts + self.row_overhead * (counts > 0))))
        return Pieces(core, rows, first, counts, follows[1:] | follows[:-1], np.diff(costs[begin]))

    def encode(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The 1024 words, int32; in `out` if given.

        Raises:
            TypeError: `out` is no int32 array.
            ValueError: `out` is not [1024], or cannot be written.
        """
        if out is None:
            out = np.empty(METADATA_WORDS, np.int32)
        check_words("out", out)
        if not out.flags.writeable:
            raise ValueError("out is read-only; allowed: a writable int32[1024] array")
        header = [MAGIC, VERSION, self.num_cores, self.batch_size, self.rows, self.key_block]
        header += [self.slots, len(self.combines), *_halves(self.total_load), *_halves(self.largest_load)]
        header += [*_halves(self.fingerprint), self.row_overhead, 0]
        words = np.zeros(METADATA_WORDS, np.uint32)
        combines = _HEADER_WORDS + 4 * (self.num_cores + 1)
        words[:_HEADER_WORDS] = header
        words[_HEADER_WORDS:combines] = [word for cursor in self.cursors for word in cursor]
        used = combines + 3 * len(self.combines)
        words[combines:used] = [word for combine in self.combines for word in combine]
        out[:] = words.view(np.int32)
        return out

    @classmethod
    def decode(cls, metadata: NDArray[np.int32]) -> Partition:
        """Reads the 1024 words back.

        Raises:
            TypeError: `metadata` is no int32 array.
            ValueError: it is not [1024], not a partition of this layout version, or contradicts itself.
        """
        check_words("metadata", metadata)
        words: list[int] = np.ascontiguousarray(metadata).view(np.uint32).tolist()
        if words[:2] != [MAGIC, VERSION]:
            raise ValueError(
                f"metadata begins with words {words[0]:#x}, {words[1]}; "
                f"allowed: {MAGIC:#x}, {VERSION}, a partition of this version"
            )
        cores, splits = words[2], words[7]
        combines = _HEADER_WORDS + 4 * (cores + 1)
        used = combines + 3 * splits
        if not 1 <= cores <= MAX_CORES or splits >= cores or any(words[used:]) or words[15]:
            raise ValueError(
                f"metadata is damaged: {cores} cores, {splits} split rows, or words set behind them"
            )
        try:
            return cls(
                num_cores=cores,
                batch_size=words[3],
                rows=words[4],
                key_block=words[5],
                row_overhead=words[14],
                slots=words[6],
                total_load=words[8] + words[9] * _WORD,
                largest_load=words[10] + words[11] * _WORD,
                fingerprint=words[12] + words[13] * _WORD,
                cursors=tuple(Cursor(*words[i : i + 4]) for i in range(_HEADER_WORDS, combines, 4)),
                combines=tuple(Combine(*words[i : i + 3]) for i in range(combines, used, 3)),
            )
        except ValueError as error:
            raise ValueError(f"metadata is damaged: {error}") from None

    def __str__(self) -> str:
        lines = [
            f"Partition of {counted(self.rows, 'row')} in {counted(self.batch_size, 'batch')} over "
            f"{counted(self.num_cores, 'core')}: "
            f"largest load {self.largest_load} blocks of {self.key_block} keys, mean {self.mean_load:.2f}, "
            f"balance {self.balance:.4f}, "
            f"{counted(len(self.combines), 'split row')} in {counted(self.slots, 'slot')}"
        ]
        for core, (start, end) in enumerate(self.ranges):
            lines.append(f"  core {core}: {tuple(start[:3])} up to {tuple(end[:3])}, first slot {start.slot}")
        for combine in self.combines:
            last = combine.first_slot + combine.slots - 1
            lines.append(f"  split row {combine.row}: slots {combine.first_slot}..{last}")
        return "\n".join(lines)


def plan_rows(
    blocks: NDArray[np.integer[Any]],
    rows_per_batch: NDArray[np.integer[Any]],
    num_cores: int,
    fingerprint: int,
    *,
    first_rows: NDArray[np.integer[Any]] | None = None,
    key_block: int = KEY_BLOCK,
    row_overhead: int = ROW_OVERHEAD,
) -> Partition:
    """The partition of any rows of key blocks with the smallest largest load (see `balance.cut_rows`).

    Args:
        blocks: integers [rows]; key blocks of each row, in order (batch, row).
        rows_per_batch: integers [batches].
        num_cores: 1..132.
        fingerprint: 64 bits over what determined the blocks; see `fingerprint`.
        first_rows: integers [batches]; where each batch's first row stands in the output, if other rows of
            the output lie between the batches. None: the rows follow each other without a gap.
        key_block: keys in one block.
        row_overhead: what a row costs each core that touches it, in blocks.

    Raises:
        ValueError: `blocks` is negative or not one number a row of `rows_per_batch`, `num_cores` is out of
            range, or a number does not fit its word of the metadata.
    """
    ends = np.cumsum(rows_per_batch, dtype=np.int64)
    _check_rows(blocks, rows_per_batch, ends, num_cores)
    first_in_order = ends - rows_per_batch
    cuts = cut_rows(blocks, num_cores, row_overhead)
    rows = np.array(cuts.rows)
    batches = ends.searchsorted(rows, side="right")
    # Several cores may begin inside one row: each split row counts once.
    split = np.unique(rows[np.array(cuts.blocks) > 0])
    slots = np.concatenate(([0], np.cumsum(blocks[split], dtype=np.int64)))
    if slots[-1] >= _WORD:
        raise ValueError(f"blocks: {slots[-1]} of them lie in split rows; allowed: less than {_WORD}")
    columns = (
        batches,
        rows - np.append(first_in_order, len(blocks))[batches],
        np.array(cuts.blocks),
        slots[split.searchsorted(rows)] + cuts.blocks,
    )
    output_rows = split
    if first_rows is not None:
        output_rows = split + (first_rows - first_in_order)[ends.searchsorted(split, side="right")]
    return Partition(
        num_cores=num_cores,
        batch_size=len(rows_per_batch),
        rows=len(blocks),
        key_block=key_block,
        row_overhead=row_overhead,
        slots=slots.item(-1),
        total_load=sum(cuts.loads),
        largest_load=max(cuts.loads),
        fingerprint=fingerprint,
        cursors=tuple(map(Cursor._make, np.stack(columns, axis=1).tolist())),
        combines=tuple(map(Combine, output_rows.tolist(), slots[:-1].tolist(), np.diff(slots).tolist())),
    )


def _check_rows(
    blocks: NDArray[np.integer[Any]],
    rows_per_batch: NDArray[np.integer[Any]],
    ends: NDArray[np.int64],
    num_cores: int,
) -> None:
    """Raises ValueError unless the arguments of `plan_rows` fit each other and the metadata's words."""
    if not 1 <= num_cores <= MAX_CORES:
        raise ValueError(f"num_cores is {num_cores}; allowed: 1..{MAX_CORES}")
    if len(rows_per_batch) and rows_per_batch.min() < 0:
        raise ValueError(f"rows_per_batch holds {rows_per_batch.min()}; allowed: 0 or more")
    rows = ends.item(-1) if len(ends) else 0
    if blocks.shape != (rows,):
        raise ValueError(
            f"blocks has shape {list(blocks.shape)}; allowed: [{rows}], the sum of rows_per_batch"
        )
    if rows and not 0 <= blocks.min() <= blocks.max() <= INT32_MAX:
        raise ValueError(f"blocks holds {blocks.min()}..{blocks.max()}; allowed: 0..{INT32_MAX}")


def counted(number: int, noun: str) -> str:
    """The noun behind its number, in the plural where there is not one: "1 batch", "0 batches"."""
    return f"{number} {noun}" + ("es" if noun.endswith("ch") else "s") * (number != 1)


def _halves(number: int) -> tuple[int, int]:
    """Low and high 32 bits."""
    return number % _WORD, number // _WORD


def check_words(name: str, words: object) -> None:
    """Raises TypeError unless `words` is an int32 array, ValueError unless it is [1024]; naming it."""
    array = as_array(name, words)
    if array.dtype != np.int32:
        raise TypeError(f"{name} is dtype {array.dtype}; allowed: int32")
    check_shape(name, array.shape, (METADATA_WORDS,))
