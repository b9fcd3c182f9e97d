"""The operator in NumPy: slow, readable, and what every compiled kernel is measured against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.checks import AttentionCall, check_call
from qsmla.runtime.packing import dequantise, rope_values
from qsmla.runtime.selection import RowGeometry, row_geometry
from qsmla.runtime.signature import checked_by


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """Float64 results of some query rows, before the rounding to the query dtype."""

    output: npt.NDArray[np.float64]
    """[rows, heads, 512]."""
    lse: npt.NDArray[np.float64]
    """[rows, heads]; natural log of the sum of exp(score), -inf where a row attends to nothing."""
    vmax: npt.NDArray[np.float64]
    """[rows]; the largest finite |V| that the row attends to, 0 where there is none."""


@checked_by(check_call)
def kv_quant_sparse_flash_attention(
    call: AttentionCall,
) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Sparse attention of an MLA-absorbed query over a quantised cache, in float64.

    The arguments are the operator's. Only dequantised keys and values are rounded to the query dtype; scores,
    softmax and the sum over values are float64, and the result is rounded once at the end.

    NaN and infinity follow the formula: a row that attends to a NaN, or to a score of +inf, is NaN; a row
    all of whose scores are -inf is 0/0, NaN, with the lse log(0), -inf; a score of -inf beside finite ones
    adds nothing (and NaN to columns whose value is infinite: 0 x inf). The lse is +inf with a score of +inf,
    and NaN with a score of NaN. A row that attends to nothing is exact zeros, its lse -inf.

    Returns:
        query's shape with the last dimension 512, in query's dtype (out itself where it is given); with
        return_softmax_lse also float32 of that shape without the last dimension.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument has a value or shape that is not allowed; the text names it.
    """
    attended = attend(call)
    with np.errstate(over="ignore"):
        rounded = attended.output.astype(call.query.dtype).reshape(call.output_shape)
    if call.out is not None:
        call.out[...] = rounded
        rounded = call.out
    if call.return_softmax_lse:
        return rounded, attended.lse.astype(np.float32).reshape(call.lse_shape)
    return rounded


def attend(call: AttentionCall, rows: Iterable[int] | None = None) -> Attended:
    """The float64 results of a call's query rows, by default of all of them, in the order given."""
    geometry = row_geometry(call)
    chosen = range(len(call.query)) if rows is None else list(rows)
    heads = call.spec.heads
    output = np.zeros((len(chosen), heads, NOPE_DIM))
    lse = np.full((len(chosen), heads), -np.inf)
    vmax = np.zeros(len(chosen))
    for place, row in enumerate(chosen):
        tokens = attended_tokens(call, geometry, row)
        if not len(tokens):
            continue
        key, value = _gather(call, geometry, row, tokens)
        output[place], lse[place] = _attention(call.query[row], key, value, call.scale)
        magnitude = np.abs(value)
        vmax[place] = magnitude.max(initial=0, where=np.isfinite(magnitude))
    return Attended(output, lse, vmax)


def attended_tokens(call: AttentionCall, geometry: RowGeometry, row: int) -> npt.NDArray[np.int64]:
    """Token numbers, in its own sequence, that a query row attends to; duplicates count each time."""
    block = call.spec.sparse_block_size
    ids = call.indices[row].astype(np.int64)
    ids = ids[ids >= 0]
    tokens: npt.NDArray[np.int64] = (ids[:, None] * block + np.arange(block)).reshape(-1)
    seen: npt.NDArray[np.bool_] = tokens < geometry.limit[row]
    return tokens[seen]


def _gather(
    call: AttentionCall, geometry: RowGeometry, row: int, tokens: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Key [n, 576] and value [n, 512] of some tokens, exact images of their rounding to the query dtype."""
    batch = geometry.batch[row]
    if call.block_table is not None:
        page_size = call.key.shape[1]
        packed = call.key[call.block_table[batch, tokens // page_size], tokens % page_size]
    elif call.spec.layout_kv == "BSND":
        packed = call.key[batch, tokens]
    else:
        packed = call.key[geometry.first_row[row] + tokens]
    spec, dtype = call.spec, call.query.dtype
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nope = dequantise(packed, spec.kv_dtype, spec.byte_order).astype(dtype).astype(np.float64)
        rope = rope_values(packed, dtype, spec.byte_order).astype(np.float64)
    return np.concatenate([nope, rope], axis=1), nope


def _attention(
    query: npt.NDArray[Any], key: npt.NDArray[np.float64], value: npt.NDArray[np.float64], scale: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """softmax(scale * query @ key^T) @ value, [heads, 512], and the log of the softmax's divisor, [heads]."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        scores = scale * (query.astype(np.float64) @ key.T)
        # An infinite largest score is not subtracted: inf - inf would lose what the formula says.
        largest = scores.max(axis=1, keepdims=True)
        shift = np.where(np.isinf(largest), 0, largest)
        weights = np.exp(scores - shift)
        divisor = weights.sum(axis=1, keepdims=True)
        output: npt.NDArray[np.float64] = (weights @ value) / divisor
        lse: npt.NDArray[np.float64] = np.log(divisor) + shift
    return output, lse[:, 0]
