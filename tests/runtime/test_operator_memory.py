"""The operator on compiled kernels: arrays in any memory, out, value, lengths, artifacts from files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from calls import LAYOUTS
from compiled import aligned, arguments_of, run
from matrix.cases import find
from plain import bits

import qsmla
from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.spec import KernelSpec

Q, KV, TABLE, IDS = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table", "sparse_indices"
BSND, RAGGED_PAGED = (
    find(layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=3, sparse_block_size=1)
    for layouts in (LAYOUTS[0], LAYOUTS[3])
)
by_kernel = pytest.mark.parametrize(
    "spec", [BSND, RAGGED_PAGED], ids=lambda spec: f"{spec.layout_query}-{spec.layout_kv}"
)


# Every array in every arrangement.


def doubled(array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Every second element along an axis of an array twice as large."""
    larger = np.repeat(array, 2, axis=axis)
    view = np.moveaxis(np.moveaxis(larger, axis, 0)[::2], 0, axis)
    np.moveaxis(np.moveaxis(larger, axis, 0)[1::2], 0, axis)[...] = 0
    return view


def shifted(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array one byte off any alignment."""
    memory = np.zeros(array.nbytes + 65, np.uint8)
    start = -memory.ctypes.data % 64 + 1
    view = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


ARRANGEMENTS = {
    "strided first": lambda array: doubled(array, 0),
    "strided last": lambda array: doubled(array, array.ndim - 1),
    "reversed": lambda array: array[::-1].copy()[::-1],
    "fortran": np.asfortranarray,
    "one byte off": shifted,
    "read-only": lambda array: read_only(aligned(array)),
    "read-only and one byte off": lambda array: read_only(shifted(array)),
    "a subclass": lambda array: array.view(type("Tensor", (np.ndarray,), {})),
}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (RAGGED_PAGED, TABLE),
        *((spec, name) for spec in (BSND, RAGGED_PAGED) for name in ("query", "key", IDS, Q, KV)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.layout_kv,
)
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_an_array_in_any_memory(spec: KernelSpec, name: str, arrangement: str) -> None:
    arguments = arguments_of(spec, kv_counts=(100, 90), selected=40) | {"value": None}
    expected, expected_lse = run(arguments)
    changed = ARRANGEMENTS[arrangement](arguments[name])
    before = changed.tobytes()
    assert before == arguments[name].tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name == "key" and not (changed.flags.c_contiguous and changed.ctypes.data % 64 == 0):
            warnings.filterwarnings("ignore", "key .* is copied at every call", RuntimeWarning)
        output, lse = run(arguments | {name: changed})
    np.testing.assert_array_equal(bits(output), bits(expected))
    np.testing.assert_array_equal(lse, expected_lse)
    assert changed.tobytes() == before


def test_a_cache_in_a_read_only_file(tmp_path: Path) -> None:
    arguments = arguments_of(RAGGED_PAGED)
    arguments["key"].tofile(tmp_path / "cache")
    mapped = np.memmap(tmp_path / "cache", arguments["key"].dtype, "r", shape=arguments["key"].shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output, _ = run(arguments | {"key": mapped, "value": mapped})
    np.testing.assert_array_equal(bits(output), bits(run(arguments)[0]))


def test_arrays_that_repeat_one_element() -> None:
    """Stride 0: one query row for all, and one selection."""
    arguments = arguments_of(BSND)
    for name in ("query", IDS):
        arguments[name] = np.broadcast_to(arguments[name][:1, :1], arguments[name].shape)
    whole = {name: arguments[name].copy() for name in ("query", IDS)}
    np.testing.assert_array_equal(bits(run(arguments)[0]), bits(run(arguments | whole)[0]))


# out, value, index types.


@by_kernel
@pytest.mark.parametrize("strided", [False, True])
def test_out_is_filled_and_returned(spec: KernelSpec, strided: bool) -> None:
    arguments = arguments_of(spec)
    expected, _ = run(arguments)
    whole = np.full((*expected.shape[:-1], 600 if strided else 512), 7.0, expected.dtype)
    out = whole[..., 40:552] if strided else whole
    output, _ = run(arguments, out=out)
    assert output is out
    np.testing.assert_array_equal(bits(out.copy()), bits(expected))
    if strided:
        assert (whole[..., :40].astype(np.float32) == 7).all()
        assert (whole[..., 552:].astype(np.float32) == 7).all()


def test_out_in_reverse_and_with_rows_of_its_own_order() -> None:
    arguments = arguments_of(BSND)
    expected, _ = run(arguments)
    shape = expected.shape
    out = np.full((shape[1], shape[0], *shape[2:]), 7.0, expected.dtype)[::-1].swapaxes(0, 1)
    run(arguments, out=out)
    np.testing.assert_array_equal(bits(out.copy()), bits(expected))


def test_without_lse_the_output_comes_alone() -> None:
    arguments = arguments_of(BSND)
    alone = qsmla.kv_quant_sparse_flash_attention(**arguments)
    assert isinstance(alone, np.ndarray)
    np.testing.assert_array_equal(bits(alone), bits(run(arguments)[0]))


@by_kernel
def test_value_is_key_or_a_view_of_it_or_none(spec: KernelSpec) -> None:
    arguments = arguments_of(spec)
    key = arguments["key"]
    expected = bits(run(arguments)[0])
    for value in (None, key, key[...], key[..., :512], key.view()):
        np.testing.assert_array_equal(bits(run(arguments | {"value": value})[0]), expected)


@by_kernel
def test_int64_and_sequences(spec: KernelSpec) -> None:
    arguments = arguments_of(spec)
    changed = {name: arguments[name].astype(np.int64) for name in (IDS, TABLE, Q, KV) if name in arguments}
    expected = bits(run(arguments)[0])
    np.testing.assert_array_equal(bits(run(arguments | changed)[0]), expected)
    lists = {name: arguments[name].tolist() for name in (Q, KV)}
    np.testing.assert_array_equal(bits(run(arguments | lists)[0]), expected)


@pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
def test_a_cache_of_bytes_holds_the_codes_of_kv_dtype(kv_dtype: str) -> None:
    arguments = arguments_of(find(kv_dtype=kv_dtype))
    expected = bits(run(arguments)[0])
    as_bytes = arguments["key"].view(np.uint8)
    np.testing.assert_array_equal(bits(run(arguments | {"key": as_bytes, "value": as_bytes})[0]), expected)
    if kv_dtype != "hifloat8":
        np.testing.assert_array_equal(bits(run(arguments | {"kv_dtype": None})[0]), expected)


def test_lengths_that_are_left_out_are_the_whole_extent() -> None:
    arguments = arguments_of(BSND, query_counts=(3, 3), kv_counts=(40, 40))
    expected = bits(run(arguments)[0])
    np.testing.assert_array_equal(bits(run(arguments | {Q: None, KV: None})[0]), expected)


# A call that is refused, and artifacts from a file.


def test_a_refused_call_writes_nothing() -> None:
    arguments = arguments_of(BSND)
    out = np.full((*arguments["query"].shape[:-1], 512), 7.0, arguments["query"].dtype)
    with pytest.raises(ValueError, match=r"^scale_value is nan"):
        run(arguments | {"scale_value": np.nan}, out=out)
    with pytest.raises(ValueError, match=r"^num_cores is 0"):
        qsmla.plan(**arguments, num_cores=0)
    with pytest.raises(ValueError, match="target is 'tpu'"):
        run(arguments, target="tpu", out=out)
    assert (out.astype(np.float32) == 7).all()


def test_a_loaded_artifact_is_the_operator(tmp_path: Path) -> None:
    qsmla.compile(RAGGED_PAGED, "llvm-cpu", output=tmp_path / "kernel.vmfb")
    kernel = qsmla.load(tmp_path / "kernel.vmfb")
    assert kernel.spec == RAGGED_PAGED
    arguments = arguments_of(RAGGED_PAGED)
    expected, expected_lse = run(arguments)
    output, lse = kernel(**arguments, return_softmax_lse=True)
    np.testing.assert_array_equal(bits(output), bits(expected))
    np.testing.assert_array_equal(lse, expected_lse)
    for name in ("layout_query", "layout_kv", "sparse_block_size", "sparse_mode", "kv_dtype", "byte_order"):
        del arguments[name]
    np.testing.assert_array_equal(bits(kernel(**arguments)), bits(expected))


@pytest.mark.parametrize(
    ("name", "value"), [("sparse_mode", 0), ("byte_order", None), ("sparse_block_size", 2), ("heads", None)]
)
def test_a_loaded_artifact_refuses_another_kernels_call(tmp_path: Path, name: str, value: Any) -> None:
    qsmla.compile(RAGGED_PAGED, "llvm-cpu", output=tmp_path / "kernel.vmfb")
    kernel = qsmla.load(tmp_path / "kernel.vmfb")
    arguments = arguments_of(RAGGED_PAGED)
    if name == "heads":
        arguments["query"] = np.repeat(arguments["query"], 2, axis=1)
    elif name == "byte_order":
        arguments[name] = {"ascend": "flashmla", "flashmla": "ascend"}[RAGGED_PAGED.byte_order]
    else:
        arguments[name] = value
    with pytest.raises(ValueError, match=f"^{name} is .*; allowed: .*the artifact's"):
        kernel(**arguments)
