"""Which tokens each row of a `quant_sparse_flash_mla` call sees, as the planner and the kernels need it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.mla_checks import MlaCall
from qsmla.runtime.program import RowOrder
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths, row_keys
from qsmla.runtime.selection import MOST_ROWS_KEPT, chunks, valid_first
from qsmla.runtime.workers import before_closing

Integers = npt.NDArray[np.int64]

_COLUMN: Final = {"ori": 0, "cmp": 3}
"""A part's first column in `ranges`."""
_ORI_BLOCKS: Final = 6


@dataclass(frozen=True, eq=False)
class MlaSelection:
    """What the rows attend to; a planned row is one that belongs to a batch, the others are zeros."""

    order: RowOrder
    """The planned rows; key blocks as the kernels do them: more than planned only where ids occur twice."""
    ranges: KeptArray
    """int32 [rows, 7]; of the original part, then of the compressed one: cache row of the sequence's token 0,
    first token that the masks leave, end; then the original part's key blocks. Zeros for rows not planned."""
    indices: dict[str, npt.NDArray[np.int32]]
    """[rows, topk] of each sparse part, valid ids first."""
    planned_blocks: Integers
    """[planned rows]; key blocks as the metadata counts them, from lengths, masks and topk alone."""
    keyless: Integers
    """The planned rows without any key, by their places in the output."""


