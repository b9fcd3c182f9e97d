"""The operator on compiled kernels at sizes that overflow something if anything does; and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from calls import LAYOUTS
from compiled import QUERY_DTYPES, arguments_of, check, poisoned, run
from matrix.cases import find
from plain import Arguments

import qsmla
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.packing import unpack_kv

Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
PROCESSES = Path(__file__).parent / "processes"
GIB = 1 << 30
ONE_HEAD = [find(heads=1, sparse_block_size=block) for block in (1, 2, 4, 8)]
"""One kernel of each layout, in the order of LAYOUTS."""
by_layout = pytest.mark.parametrize("spec", ONE_HEAD, ids=["-".join(layouts) for layouts in LAYOUTS])


def packed_rows(spec: KernelSpec, count: int) -> npt.NDArray[np.uint8]:
    """Random cache rows, [count, 656]."""
    generator = np.random.default_rng(0)
    nope, rope = (generator.standard_normal((count, width), dtype=np.float32) for width in (512, 64))
    dtype = QUERY_DTYPES[spec.query_dtype]
    return qsmla.pack_kv(nope, rope.astype(dtype), spec.kv_dtype, spec.byte_order).view(np.uint8)


def values_of(spec: KernelSpec, rows: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """What attending to one of the rows gives, [count, 512] in the query dtype."""
    dtype = QUERY_DTYPES[spec.query_dtype]
    return unpack_kv(rows, spec.kv_dtype, dtype, spec.byte_order)[0].astype(dtype)


def call_of(spec: KernelSpec, query_rows: tuple[int, ...], key: npt.NDArray[np.uint8], ids: Any) -> Arguments:
    """A call with random queries; ids [rows] or [rows, K]."""
    ids = np.asarray(ids, np.int32)
    query = np.random.default_rng(1).standard_normal((*query_rows, spec.heads, 576), dtype=np.float32)
    fields = ("layout_query", "layout_kv", "kv_dtype", "byte_order", "sparse_block_size", "sparse_mode")
    return {
        "query": query.astype(QUERY_DTYPES[spec.query_dtype]),
        "key": key,
        "value": key,
        IDS: ids.reshape(*query_rows, 1, -1),
        "scale_value": 0.05,
        **{name: getattr(spec, name) for name in fields},
    }


def assert_rows(output: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """The same values; in slices, since NumPy keeps several copies of what it compares."""
    output = output.reshape(expected.shape)
    for start in range(0, len(output), 4096):
        rows = slice(start, start + 4096)
        np.testing.assert_array_equal(output[rows].astype(np.float32), expected[rows].astype(np.float32))


# A cache of more than 2 GiB, of which only the rows in use are ever touched.

ROWS = 3_300_000


def cache(spec: KernelSpec, rows: int) -> npt.NDArray[np.uint8]:
    """Uninitialised, for one request."""
    leading = {"BSND": (1, rows), "TND": (rows,), "PA_BSND": (rows // 16, 16)}[spec.layout_kv]
    return qsmla.aligned_empty((*leading, 1, 656), np.uint8)


@by_layout
@pytest.mark.parametrize("first", [ROWS - 896, (1 << 31) // 656 - 453], ids=["end", "across"])
def test_rows_behind_byte_2_31(spec: KernelSpec, first: int) -> None:
    """The bits are those of the same rows at the beginning of a small cache."""
    count, block = 896, spec.sparse_block_size
    first = first // 16 * 16
    rows = packed_rows(spec, count)
    small, large = cache(spec, count), cache(spec, ROWS)
    assert (first + count) * 656 > 1 << 31
    small.reshape(-1, 656)[...] = large.reshape(-1, 656)[first : first + count] = rows
    ids = np.random.default_rng(2).integers(0, count // block, (6, 300 // block))
    leading = (6,) if spec.layout_query == "TND" else (1, 6)
    near = call_of(spec, leading, small, ids) | {Q: [6], KV: [count]}
    if spec.paged:
        near[TABLE] = np.arange(count // 16, dtype=np.int32)[None]
        far = near | {"key": large, "value": large, TABLE: near[TABLE] + np.int32(first // 16)}
    else:
        far = call_of(spec, leading, large, ids + first // block) | {Q: [6], KV: [first + count]}
    for result, expected in zip(check(far), run(near), strict=True):
        assert result.tobytes() == expected.tobytes()


# Many rows, many requests, long sequences.


@pytest.mark.parametrize("spec", [ONE_HEAD[0], ONE_HEAD[3]], ids=["BSND", "TND-PA_BSND"])
def test_65_537_query_rows(spec: KernelSpec) -> None:
    """Each attends to one token, and gets that token's row back."""
    count, block = 65_537, spec.sparse_block_size
    tokens = 200 * block + 1  # of the last block there is one token
    rows = packed_rows(spec, tokens)
    leading = (count,) if spec.layout_query == "TND" else (1, count)
    if spec.paged:
        pages = -(-tokens // 16)
        key = np.full((pages, 16, 1, 656), 0xFF, np.uint8)
        key.reshape(-1, 656)[:tokens] = rows
    else:
        key = rows.reshape(*({"TND": (tokens,), "BSND": (1, tokens)}[spec.layout_kv]), 1, 656)
    # With blocks, the one-token block; without, any token. Every 1000th row selects nothing.
    ids = np.full(count, 200) if block > 1 else np.arange(count) % tokens
    ids[::1000] = tokens
    call = call_of(spec, leading, key, ids) | {Q: [count], KV: [tokens]}
    if spec.paged:
        call[TABLE] = np.arange(pages, dtype=np.int32)[None]
    output, lse = run(call)
    expected = values_of(spec, rows)[np.minimum(ids * block, tokens - 1)]
    expected[::1000] = 0
    assert_rows(output, expected)
    assert np.isneginf(lse.reshape(-1)[::1000]).all()
    assert np.isfinite(lse).sum() == count - 66


@pytest.mark.parametrize("spec", [ONE_HEAD[1], ONE_HEAD[2]], ids=["TND", "BSND-PA_BSND"])
def test_65_536_requests(spec: KernelSpec) -> None:
    """Each has one query row and one token, or none at all."""
    batch = 65_536
    own = np.arange(batch) % 5 > 0
    rows = packed_rows(spec, 640)
    which = (np.arange(batch) * 7) % 640
    leading = (batch,) if spec.layout_query == "TND" else (batch, 1)
    if spec.paged:
        key = np.full((640, 16, 1, 656), 0xFF, np.uint8)
        key[:, 0, 0] = rows
    elif spec.layout_kv == "TND":
        key = rows[which[own], None]
    else:
        key = np.full((batch, 1, 1, 656), 0xFF, np.uint8)
        key[own, 0, 0] = rows[which[own]]
    call = call_of(spec, leading, key, np.zeros(batch)) | {
        Q: np.arange(1, batch + 1, dtype=np.int32) if spec.layout_query == "TND" else None,
        KV: np.cumsum(own, dtype=np.int32) if spec.layout_kv == "TND" else own.astype(np.int32),
    }
    if spec.paged:
        call[TABLE] = which[:, None].astype(np.int32)
        call[TABLE][~own] = 2_147_480_000
    output, lse = run(call)
    expected = values_of(spec, rows)[which]
    expected[~own] = 0
    assert_rows(output, expected)
    np.testing.assert_array_equal(np.isneginf(lse.reshape(-1)), ~own)


@pytest.mark.parametrize(("layouts", "mode"), [(LAYOUTS[0], 0), (LAYOUTS[1], 3), (LAYOUTS[3], 3)], ids=str)
def test_65_600_tokens(layouts: tuple[str, str], mode: int) -> None:
    spec = find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=mode, sparse_block_size=1)
    arguments = arguments_of(
        spec, query_counts=(1, 4), kv_counts=(300, 65_600), selected=290, page_size=64, zero_mean=True
    )
    ids = arguments[IDS]
    ids[..., :6] = [65_599, 65_598, 65_597, 65_536, 65_535, 32_768]
    check(poisoned(arguments))


