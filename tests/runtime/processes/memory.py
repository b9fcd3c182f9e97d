"""Peak memory of full-size calls beside their inputs and outputs, in bytes, as JSON.

4,096 rows of 128 heads and 2,048 ids. All arrays have the full size, but only some rows select tokens: a row
without tokens takes part in everything that is proportional to the rows, and the others are done a chunk at a
time. If four times as many chunks do not raise the peak, 128 times as many do not either.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import Arguments, arguments_of, find, memory

import qsmla

ROWS, HEADS, SELECTED, TOKENS = 4096, 128, 2048, 4096


def filled(shape: tuple[int, ...], pattern: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """An array of real memory: no page is left to the kernel's shared page of zeros."""
    array = qsmla.aligned_empty(shape, pattern.dtype)
    array.reshape(-1, pattern.size)[...] = pattern.reshape(-1)
    return array


def peak(arguments: Arguments, out: npt.NDArray[np.generic], **more: object) -> int:
    """What a call takes at most beside what is there before it."""
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    qsmla.kv_quant_sparse_flash_attention(**arguments, out=out, **more)
    return memory("VmHWM") - before


small = arguments_of(
    find(heads=HEADS, sparse_block_size=1), query_counts=(1,), kv_counts=(TOKENS,), selected=SELECTED
)
expected = qsmla.kv_quant_sparse_flash_attention(**small)
query = filled((1, ROWS, HEADS, 576), small["query"])
out = filled((1, ROWS, HEADS, 512), expected)
ids = filled((1, ROWS, 1, SELECTED), np.full(SELECTED, -1, np.int32))
call = small | {"query": query, "sparse_indices": ids, "actual_seq_lengths_query": None}
inputs = query.nbytes + out.nbytes + ids.nbytes
assert inputs > 1 << 30

peaks = {}
for count in (32, 128):
    chosen = np.arange(0, ROWS, ROWS // count) + 5
    ids[0, chosen] = small["sparse_indices"][0, 0]
    # An invalid id in front makes the call order a copy of all ids.
    ids[0, chosen[0], 0, 0] = -1
    out[...] = 7
    peaks[f"{count} rows"] = peak(call, out)
    for row in chosen[1:]:
        assert out[0, row].tobytes() == expected.tobytes()
    assert not out[0, 0].view(np.uint16).any()
# Most rows split between cores, and so most partial results that wait for the second pass.
plan = qsmla.plan(**call, num_cores=100)
assert len(qsmla.Partition.decode(plan).split_rows) > 50
peaks["100 cores"] = peak(call, out, metadata=plan)
assert out[0, chosen[-1]].tobytes() == expected.tobytes()
json.dump(peaks, sys.stdout)
