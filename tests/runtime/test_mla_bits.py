"""Bit-identical results of `quant_sparse_flash_mla`: any cores and workers, any company, any order of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix.mla_cases import mla_specs
from mla_calls import Arguments, check, counts_of, metadata_arguments, mla_arguments, poisoned, run
from plain import assert_same_bytes

import qsmla
from qsmla.ir.spec import MlaSpec
from qsmla.runtime.mla_checks import check_mla_call

CORES = (1, 2, 3, 8, 64)
QUERY = (2, 1, 1, 0, 3, 1, 2, 1, 1, 2, 1, 1, 1, 4, 0, 2, 1)
ORI = (700, 1, 0, 256, 1280, 257, 30, 900, 511, 512, 513, 64, 1100, 5, 333, 0, 777)
CMP = (90, 0, 0, 300, 900, 3, 257, 600, 256, 1, 70, 512, 11, 1300, 8, 5, 640)


def few_heads(**kind: Any) -> MlaSpec:
    """The kernel of the matrix with these parts and the fewest heads."""
    fitting = [spec for spec in mla_specs() if kind.items() <= spec.to_dict().items()]
    return min(fitting, key=lambda spec: spec.heads)


CALLS = {
    "dense-sparse-BSND-BSND": (few_heads(ori="dense", cmp="sparse", kv_cache="contiguous"), "BSND", "BSND"),
    "dense-sparse-TND-TND": (few_heads(ori="dense", cmp="sparse", kv_cache="contiguous"), "TND", "TND"),
    "any-TND-PA_BBND": (few_heads(kv_cache="paged"), "TND", "PA_BBND"),
}
by_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
Call = tuple[MlaSpec, str, str]


def batch_of_17(call: Call) -> Arguments:
    """Ragged lengths of up to ten key blocks, empty requests among them; what is not attended to is NaN."""
    spec, layout_q, layout_kv = call
    arguments = mla_arguments(
        layout_q,
        layout_kv,
        query_counts=QUERY,
        ori_counts=None if spec.ori == "none" else ORI,
        cmp_counts=None if spec.cmp == "none" else CMP,
        heads=spec.heads,
        ori_topk=900 if spec.ori == "sparse" else 0,
        cmp_topk=800 if spec.cmp == "sparse" else 0,
        ori_mask_mode=4,
        ori_win_left=900,
        ori_win_right=1,
        cmp_mask_mode=3,
        cmp_ratio=4,
        cmp_residual_kv=np.arange(17, dtype=np.int32) % 4,
        sinks=np.resize(np.array([0.5, -np.inf, -2.0], np.float32), spec.heads),
    )
    assert check_mla_call(**arguments).spec == spec
    return poisoned(arguments)


def rows_of_requests(arguments: Arguments, name: str, order: list[int]) -> Any:
    """Where the tokens of some requests stand in q, ori_kv or cmp_kv: an index of the first dimension."""
    sums = arguments.get(f"cu_seqlens_{name}")
    if sums is None:
        return order
    return np.concatenate([np.arange(sums[b], sums[b + 1]) for b in order]).astype(int)


def requests(arguments: Arguments, order: list[int]) -> Arguments:
    """A call with some of the requests, in this order."""
    chosen = dict(arguments)
    query_rows = rows_of_requests(arguments, "q", order)
    for name, value in arguments.items():
        if name.startswith("seqused") or name.endswith("block_table") or name == "cmp_residual_kv":
            chosen[name] = value[order]
        elif name.startswith("cu_seqlens"):
            chosen[name] = np.cumsum([0, *np.diff(value)[order]], dtype=np.int32)
        elif name == "q" or name.endswith("sparse_indices"):
            chosen[name] = value[query_rows]
        elif name in ("ori_kv", "cmp_kv") and arguments["layout_kv"] != "PA_BBND":
            cache = value[rows_of_requests(arguments, name, order)]
            chosen[name] = qsmla.aligned_empty(cache.shape, cache.dtype)
            chosen[name][...] = cache
    return chosen


def planned(arguments: Arguments, num_cores: int) -> Any:
    return qsmla.quant_sparse_flash_mla_metadata(**metadata_arguments(arguments), num_cores=num_cores)


@by_call
def test_any_number_of_cores_and_workers(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = batch_of_17(call)
    expected = check(arguments)
    assert np.isfinite(expected[0].astype(np.float32)).all()
    assert expected[0].any()
    split = 0
    for workers in ("1", "2"):
        monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
        assert_same_bytes(run(arguments), expected)
        for cores in CORES:
            words = planned(arguments, cores)
            split += len(qsmla.Partition.decode(words).split_rows)
            assert_same_bytes(run(arguments, metadata=words), expected)
    assert split > 20


@by_call
def test_a_request_alone_and_in_the_middle_of_a_batch(call: Call) -> None:
    arguments = batch_of_17(call)
    expected = run(arguments)
    for b in range(17):
        alone = requests(arguments, [b])
        assert counts_of(alone, "q") == [QUERY[b]]
        assert_same_bytes(run(alone), expected, rows_of_requests(arguments, "q", [b]))


@by_call
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_the_batch(call: Call, seed: int) -> None:
    arguments = batch_of_17(call)
    order = np.random.default_rng(seed).permutation(17).tolist()
    order = order[::-1] if seed == 0 else [*order, order[0]]
    expected = run(arguments)
    rows = rows_of_requests(arguments, "q", order)
    permuted = requests(arguments, order)
    for cores in (1, 3, 64):
        assert_same_bytes(run(permuted, metadata=planned(permuted, cores)), expected, rows)