@pytest.mark.parametrize("block", [1, 128])
def test_65_600_ids(block: int) -> None:
    """As many blocks as there are, some twice: more than 256 key blocks a row."""
    spec = find(heads=1, sparse_block_size=block)
    selected = 65_600 // block
    arguments = arguments_of(
        spec, query_counts=(1, 1), kv_counts=(20_000, 65_600), selected=selected, zero_mean=True
    )
    arguments[IDS][...] = np.arange(selected)
    arguments[IDS].reshape(2, -1)[:, ::7] = 3
    check(arguments)


# Memory.


def process(script: str) -> str:
    finished = subprocess.run(
        [sys.executable, PROCESSES / script], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")


@linux
def test_memory_of_4096_rows_of_128_heads_and_2048_ids() -> None:
    """Under 1 GiB beside inputs and output, and no more where four times as many rows are computed.

    So the peak does not depend on how many of the 4,096 rows have work to do: what is proportional to rows
    is counted whole, and the rest is taken a chunk at a time. See `processes/memory.py`.
    """
    peaks = json.loads(process("memory.py"))
    assert max(peaks.values()) < GIB
    assert peaks["128 rows"] < peaks["32 rows"] + (64 << 20)


@linux
def test_many_calls_leave_nothing_behind() -> None:
    assert int(process("many_calls.py")) < 16 << 20
