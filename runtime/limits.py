"""What a device cannot hold, found before anything runs there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qsmla.compiler.targets import Target
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.attributes import refuse
from qsmla.runtime.checks import AttentionCall


def check_buffer(owner: str, size: int, target: Target) -> None:
    """Refuse an array of `size` bytes if it is larger than a buffer on the target's devices may be.

    Raises:
        ValueError: it is; the text names the array and the limit.
    """
    limit = target.largest_buffer
    if limit is not None and size > limit:
        refuse(f"{owner} size in bytes", size, f"at most {limit}, the largest buffer on {target.label}")


def check_buffers(call: AttentionCall, blocks: npt.NDArray[np.int64], target: Target) -> None:
    """Refuse a call whose arrays are too large for the target's devices.

    Args:
        call: the call.
        blocks: [rows]; key blocks of each row.
        target: what is to run it.

    Raises:
        ValueError: an array is, or the partial results of a row are; the text names it and the limit.
    """
    if target.largest_buffer is None:
        return
    check_buffer("key's", call.key.size, target)
    check_buffer("query's", call.query.size * call.query.itemsize, target)
    check_buffer("sparse_indices'", call.indices.nbytes, target)
    if call.block_table is not None:
        check_buffer("block_table's", call.block_table.nbytes, target)
    longest = int(blocks.max(initial=0))
    owner = f"sparse_indices selects {longest} key blocks in a row, whose partial results'"
    check_buffer(owner, longest * call.spec.heads * NOPE_DIM * 4, target)
