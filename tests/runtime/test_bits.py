"""Bit-identical results: for any number of cores and workers, any company in the batch, any order of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import arguments_of, check, poisoned, run
from matrix.cases import find
from plain import Arguments, assert_same_bytes, counts

import qsmla
from qsmla.ir.schedule import KEY_BLOCK
from qsmla.ir.spec import KernelSpec

Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
CORES = (1, 2, 3, 8, 64)
KERNELS = [
    find(heads=heads, sparse_block_size=block)
    for heads, block in [(1, 1), (1, 32), (16, 1), (16, 2), (16, 4), (16, 8), (128, 1), (128, 8)]
]
by_kernel = pytest.mark.parametrize(
    "spec",
    KERNELS,
    ids=lambda s: f"{s.layout_query}-{s.layout_kv}-{s.query_dtype}-{s.kv_dtype}-{s.heads}",
)


def batch_of_17(spec: KernelSpec) -> Arguments:
    """Ragged lengths from 0 to five key blocks; empty requests and invalid ids among them."""
    kv_counts = (700, 1, 0, 256, 1280, 257, 30, 900, 511, 512, 513, 64, 1100, 5, 333, 0, 777)
    query_counts = (2, 1, 1, 0, 3, 1, 2, 1, 1, 2, 1, 1, 1, 4, 0, 2, 1)
    keys = 1280 if spec.heads < 100 else 600
    return poisoned(
        arguments_of(
            spec, query_counts=query_counts, kv_counts=kv_counts, selected=keys // spec.sparse_block_size
        )
    )


def rows_of_requests(arguments: Arguments, which: str, order: list[int]) -> Any:
    """Where the tokens of some requests stand: an index of the first dimension."""
    if arguments[f"layout_{which}"] != "TND":
        return order
    ends = np.concatenate([[0], arguments[f"actual_seq_lengths_{which}"]])
    return np.concatenate([np.arange(ends[b], ends[b + 1]) for b in order]).astype(int)


def requests(arguments: Arguments, order: list[int]) -> Arguments:
    """A call with some of the requests, in this order."""
    chosen = dict(arguments)
    for which in ("query", "kv"):
        lengths = np.array(counts(arguments, which), np.int32)[order]
        ragged = arguments[f"layout_{which}"] == "TND"
        chosen[f"actual_seq_lengths_{which}"] = np.cumsum(lengths, dtype=np.int32) if ragged else lengths
    for name in ("query", IDS):
        chosen[name] = arguments[name][rows_of_requests(arguments, "query", order)]
    if TABLE in arguments:
        chosen[TABLE] = arguments[TABLE][order]
    else:
        key = arguments["key"][rows_of_requests(arguments, "kv", order)]
        chosen["key"] = qsmla.aligned_empty(key.shape, key.dtype)
        chosen["key"][...] = key
    return chosen | {"value": None}


@by_kernel
def test_any_number_of_cores_and_workers(spec: KernelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = batch_of_17(spec)
    expected = check(arguments)
    assert np.isfinite(expected[0].astype(np.float32)).all()
    split = 0
    for workers in (1, 2, 5):
        monkeypatch.setenv("QSMLA_NUM_WORKERS", str(workers))
        assert_same_bytes(run(arguments), expected)
        for cores in CORES:
            metadata = qsmla.plan(**arguments, num_cores=cores)
            split += len(qsmla.Partition.decode(metadata).split_rows)
            assert_same_bytes(run(arguments, metadata=metadata), expected)
    assert split > 20


@by_kernel
def test_a_request_alone_and_in_the_middle_of_a_batch(spec: KernelSpec) -> None:
    arguments = batch_of_17(spec)
    expected = run(arguments)
    for b in range(17):
        assert_same_bytes(run(requests(arguments, [b])), expected, rows_of_requests(arguments, "query", [b]))


@by_kernel
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_the_batch(spec: KernelSpec, seed: int) -> None:
    arguments = batch_of_17(spec)
    order = np.random.default_rng(seed).permutation(17).tolist()
    order = order[::-1] if seed == 0 else [*order, order[0]]
    expected = run(arguments)
    rows = rows_of_requests(arguments, "query", order)
    for cores in (1, 3, 64):
        permuted = requests(arguments, order)
        metadata = qsmla.plan(**permuted, num_cores=cores)
        assert_same_bytes(run(permuted, metadata=metadata), expected, rows)


@by_kernel
def test_company_of_invalid_ids_changes_nothing(spec: KernelSpec) -> None:
    """Ids behind and between the valid ones that are skipped, as many as there may be."""
    arguments = batch_of_17(spec)
    expected = run(arguments)
    ids = arguments[IDS]
    wider = np.full((*ids.shape[:-1], 2 * ids.shape[-1] + 300), -1, np.int32)
    wider[..., : ids.shape[-1]] = ids
    assert_same_bytes(run(arguments | {IDS: wider}), expected)
    wider[...] = 2**31 - 1
    wider[..., 1 : 2 * ids.shape[-1] : 2] = ids
    assert_same_bytes(run(arguments | {IDS: wider}), expected)


@pytest.mark.parametrize(("heads", "block"), [(128, 1), (128, 2), (16, 2)])
def test_rows_longer_than_a_chunk(heads: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """8,192 keys a row: 32 key blocks, which no chunk holds at 128 heads."""
    spec = find(heads=heads, sparse_block_size=block)
    arguments = arguments_of(
        spec, query_counts=(1, 1, 1), kv_counts=(8192, 300, 9000), selected=8192 // block, zero_mean=True
    )
    expected = check(arguments)
    for workers in (1, 2):
        monkeypatch.setenv("QSMLA_NUM_WORKERS", str(workers))
        for cores in CORES:
            metadata = qsmla.plan(**arguments, num_cores=cores)
            if cores > 3:
                assert qsmla.Partition.decode(metadata).slots >= 8192 // KEY_BLOCK
            assert_same_bytes(run(arguments, metadata=metadata), expected)
    for b in range(3):
        alone = run(requests(arguments, [b]))
        assert_same_bytes(alone, expected, rows_of_requests(arguments, "query", [b]))


def test_the_same_call_again_and_again() -> None:
    arguments = batch_of_17(KERNELS[2])
    expected = run(arguments)
    for _ in range(20):
        assert_same_bytes(run(arguments), expected)


# Metadata: a plan for this call, or none.

RAGGED = find(heads=16, sparse_block_size=8)


def small_call(**sizes: Any) -> Arguments:
    return arguments_of(RAGGED, kv_counts=(600, 900), selected=100, **sizes)


def other_lengths(arguments: Arguments) -> Arguments:
    return arguments | {KV: arguments[KV] - 1}


def other_query_lengths(arguments: Arguments) -> Arguments:
    return arguments | {Q: arguments[Q] - np.array([1, 0], np.int32)}


def another_number_of_ids(arguments: Arguments) -> Arguments:
    ids = arguments[IDS].copy()
    ids[1] = -1
    return arguments | {IDS: ids}


def fewer_rows(arguments: Arguments) -> Arguments:
    return arguments | {"query": arguments["query"][:5], IDS: arguments[IDS][:5], Q: arguments[Q] - 1}


def another_order(arguments: Arguments) -> Arguments:
    return requests(arguments, [1, 0])


@pytest.mark.parametrize(
    "change",
    [other_lengths, other_query_lengths, another_number_of_ids, fewer_rows, another_order],
    ids=lambda change: change.__name__,
)
def test_a_stale_plan_is_refused(change: Any) -> None:
    arguments = small_call()
    metadata = qsmla.plan(**arguments, num_cores=3)
    run(arguments, metadata=metadata)
    changed = change(arguments)
    with pytest.raises(ValueError, match=r"^metadata was planned for other lengths or attributes"):
        run(changed, metadata=metadata)
    run(changed, metadata=qsmla.plan(**changed, num_cores=3))


def test_a_plan_serves_other_values_of_the_same_lengths() -> None:
    """Other queries, another cache, and other ids as long as they are as many."""
    a, b = small_call(), small_call(seed=1)
    for arguments in (a, b):
        arguments[IDS][...] = np.arange(100) % 75
    b[IDS][...] = 74 - b[IDS]
    metadata = qsmla.plan(**a, num_cores=3)
    assert_same_bytes(run(b, metadata=metadata), run(b))


def test_a_plan_of_another_operator_is_refused() -> None:
    foreign = qsmla.quant_sparse_flash_mla_metadata(
        16, batch_size=2, max_seqlen_q=3, max_seqlen_ori_kv=900, has_cmp_kv=False
    )
    with pytest.raises(ValueError, match=r"^metadata"):
        run(small_call(), metadata=foreign)


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (np.zeros(1024, np.int32), ValueError),
        (np.zeros(1024, np.int64), TypeError),
        (np.zeros(1023, np.int32), ValueError),
        (np.zeros((2, 512), np.int32), ValueError),
        ([0] * 1024, TypeError),
        ("plan", TypeError),
    ],
    ids=["zeros", "int64", "short", "matrix", "list", "text"],
)
def test_what_is_no_plan_is_refused(metadata: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^metadata"):
        run(small_call(), metadata=metadata)


def test_a_damaged_plan_is_refused_or_does_no_harm() -> None:
    """Every word of a plan, changed in several ways: the call is refused, or its bytes are the same."""
    arguments = small_call()
    out = np.zeros((*arguments["query"].shape[:-1], 512), arguments["query"].dtype)
    expected = run(arguments)
    metadata = qsmla.plan(**arguments, num_cores=3)
    partition = qsmla.Partition.decode(metadata)
    used = 16 + 4 * len(partition.cursors) + 3 * len(partition.combines)
    assert partition.split_rows
    texts = []
    for word in range(used):
        for change in (1, -1, 5, 2**30):
            damaged = metadata.copy()
            damaged[word] += change
            out[...] = 7
            try:
                result = run(arguments, metadata=damaged, out=out)
            except ValueError as error:
                texts.append(str(error))
                assert (out.astype(np.float32) == 7).all()
            else:
                assert_same_bytes(result, expected)
    assert len(texts) > used
    assert all(text.startswith("metadata") for text in texts)
