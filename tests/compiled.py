"""Calls of the operator on compiled kernels, for tests to make and to hold against the reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from calls import legal_arguments
from plain import Arguments, poison
from tolerance import assert_close

import qsmla
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.checks import check_call
from qsmla.runtime.packing import ROW_LAYOUTS
from qsmla.runtime.reference import attend

QUERY_DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16)}
NAN_CODES = {"int8": 0x7F, "float8_e4m3": 0xFF, "hifloat8": 0x80}
"""int8 has no NaN: its largest code."""
BEHIND_THE_TABLE = 2_147_480_000
"""No page number, and one whose rows overflow int32."""


def arguments_of(spec: KernelSpec, *, zero_mean: bool = False, **sizes: Any) -> Arguments:
    """Legal arguments for a kernel; `sizes` are those of `legal_arguments`.

    The values of a column have one sign, unless `zero_mean`: where two to six bfloat16 values of about
    `vmax` cancel, rounding their weights to bfloat16, as the specification has it, can cost more than the
    specification's tolerance (one element of 100,000 with two keys).
    """
    fields = spec.to_dict()
    layouts = (fields.pop("layout_query"), fields.pop("layout_kv"))
    del fields["operator"]
    dtype = QUERY_DTYPES[spec.query_dtype]
    sizes.setdefault("page_size", max(16, spec.sparse_block_size))
    arguments = legal_arguments(*layouts, **fields | {"query_dtype": dtype} | sizes)
    if not zero_mean:
        nope, rope = qsmla.unpack_kv(arguments["key"], spec.kv_dtype, dtype, spec.byte_order)
        signs = np.where(np.arange(512) % 3 == 0, -1, 1)
        key = qsmla.pack_kv(np.abs(nope) * signs, rope, spec.kv_dtype, spec.byte_order)
        arguments |= {"key": key, "value": key}
    return arguments


def run(
    arguments: Arguments, target: str = "llvm-cpu", **more: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Output and lse of the operator."""
    output, lse = qsmla.kv_quant_sparse_flash_attention(
        **arguments, return_softmax_lse=True, target=target, **more
    )
    return output, lse


def check(
    arguments: Arguments, target: str = "llvm-cpu", **more: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Run a call and assert that the result is within the specification's tolerance of the reference."""
    output, lse = run(arguments, target, **more)
    query = arguments["query"]
    assert (output.dtype, output.shape) == (query.dtype, (*query.shape[:-1], 512))
    assert (lse.dtype, lse.shape) == (np.float32, query.shape[:-1])
    without_out = {name: value for name, value in arguments.items() if name != "out"}
    assert_close(output, attend(check_call(**without_out)), lse)
    return output, lse


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy that CPU devices read in place."""
    copy = qsmla.aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def poisoned(arguments: Arguments) -> Arguments:
    """The same call, where no byte may be read into a result that is not selected.

    Cache rows that no query row attends to become NaN codes, NaN rope values, and scales that are NaN in one
    row and infinite in the next; so do the block table's entries behind each last used page.
    """
    key = aligned(poison(arguments)["key"])
    rows = key.view(np.uint8)
    layout = ROW_LAYOUTS[arguments["byte_order"]]
    unused = (rows == 0xFF).all(axis=-1)
    filling = np.full((np.count_nonzero(unused), 656), 0xFF, np.uint8)
    filling[:, layout.codes] = NAN_CODES[arguments["kv_dtype"]]
    filling[::2, layout.scales] = np.full(4, np.inf, np.float32).view(np.uint8)
    rows[unused] = filling
    changes: Arguments = {"key": key, "value": key}
    if "block_table" in arguments:
        table = arguments["block_table"].copy()
        pages = -(-np.asarray(arguments["actual_seq_lengths_kv"]) // key.shape[1])
        table[np.arange(table.shape[1]) >= pages[:, None]] = BEHIND_THE_TABLE
        changes["block_table"] = table
    return arguments | changes
