"""Properties 4 and 6 of the partition: every kind of batch has one, and no bit of a result depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import compiled
import mla_calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix.cases import find
from numpy.typing import NDArray
from plain import Arguments

import qsmla
from qsmla.ir.spec import MlaSpec
from qsmla.runtime.metadata import mla_fingerprint
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths

from .plain_planner import plain_metadata

INT32_MAX = 2**31 - 1
CORES = st.integers(1, 132)
KEYS = st.integers(0, 2000) | st.integers(0, INT32_MAX)

# Property 4: special batches.

Lengths = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Query rows, original keys and compressed keys of each batch."""


def lengths_of(*parts: Any) -> Lengths:
    query, ori, cmp = (np.asarray(part, np.int32) for part in parts)
    return query, ori, cmp


@st.composite
def one_row(draw: st.DrawFn) -> Lengths:
    """Alone, or with batches without rows around it."""
    before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    batches = before + 1 + behind
    keys = st.lists(KEYS, min_size=batches, max_size=batches)
    return lengths_of([*[0] * before, 1, *[0] * behind], draw(keys), draw(keys))


@st.composite
def few_blocks(draw: st.DrawFn) -> Lengths:
    """At most eight blocks."""
    batches = draw(st.integers(1, 4))
    query = draw(st.lists(st.integers(0, 2), min_size=batches, max_size=batches))
    return lengths_of(
        query, draw(st.lists(st.integers(0, 256), min_size=batches, max_size=batches)), [0] * batches
    )


@st.composite
def one_giant(draw: st.DrawFn) -> Lengths:
    """Among rows without keys."""
    batches = draw(st.integers(1, 300))
    ori = np.zeros(batches, np.int32)
    ori[draw(st.integers(0, batches - 1))] = draw(st.integers(1, INT32_MAX))
    return lengths_of(np.full(batches, draw(st.integers(1, 2))), ori, np.zeros(batches))


@st.composite
def no_keys(draw: st.DrawFn) -> Lengths:
    query = draw(st.lists(st.integers(0, 5), max_size=200))
    return lengths_of(query, np.zeros(len(query)), np.zeros(len(query)))


@st.composite
def many_batches(draw: st.DrawFn) -> Lengths:
    """65,536 of them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    most, longest = draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, 300, 131072]))
    return lengths_of(
        generator.integers(0, most + 1, 65_536),
        generator.integers(0, longest + 1, 65_536),
        generator.integers(0, longest // 4 + 1, 65_536),
    )


@st.composite
def many_rows(draw: st.DrawFn) -> Lengths:
    """1,000,000 of them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    batches = draw(st.sampled_from([1, 2, 40, 4096]))
    query = np.bincount(generator.integers(0, batches, 1_000_000), minlength=batches)
    longest = draw(st.sampled_from([1, 5000, INT32_MAX]))
    return lengths_of(query, generator.integers(0, longest, batches), generator.integers(0, 3, batches))


@st.composite
def heavy(draw: st.DrawFn) -> Lengths:
    """More than 2^31 blocks."""
    batches = draw(st.integers(1, 60))
    query = draw(st.lists(st.integers(5, 9), min_size=batches, max_size=batches))
    longest = [INT32_MAX] * batches
    rows = -(-(2**31) // (2 * 2**23)) // batches + 1
    return lengths_of(np.array(query) + rows, longest, longest)


def special_batches(kind: Any, examples: int) -> Any:
    return pytest.param(kind(), examples, id=kind.__name__)


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        pytest.param(st.just(lengths_of([], [], [])), 20, id="no_batch"),
        special_batches(one_row, 60),
        special_batches(few_blocks, 60),
        special_batches(one_giant, 30),
        special_batches(no_keys, 30),
        special_batches(many_batches, 6),
        special_batches(many_rows, 4),
        special_batches(heavy, 20),
    ],
)
def test_every_kind_of_batch_has_a_best_partition(kind: st.SearchStrategy[Lengths], examples: int) -> None:
    @settings(max_examples=examples)
    @given(kind, CORES)
    def check(lengths: Lengths, num_cores: int) -> None:
        check_partition(lengths, num_cores)

    check()


