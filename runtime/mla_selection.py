"""Which tokens each row of a `quant_sparse_flash_mla` call sees, as the planner and the kernels need it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.mla_checks import MlaCall
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths, row_keys
from qsmla.runtime.selection import valid_first

Integers = npt.NDArray[np.int64]

_COLUMN: Final = {"ori": 0, "cmp": 3}
"""A part's first column in `ranges`."""
_ORI_BLOCKS: Final = 6


@dataclass(frozen=True, eq=False)
class MlaSelection:
    """What the rows attend to; a planned row is one that belongs to a batch, the others are zeros."""

    output_row: Integers
    """[planned rows], in order (batch, row): the row's place in q and in the output."""
    batch: npt.NDArray[np.int32]
    """[planned rows]."""
    ranges: npt.NDArray[np.int32]
    """[rows, 7]; of the original part, then of the compressed one: cache row of the sequence's token 0, first
    token that the masks leave, end; then the original part's key blocks. Zeros where a row is not planned."""
    indices: dict[str, npt.NDArray[np.int32]]
    """[rows, topk] of each sparse part, valid ids first."""
    planned_blocks: Integers
    """[planned rows]; key blocks as the metadata counts them, from lengths, masks and topk alone."""
    blocks: Integers
    """[planned rows]; key blocks as the kernels do them: more only where ids occur several times."""
    keyless: Integers
    """The planned rows without any key, by their places in the output."""


def select(call: MlaCall) -> MlaSelection:
    """Work out what each row sees, and bring valid ids to the front where they are not."""
    counts = call.lengths.query.astype(np.int64)
    batch = np.arange(len(counts), dtype=np.int32).repeat(counts)
    row_in_batch = np.arange(len(batch)) - (np.cumsum(counts) - counts)[batch]
    output_row = call.lengths.first_rows.astype(np.int64)[batch] + row_in_batch
    ranges = np.zeros((len(call.query), 7), np.int32)
    first, seen = seen_tokens(call.attributes, call.lengths, batch, row_in_batch)
    planned_blocks, blocks, keys = np.zeros((3, len(batch)), np.int64)
    indices = {}
    for name, part in call.parts.items():
        columns = ranges[:, _COLUMN[name] : _COLUMN[name] + 3]
        columns[output_row] = np.stack([part.starts[batch], first[name], first[name] + seen[name]], axis=1)
        planned: Integers = seen[name]
        attended: npt.NDArray[np.integer[Any]] = planned
        if part.indices is not None:
            valid = _Valid(part.indices, columns[:, 1], columns[:, 2])
            planned = np.minimum(planned, part.indices.shape[1])
            valid_counts, indices[name] = valid_first(part.indices, valid)
            attended = valid_counts[output_row]
        planned_blocks += -(-planned // KEY_BLOCK)
        # Distinct ids are never more than were planned for.
        blocks += -(-np.maximum(planned, attended) // KEY_BLOCK)
        keys += attended
        if name == "ori":
            ranges[output_row, _ORI_BLOCKS] = blocks
    return MlaSelection(
        output_row=output_row,
        batch=batch,
        ranges=ranges,
        indices=indices,
        planned_blocks=planned_blocks,
        blocks=blocks,
        keyless=output_row[keys == 0],
    )


def seen_tokens(
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
