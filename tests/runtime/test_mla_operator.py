"""`quant_sparse_flash_mla` on compiled kernels: exact values, bits, metadata, memory and artifacts."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matrix.mla_cases import mla_specs
from mla_calls import (
    Arguments,
    Results,
    check,
    metadata_arguments,
    mla_arguments,
    random_codes,
    rows_of,
    run,
)

import qsmla
from qsmla.ir.codes import decode_table
from qsmla.ir.spec import MlaSpec
from qsmla.runtime.mla_checks import check_mla_call


def assert_same_bits(a: Results, b: Results) -> None:
    for left, right in zip(a, b, strict=True):
        unsigned = {2: np.uint16, 4: np.uint32}[left.itemsize]
        np.testing.assert_array_equal(left.view(unsigned), right.view(unsigned))


def long_call(**sizes: Any) -> Arguments:
    """Rows of up to 9 key blocks in two batches; the kernel is one of the matrix's."""
    defaults: dict[str, Any] = {
        "query_counts": (3, 2),
        "ori_counts": (900, 300),
        "cmp_counts": (1500, 40),
        "cmp_topk": 1300,
        "ori_mask_mode": 3,
        "sinks": np.array([0.5, -1.0], np.float32),
    }
    return mla_arguments(**defaults | sizes)


@pytest.mark.parametrize("code", [0x6F, 0xEF])
def test_an_infinite_score(code: int) -> None:
    """+inf makes the row NaN and its lse +inf; -inf beside finite scores adds nothing, where no value is."""
    arguments = mla_arguments(ori_counts=(5, 5), cmp_counts=(4, 4), query_counts=(1, 1))
    arguments["q"][..., 0] = 0x08
    arguments["ori_kv"][:, 2, 0, 0] = code
    check(arguments)
    check(arguments, sinks=None)


def test_bits_do_not_depend_on_the_cores() -> None:
    arguments = long_call()
    alone = check(arguments)
    lengths = metadata_arguments(arguments)
    split = 0
    for num_cores in (1, 2, 3, 7, 40, 132):
        words = qsmla.quant_sparse_flash_mla_metadata(**lengths, num_cores=num_cores)
        split += len(qsmla.Partition.decode(words).combines)
        assert_same_bits(run(arguments, metadata=words), alone)
    assert split > 5


@pytest.mark.parametrize("workers", ["1", "3"])
def test_bits_do_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    arguments = long_call()
    before = run(arguments)
    monkeypatch.setenv("QSMLA_NUM_WORKERS", workers)
    assert_same_bits(run(arguments), before)


def test_bits_do_not_depend_on_the_neighbours() -> None:
    arguments = long_call()
    together = run(arguments)
    for batch in (0, 1):
        single = {
            name: value[batch : batch + 1]
            if name.startswith("seqused") or name in ("q", "ori_kv", "cmp_kv", "cmp_sparse_indices")
            else value
            for name, value in arguments.items()
        }
        rows = int(single["seqused_q"][0])
        found = run(single)
        assert_same_bits(
            (found[0][:, :rows], found[1][:, :rows]),
            (together[0][batch : batch + 1, :rows], together[1][batch : batch + 1, :rows]),
        )


def test_bits_do_not_depend_on_the_layouts() -> None:
    """The same tokens in every kind of cache and query."""
    padded = long_call()
    expected = run(padded)
    ragged = long_call(layout_q="TND", layout_kv="TND")
    for (place, b, s), (_, other_b, other_s) in zip(rows_of(ragged), rows_of(padded), strict=True):
        assert (b, s) == (other_b, other_s)
        ragged["q"][place] = padded["q"][b, s]
        ragged["cmp_sparse_indices"][place] = padded["cmp_sparse_indices"][b, s]
    for name in ("ori_kv", "cmp_kv"):
        for b, (start, end) in enumerate(
            zip(ragged[f"cu_seqlens_{name}"][:-1], ragged[f"cu_seqlens_{name}"][1:], strict=True)
        ):
            ragged[name][start:end] = padded[name][b, : end - start]
    output, lse = run(ragged)
    for place, b, s in rows_of(ragged):
        assert_same_bits((output[place], lse[place]), (expected[0][b, s], expected[1][b, s]))