def check_partition(lengths: Lengths, num_cores: int) -> None:
    """Each row's blocks are done once, in order, with the smallest largest load, as the plain loops do it."""
    query, ori, cmp = lengths
    arguments = {"seqused_q": query, "seqused_ori_kv": ori, "seqused_cmp_kv": cmp}
    words = qsmla.quant_sparse_flash_mla_metadata(64, **arguments, num_cores=num_cores)
    partition = qsmla.Partition.decode(words)
    assert partition.encode().tobytes() == words.tobytes()
    blocks = (-(-ori.astype(np.int64) // 256) - (-cmp.astype(np.int64) // 256)).repeat(query)
    total = int(blocks.sum())
    assert partition.row_overhead == 0
    assert partition.total_load == total
    assert partition.largest_load == -(-total // num_cores)
    pieces = partition.pieces(blocks, query)
    assert (np.diff(pieces.core) >= 0).all()
    if len(blocks):
        is_first = np.diff(pieces.row, prepend=-1) > 0
        begins, follows = np.flatnonzero(is_first), np.flatnonzero(~is_first)
        np.testing.assert_array_equal(pieces.row[begins], np.arange(len(blocks)))
        np.testing.assert_array_equal(np.add.reduceat(pieces.blocks, begins), blocks)
        ends = pieces.first_block + pieces.blocks
        assert (pieces.first_block[begins] == 0).all()
        assert (pieces.first_block[follows] == ends[follows - 1]).all()
        assert (pieces.blocks[follows] > 0).all()
    assert pieces.loads.max() == partition.largest_load
    if len(blocks) < 2000:
        checked = MlaAttributes(num_heads_q=64)
        mark = mla_fingerprint(checked, MlaLengths.resolve(checked, **arguments))
        assert words.view(np.uint32).tolist() == plain_metadata(arguments, num_cores, mark)


# Property 6: results.


@pytest.fixture(autouse=True)
def _one_worker() -> Iterator[None]:
    """A call without metadata is then not cut at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QSMLA_NUM_WORKERS", "1")
        yield


def batches(draw: st.DrawFn, most: int, at_least: int = 0, count: int | None = None) -> tuple[int, ...]:
    """Lengths of up to three batches."""
    size = draw(st.integers(1, 3)) if count is None else count
    return tuple(draw(st.lists(st.integers(at_least, most), min_size=size, max_size=size)))


@st.composite
def kv_calls(draw: st.DrawFn) -> Arguments:
    query = batches(draw, 3)
    return compiled.arguments_of(
        find(heads=1, sparse_block_size=1),
        query_counts=query,
        kv_counts=batches(draw, 1100, count=len(query)),
        selected=draw(st.integers(1, 1100)),
        seed=draw(st.integers(0, 2**16)),
    )


@st.composite
def mla_arguments(draw: st.DrawFn) -> Arguments:
    query = batches(draw, 3)
    ratio = draw(st.sampled_from([1, 4]))
    arguments = mla_calls.mla_arguments(
        draw(st.sampled_from(["BSND", "TND"])),
        draw(st.sampled_from(["BSND", "TND"])),
        query_counts=query,
        ori_counts=batches(draw, 900, count=len(query)),
        cmp_counts=batches(draw, 900, count=len(query)),
        cmp_topk=draw(st.integers(1, 900)),
        ori_mask_mode=draw(st.sampled_from([0, 3, 4])),
        ori_win_left=draw(st.sampled_from([-1, 0, 300])),
        ori_win_right=draw(st.sampled_from([-1, 0, 300])),
        cmp_mask_mode=draw(st.sampled_from([0, 3])),
        cmp_ratio=ratio,
        cmp_residual_kv=np.array(batches(draw, ratio - 1, count=len(query)), np.int32),
        seed=draw(st.integers(0, 2**16)),
    )
    assert check_mla_call(**arguments).spec == MlaSpec(ori="dense", cmp="sparse", heads=2)
    return arguments


def as_bytes(results: Any) -> list[bytes]:
    return [array.tobytes() for array in results]


@settings(max_examples=30)
@given(kv_calls(), CORES)
def test_no_bit_depends_on_the_partition(arguments: Arguments, num_cores: int) -> None:
    words = qsmla.plan(**arguments, num_cores=num_cores)
    assert as_bytes(compiled.run(arguments, metadata=words)) == as_bytes(compiled.run(arguments))


@settings(max_examples=30)
@given(mla_arguments(), CORES)
def test_no_bit_of_mla_depends_on_the_partition(arguments: Arguments, num_cores: int) -> None:
    lengths = mla_calls.metadata_arguments(arguments)
    words = qsmla.quant_sparse_flash_mla_metadata(**lengths, num_cores=num_cores)
    assert as_bytes(mla_calls.run(arguments, metadata=words)) == as_bytes(mla_calls.run(arguments))
