"""The operator on compiled kernels over lengths and indices that hypothesis draws."""

from __future__ import annotations

import numpy as np
import pytest
from calls import LAYOUTS
from compiled import aligned, arguments_of, check, poisoned, run
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix.cases import find
from plain import Arguments, bits, plain_tokens, rows_of

from qsmla.ir.spec import KernelSpec

IDS = "sparse_indices"
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
KERNELS = [
    find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=mode, sparse_block_size=block)
    for layouts in (LAYOUTS[0], LAYOUTS[3])
    for mode in (0, 3)
    for block in (1, 4)
]
by_kernel = pytest.mark.parametrize(
    "spec", KERNELS, ids=lambda s: f"{s.layout_query}-{s.layout_kv}-{s.sparse_mode}-{s.sparse_block_size}"
)


@st.composite
def calls(draw: st.DrawFn, spec: KernelSpec) -> Arguments:
    """Up to four requests of up to four query rows and 40 tokens, and any ids at all."""
    batch = draw(st.integers(1, 4))
    query_counts = draw(st.lists(st.integers(0, 4), min_size=batch, max_size=batch))
    kv_counts = draw(st.lists(st.integers(0, 40), min_size=batch, max_size=batch))
    arguments = arguments_of(
        spec,
        query_counts=tuple(query_counts),
        kv_counts=tuple(kv_counts),
        selected=draw(st.integers(1, 12)),
        page_size=draw(st.sampled_from([16, 32, 48])),
        seed=draw(st.integers(0, 2**16)),
    )
    ids = arguments[IDS]
    block = spec.sparse_block_size
    any_id = (
        st.integers(0, 40 // block + 1)
        | st.integers(INT_MIN, INT_MAX)
        | st.sampled_from([-1, INT_MIN, INT_MAX])
    )
    drawn = draw(st.lists(any_id, min_size=ids.size, max_size=ids.size))
    ids[...] = np.array(drawn, np.int32).reshape(ids.shape)
    return poisoned(arguments)


@by_kernel
@settings(max_examples=40)
@given(data=st.data())
def test_against_the_reference(spec: KernelSpec, data: st.DataObject) -> None:
    """Everything that is not selected is NaN; a row with no tokens is zeros, any other one is finite."""
    arguments = data.draw(calls(spec))
    output, lse = check(arguments)
    attended = {row: plain_tokens(arguments, row, b, s) for row, b, s in rows_of(arguments)}
    for row in np.ndindex(output.shape[:-2]):
        if attended.get(row):
            assert np.isfinite(lse[row]).all()
            assert np.isfinite(output[row].astype(np.float32)).all()
        else:
            assert not bits(output[row]).any()
            assert np.isneginf(lse[row]).all()


@by_kernel
@settings(max_examples=15)
@given(data=st.data())
def test_only_the_valid_ids_and_their_order_count(spec: KernelSpec, data: st.DataObject) -> None:
    """The same bits with the valid ids in front and -1 behind them, and with twice as many columns."""
    arguments = data.draw(calls(spec))
    block = spec.sparse_block_size
    ids = arguments[IDS]
    compact = np.full((*ids.shape[:-1], 2 * ids.shape[-1]), -1, np.int32)
    for row, b, s in rows_of(arguments):
        tokens = plain_tokens(arguments, row, b, s)
        valid = [token // block for token in tokens if token % block == 0]
        compact[row][0, : len(valid)] = valid
    for a, b in zip(run(arguments), run(arguments | {IDS: compact}), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("spec", KERNELS[:2], ids=lambda s: f"{s.sparse_block_size}")
@settings(max_examples=15)
@given(data=st.data())
def test_padding_changes_nothing(spec: KernelSpec, data: st.DataObject) -> None:
    """A BSND call cut to each request's rows, one request at a time, gives the rows of the whole."""
    arguments = data.draw(calls(spec))
    output, lse = run(arguments)
    for b, count in enumerate(arguments["actual_seq_lengths_query"].tolist()):
        kv_len = int(arguments["actual_seq_lengths_kv"][b])
        alone = arguments | {
            "query": arguments["query"][b : b + 1, :count],
            IDS: arguments[IDS][b : b + 1, :count],
            "key": aligned(arguments["key"][b : b + 1, :kv_len]),
            "value": None,
            "actual_seq_lengths_query": None,
            "actual_seq_lengths_kv": None,
        }
        own, own_lse = run(alone)
        assert own.tobytes() == output[b : b + 1, :count].tobytes()
        assert own_lse.tobytes() == lse[b : b + 1, :count].tobytes()