def test_metadata_of_another_call_is_refused() -> None:
    arguments = long_call()
    words = qsmla.quant_sparse_flash_mla_metadata(
        **metadata_arguments(arguments) | {"ori_mask_mode": 0}, num_cores=2
    )
    with pytest.raises(ValueError, match="metadata was planned for other lengths or attributes"):
        run(arguments, metadata=words)
    with pytest.raises(TypeError, match="metadata is dtype int64; allowed: int32"):
        run(arguments, metadata=words.astype(np.int64))
    words = qsmla.quant_sparse_flash_mla_metadata(**metadata_arguments(arguments), num_cores=2)
    words[16 + 4 + 2] += 1  # cursor 1, the block
    words[16 + 4 + 3] += 1  # its slot
    with pytest.raises(ValueError, match="metadata is damaged"):
        run(arguments, metadata=words)


def test_ids_that_occur_several_times_run_with_metadata_too() -> None:
    """The plan cannot know of them: the call is cut anew, and no id is lost."""
    arguments = mla_arguments(cmp_counts=(3, 2), cmp_topk=700)
    arguments["cmp_sparse_indices"][...] = np.arange(700) % 4
    expected = check(arguments)
    words = qsmla.quant_sparse_flash_mla_metadata(**metadata_arguments(arguments), num_cores=5)
    assert_same_bits(run(arguments, metadata=words), expected)


@pytest.mark.parametrize("layouts", [("BSND", "BSND"), ("TND", "TND"), ("BSND", "TND")], ids="-".join)
def test_no_batch_or_no_row(layouts: tuple[str, str]) -> None:
    arguments = mla_arguments(*layouts, query_counts=(0, 0), ori_counts=(3, 4), cmp_counts=(2, 2))
    output, lse = run(arguments)
    assert (output.shape, lse.shape) == (arguments["q"].shape, arguments["q"].shape[:-1])
    assert output.size == 0


def test_a_cache_without_tokens_beside_one_with() -> None:
    for counts in ({"ori_counts": (0, 0)}, {"cmp_counts": (0, 0)}):
        for layout_kv in ("BSND", "TND"):
            arguments = mla_arguments("TND", layout_kv, **counts)
            output, _ = check(arguments)
            assert output.any()


def test_out_of_any_strides_is_filled_and_returned() -> None:
    arguments = mla_arguments()
    expected = run(arguments)
    store = np.full((2, 3, 4, 1024), 7.0, ml_dtypes.bfloat16)
    out = store[:, :, ::2, ::2]
    output, lse = run(arguments, out=out)
    assert output is out
    assert_same_bits((np.ascontiguousarray(output), lse), expected)
    assert (store[:, :, 1::2] == 7).all()
    alone = qsmla.quant_sparse_flash_mla(**arguments)
    np.testing.assert_array_equal(alone, expected[0])


def test_arrays_in_any_memory_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = mla_arguments()
    expected = run(arguments)
    for name in ("q", "ori_kv", "cmp_kv", "cmp_sparse_indices"):
        array = arguments[name]
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
        wide[..., 1:-2] = array
        monkeypatch.setattr("qsmla.runtime.notices._told_of_copies", False)
        copied = pytest.warns(RuntimeWarning, match=f"{name} .* is copied")
        with copied if name.endswith("kv") else contextlib.nullcontext():
            assert_same_bits(run(arguments | {name: wide[..., 1:-2]}), expected)
    many = {"cmp_sparse_indices": arguments["cmp_sparse_indices"].astype(np.int64), "seqused_q": [3, 2]}
    assert_same_bits(run(arguments | many), expected)


def test_a_loaded_artifact_is_the_operator_for_its_kernel(tmp_path: Path) -> None:
    arguments = mla_arguments()
    path = tmp_path / "kernel.vmfb"
    qsmla.compile(check_mla_call(**arguments).spec, output=path)
    kernel = qsmla.load(path)
    assert kernel.spec == MlaSpec(ori="dense", cmp="sparse", heads=2)
    assert_same_bits(kernel(**arguments, return_softmax_lse=True), run(arguments))
    other = {name: value for name, value in arguments.items() if name != "cmp_sparse_indices"}
    with pytest.raises(ValueError, match="the call's cmp is 'dense'; allowed: 'sparse', the artifact's"):
        kernel(**other)


def test_a_target_that_cannot_run_here_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("target is 'tpu'")):
        run(mla_arguments(), target="tpu")


def test_the_kernels_of_these_tests_are_those_of_the_matrix() -> None:
    """So that they compile once."""
    for arguments in (mla_arguments(), long_call()):
        assert check_mla_call(**arguments).spec in mla_specs()


def test_random_codes_are_of_normal_values() -> None:
    values = decode_table("hifloat8")[random_codes(np.random.default_rng(0), 100, 100)]
    assert abs(float(values.std()) - 1) < 0.05