@dataclass(frozen=True, eq=False)
class _Geometry:
    """What follows from lengths, masks and the numbers of selected tokens, whatever those are."""

    order: RowOrder
    """With `planned_blocks`."""
    ranges: npt.NDArray[np.int32]
    """As in `MlaSelection`, the original part's blocks as planned."""
    planned: dict[str, Integers]
    """[planned rows] of each part: keys as the metadata counts them."""
    if_all_valid: MlaSelection
    """Without indices: what a call selects whose ids are all valid."""
    all_may_be_valid: bool
    """No row lists more ids than it sees tokens: then the planned blocks are those of valid ids too."""

    def of_part(self, name: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """First token and end, [rows] each."""
        column = _COLUMN[name]
        return self.ranges[:, column + 1], self.ranges[:, column + 2]


def select(call: MlaCall) -> MlaSelection:
    """Work out what each row sees, and bring valid ids to the front where they are not."""
    starts = {name: part.starts.tobytes() for name, part in call.parts.items()}
    make: Callable[..., _Geometry] = _kept if len(call.query) <= MOST_ROWS_KEPT else _geometry
    geometry = make(call.attributes, call.lengths, len(call.query), tuple(starts.items()))
    lists = {name: part.indices for name, part in call.parts.items() if part.indices is not None}
    valid = {name: _Valid(ids, *geometry.of_part(name)) for name, ids in lists.items()}
    if geometry.all_may_be_valid and all(one.everywhere() for one in valid.values()):
        return dataclasses.replace(geometry.if_all_valid, indices=lists)
    return _with_gaps(geometry, call, lists, valid)


def _with_gaps(
    geometry: _Geometry,
    call: MlaCall,
    lists: dict[str, npt.NDArray[np.int32]],
    valid: dict[str, _Valid],
) -> MlaSelection:
    """The selection of a call some of whose ids are not valid, or may be there twice."""
    output_row = geometry.order.output_row
    blocks, keys = np.zeros((2, len(output_row)), np.int64)
    ranges = geometry.ranges.copy()
    indices = {}
    for name in call.parts:
        planned = geometry.planned[name]
        attended: npt.NDArray[np.integer[Any]] = planned
        if name in lists:
            valid_counts, indices[name] = valid_first(lists[name], valid[name])
            attended = valid_counts[output_row]
        # Distinct ids are never more than were planned for.
        blocks += -(-np.maximum(planned, attended) // KEY_BLOCK)
        keys += attended
        if name == "ori":
            ranges[output_row, _ORI_BLOCKS] = blocks
    return MlaSelection(
        order=geometry.order._replace(blocks=blocks),
        ranges=KeptArray(ranges),
        indices=indices,
        planned_blocks=geometry.order.blocks,
        keyless=output_row[keys == 0],
    )


def _geometry(
    attributes: MlaAttributes, lengths: MlaLengths, rows: int, starts: tuple[tuple[str, bytes], ...]
) -> _Geometry:
    """`starts`: of each part, where its sequences begin in the cache, int64 [B]."""
    counts = lengths.query.astype(np.int64)
    first_in_order = np.cumsum(counts) - counts
    batch = np.arange(len(counts), dtype=np.int32).repeat(counts)
    row_in_batch = np.arange(len(batch)) - first_in_order[batch]
    output_row = lengths.first_rows.astype(np.int64)[batch] + row_in_batch
    ranges = np.zeros((rows, 7), np.int32)
    first, seen = _seen_tokens(attributes, lengths, batch, row_in_batch)
    blocks, keys = np.zeros((2, len(batch)), np.int64)
    planned = {}
    all_may_be_valid = True
    for name, text in starts:
        topk = attributes.ori_topk if name == "ori" else attributes.cmp_topk
        here = np.frombuffer(text, np.int64)[batch]
        columns = ranges[:, _COLUMN[name] : _COLUMN[name] + 3]
        columns[output_row] = np.stack([here, first[name], first[name] + seen[name]], axis=1)
        planned[name] = np.minimum(seen[name], topk) if topk else seen[name]
        all_may_be_valid &= not topk or bool((seen[name] >= topk).all())
        blocks += -(-planned[name] // KEY_BLOCK)
        keys += planned[name]
        if name == "ori":
            ranges[output_row, _ORI_BLOCKS] = blocks
    order = RowOrder(output_row, batch, blocks, first_in_order)
    if_all_valid = MlaSelection(order, KeptArray(ranges), {}, blocks, output_row[keys == 0])
    return _Geometry(order, ranges, planned, if_all_valid, all_may_be_valid)


_kept = functools.lru_cache(maxsize=16)(_geometry)
# Views must not outlive their devices.
before_closing(_kept.cache_clear)


def _seen_tokens(
    attributes: MlaAttributes, lengths: MlaLengths, batch: npt.NDArray[np.int32], row_in_batch: Integers
) -> tuple[dict[str, Integers], dict[str, Integers]]:
    """What the masks leave each row of each part, whatever is selected: first token, and how many."""
    no_lists = dataclasses.replace(attributes, ori_topk=0, cmp_topk=0)
    ori, cmp = (keys.astype(np.int64) for keys in row_keys(no_lists, lengths))
    ori_first = np.zeros_like(ori)
    if attributes.ori_mask_mode == 4 and attributes.ori_win_left >= 0:
        diagonal = (lengths.ori.astype(np.int64) - lengths.query)[batch] + row_in_batch
        ori_first = np.maximum(diagonal - attributes.ori_win_left, 0)
        # Where nothing is left the window may begin behind the sequence.
        ori_first[ori == 0] = 0
    return {"ori": ori_first, "cmp": np.zeros_like(cmp)}, {"ori": ori, "cmp": cmp}


class _Valid:
    """Which ids of some rows lie in begin..end - 1, the range of their row."""

    def __init__(
        self, indices: npt.NDArray[np.int32], begin: npt.NDArray[np.int32], end: npt.NDArray[np.int32]
    ) -> None:
        self._indices = indices
        self._begin = begin[:, None]
        self._length = (end - begin).astype(np.uint32)[:, None]

    def __call__(self, rows: slice) -> npt.NDArray[np.bool_]:
        # As unsigned numbers ids before the range lie far behind it: one comparison does both.
        places = (self._indices[rows] - self._begin[rows]).view(np.uint32)
        inside: npt.NDArray[np.bool_] = places < self._length[rows]
        return inside

    def everywhere(self) -> bool:
        """Whether all do."""
        return all(
            np.count_nonzero(inside) == inside.size for inside in map(self, chunks(self._indices.shape))
        )
