"""`quant_sparse_flash_mla` in NumPy: slow, readable, and what its compiled kernels are measured against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.ir.codes import decode_table
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.mla_checks import OUTPUT_DTYPE, MlaCall, Part, check_mla_call
from qsmla.runtime.reference import Attended
from qsmla.runtime.signature import checked_by


@checked_by(check_mla_call)
def quant_sparse_flash_mla(
    call: MlaCall,
) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """HiFloat8 attention over original and compressed keys, in float64.

    The arguments are the operator's. Nothing is rounded but the result, once at the end.

    NaN and infinity follow the formula: a row that attends to a NaN, or to a score of +inf, is NaN; a row all
    of whose scores are -inf and that has no sink is 0/0, NaN, with the lse log(0), -inf. A sink of +inf takes
    all the weight: zeros, lse +inf; a sink of -inf is none. A row without keys is exact zeros, its lse the
    sink.

    Returns:
        bfloat16 of q's shape (out itself where it is given); with return_softmax_lse also float32 of that
        shape without the last dimension.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument has a value or shape that is not allowed; the text names it.
    """
    attended = attend(call)
    with np.errstate(over="ignore"):
        rounded = attended.output.astype(OUTPUT_DTYPE).reshape(call.output_shape)
    if call.out is not None:
        call.out[...] = rounded
        rounded = call.out
    if call.return_softmax_lse:
        return rounded, attended.lse.astype(np.float32).reshape(call.output_shape[:-1])
    return rounded


def attend(call: MlaCall, rows: Iterable[tuple[int, int]] | None = None) -> Attended:
    """The float64 results of a call, all rows of q in order.

    Args:
        call: the call.
        rows: (batch, row in batch) of those to compute; None: all. The others count as rows of no batch.
    """
    output = np.zeros((len(call.query), call.spec.heads, NOPE_DIM))
    lse = np.full(output.shape[:-1], -np.inf)
    vmax = np.zeros(len(output))
    every = ((b, s) for b, count in enumerate(call.lengths.query) for s in range(count))
    for batch, row in every if rows is None else rows:
        place = call.lengths.first_rows[batch] + row
        tokens = attended_tokens(call, batch, row)
        if not any(map(len, tokens.values())):
            lse[place] = call.sinks
            continue
        query = _decoded(call.query[place])
        keys = [_decoded(_codes(call.parts[name], batch, tokens[name])) for name in tokens]
        descales = [call.parts[name].descale for name in tokens]
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            scores = [call.scale * d * (query @ key.T) for d, key in zip(descales, keys, strict=True)]
            values = [d * key for d, key in zip(descales, keys, strict=True)]
        output[place], lse[place] = _softmax(
            np.concatenate(scores, axis=1), np.concatenate(values), call.sinks.astype(np.float64)
        )
        magnitude = np.abs(np.concatenate(values))
        vmax[place] = magnitude.max(initial=0, where=np.isfinite(magnitude))
    return Attended(output, lse, vmax)


def attended_tokens(call: MlaCall, batch: int, row: int) -> dict[str, npt.NDArray[np.int64]]:
    """Token numbers that row `row` of a batch attends to in each part, duplicates counted each time."""
    place = call.lengths.first_rows[batch] + row
    tokens = {}
    for name, part in call.parts.items():
        first, end = (_ori_range if name == "ori" else _cmp_range)(call, batch, row)
        if part.indices is None:
            tokens[name] = np.arange(first, max(first, end))
        else:
            ids = part.indices[place].astype(np.int64)
            tokens[name] = ids[(ids >= first) & (ids < end)]
    return tokens


def _ori_range(call: MlaCall, batch: int, row: int) -> tuple[int, int]:
    attributes = call.attributes
    length = int(call.lengths.ori[batch])
    diagonal = length - int(call.lengths.query[batch]) + row
    if attributes.ori_mask_mode == 0:
        return 0, length
    if attributes.ori_mask_mode == 3:
        return 0, min(diagonal + 1, length)
    left, right = attributes.ori_win_left, attributes.ori_win_right
    first = 0 if left == -1 else max(diagonal - left, 0)
    return first, length if right == -1 else min(diagonal + right + 1, length)


def _cmp_range(call: MlaCall, batch: int, row: int) -> tuple[int, int]:
    attributes, lengths = call.attributes, call.lengths
    length = int(lengths.cmp[batch])
    if attributes.cmp_mask_mode == 0:
        return 0, length
    originals = length * attributes.cmp_ratio + int(lengths.residual[batch])
    return 0, min((originals - int(lengths.query[batch]) + row + 1) // attributes.cmp_ratio, length)


def _codes(part: Part, batch: int, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The codes [n, 512] of some tokens of a batch."""
    if part.block_table is None:
        rows: npt.NDArray[np.uint8] = part.cache[part.starts[batch] + tokens]
        return rows
    page_size = part.cache.shape[1]
    rows = part.cache[part.block_table[batch, tokens // page_size], tokens % page_size]
    return rows


def _decoded(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    return decode_table("hifloat8").astype(np.float64)[codes]


def _softmax(
    scores: npt.NDArray[np.float64], values: npt.NDArray[np.float64], sinks: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """softmax([scores, sink]) @ [values, 0], [heads, 512], and the log of the softmax's divisor, [heads]."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        largest = scores.max(axis=1)
        # Where no score is finite the sink alone gives the scale. What is infinite is not subtracted:
        # inf - inf would lose what the formula says.
        shift = np.where(largest == -np.inf, sinks, largest)
        shift = np.where(np.isinf(shift), 0, shift)
        weights = np.exp(scores - shift[:, None])
        total = weights.sum(axis=1)
        output: npt.NDArray[np.float64] = (weights @ values) / (total + np.exp(sinks - shift))[:, None]
        lse: npt.NDArray[np.float64] = np.logaddexp(np.log(total) + shift, sinks)
    return output, lse
