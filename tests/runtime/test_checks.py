"""The arrays of a call: kinds, dtypes, shapes, memory; and the typed call that comes of them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from calls import BFLOAT16, LAYOUTS, legal_arguments

from qsmla.runtime.checks import check_call
from qsmla.runtime.reference import kv_quant_sparse_flash_attention

PLAIN, RAGGED, PAGED, RAGGED_PAGED = LAYOUTS
ARRAYS = ("query", "key", "value", "sparse_indices", "out")


def with_out(layouts: tuple[str, str] = PLAIN) -> dict[str, Any]:
    arguments = legal_arguments(*layouts)
    query = arguments["query"]
    return arguments | {"out": np.zeros((*query.shape[:-1], 512), query.dtype)}


def with_key(key: npt.NDArray[Any]) -> dict[str, Any]:
    return {"key": key, "value": key}


def huge(shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """An array of any size that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "value", [7, "text", [[1.0]], np.float32(1), memoryview(b"")], ids=lambda v: type(v).__name__
)
def test_what_is_no_array(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name} is .*; allowed: a NumPy array"):
        check_call(**with_out() | {name: value})


@pytest.mark.parametrize("name", ["query", "key", "sparse_indices"])
def test_none_where_an_array_is_required(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} is None"):
        check_call(**legal_arguments() | {name: None})


@pytest.mark.parametrize("name", ARRAYS)
def test_a_masked_array_whose_mask_would_be_ignored(name: str) -> None:
    arguments = with_out()
    with pytest.raises(TypeError, match=rf"^{name} is .*; allowed: a NumPy array"):
        check_call(**arguments | {name: np.ma.array(arguments[name])})


@pytest.mark.parametrize(
    ("name", "dtype", "allowed"),
    [
        *(("query", d, "float16, bfloat16") for d in (np.float32, np.float64, np.int16, ">f2", bool, object)),
        ("query", BFLOAT16.newbyteorder(), "float16, bfloat16"),
        *(
            ("key", d, "int8, float8_e4m3fn, uint8")
            for d in (
                bool,
                np.int16,
                np.float16,
                ml_dtypes.float8_e4m3,
                ml_dtypes.float8_e5m2,
                ml_dtypes.float8_e4m3b11fnuz,
            )
        ),
        *(("value", d, "key's dtype int8") for d in (np.uint8, np.float16)),
        *(
            ("sparse_indices", d, "int32, int64")
            for d in (np.int16, np.uint32, np.uint64, np.float32, bool, ">i4", ">i8")
        ),
        *(("out", d, "query's dtype bfloat16") for d in (np.float16, np.float32, np.uint16)),
    ],
    ids=str,
)
def test_another_dtype(name: str, dtype: Any, allowed: str) -> None:
    arguments = with_out()
    array = np.zeros(arguments[name].shape, dtype)
    changes = with_key(array) if name == "key" else {name: array}
    with pytest.raises(TypeError, match=f"^{name} is dtype .*; allowed: {allowed}"):
        check_call(**arguments | changes)


@pytest.mark.parametrize(
    ("layouts", "name", "shape", "allowed"),
    [
        (PLAIN, "query", (2, 3, 2, 575), r"\[B, S1, N, 576\]"),
        (PLAIN, "query", (2, 3, 2, 512), r"\[B, S1, N, 576\]"),
        (PLAIN, "query", (6, 2, 576), r"\[B, S1, N, 576\]"),
        (PLAIN, "query", (2, 576), r"\[B, S1, N, 576\] in BSND, \[T, N, 576\] in TND"),
        (PLAIN, "query", (1, 2, 3, 2, 576), r"\[B, S1, N, 576\] in BSND, \[T, N, 576\] in TND"),
        (PLAIN, "query", (), r"\[B, S1, N, 576\] in BSND"),
        (RAGGED, "query", (2, 3, 2, 576), r"\[T, N, 576\]"),
        (RAGGED, "query", (6, 2, 577), r"\[T, N, 576\]"),
        (PLAIN, "key", (3, 40, 1, 656), r"\[2, S2, 1, 656\]"),
        (PLAIN, "key", (2, 40, 656), r"\[2, S2, 1, 656\]"),
        (PLAIN, "key", (2, 40, 2, 656), r"\[2, S2, 1, 656\]"),
        (PLAIN, "key", (2, 40, 1, 655), r"\[2, S2, 1, 656\]"),
        (PLAIN, "key", (2, 40, 1, 576), r"\[2, S2, 1, 656\]"),
        (RAGGED, "key", (80, 656), r"\[T2, 1, 656\]"),
        (RAGGED, "key", (80, 2, 656), r"\[T2, 1, 656\]"),
        (RAGGED, "key", (80, 1, 512), r"\[T2, 1, 656\]"),
        (RAGGED, "key", (), r"\[T2, 1, 656\]"),
        (PAGED, "key", (8, 16, 656), r"\[block_num, block_size, 1, 656\]"),
        (PAGED, "key", (8, 16, 2, 656), r"\[block_num, block_size, 1, 656\]"),
        (PAGED, "key", (8, 16, 1, 640), r"\[block_num, block_size, 1, 656\]"),
        *(
            (PAGED, "key", (8, size, 1, 656), "multiples of 16, 16..1024")
            for size in (0, 8, 15, 17, 24, 1040, 2048)
        ),
        (PLAIN, "sparse_indices", (2, 3, 5), r"\[2, 3, 1, K\]"),
        (PLAIN, "sparse_indices", (2, 3, 2, 5), r"\[2, 3, 1, K\]"),
        (PLAIN, "sparse_indices", (2, 4, 1, 5), r"\[2, 3, 1, K\]"),
        (PLAIN, "sparse_indices", (3, 3, 1, 5), r"\[2, 3, 1, K\]"),
        (PLAIN, "sparse_indices", (2, 3, 1, 0), "1 or more"),
        (PLAIN, "sparse_indices", (), r"\[2, 3, 1, K\]"),
        (RAGGED, "sparse_indices", (6, 5), r"\[6, 1, K\]"),
        (RAGGED, "sparse_indices", (5, 1, 5), r"\[6, 1, K\]"),
        (RAGGED, "sparse_indices", (6, 1, 0), "1 or more"),
        (PLAIN, "out", (2, 3, 2, 576), r"\[2, 3, 2, 512\]"),
        (PLAIN, "out", (6, 2, 512), r"\[2, 3, 2, 512\]"),
        (RAGGED, "out", (7, 2, 512), r"\[6, 2, 512\]"),
    ],
    ids=str,
)
def test_another_shape(layouts: tuple[str, str], name: str, shape: tuple[int, ...], allowed: str) -> None:
    arguments = with_out(layouts)
    array = np.zeros(shape, arguments[name].dtype)
    changes = with_key(array) if name == "key" else {name: array}
    with pytest.raises(ValueError, match=rf"^{name}.*; allowed: {allowed}"):
        check_call(**arguments | changes)


def test_a_block_that_does_not_divide_the_page() -> None:
    arguments = legal_arguments(*PAGED, page_size=48, kv_counts=(48, 48))
    assert check_call(**arguments | {"sparse_block_size": 16}).spec.sparse_block_size == 16
    with pytest.raises(
        ValueError, match=r"^sparse_block_size is 32; allowed: divisors of key's block_size 48"
    ):
        check_call(**arguments | {"sparse_block_size": 32})


@pytest.mark.parametrize("page_size", [16, 48, 64, 1024])
def test_page_sizes(page_size: int) -> None:
    assert check_call(**legal_arguments(*PAGED, page_size=page_size)).key.shape[1:] == (page_size, 656)


@pytest.mark.parametrize(
    ("layouts", "shape"),
    [
        (PLAIN, (2, 2**30, 1, 656)),
        (RAGGED, (2**31, 1, 656)),
        (PAGED, (2**21, 1024, 1, 656)),
    ],
)
def test_more_cache_rows_than_int32_numbers(layouts: tuple[str, str], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^key's number of rows is 2147483648; allowed: at most 2147483647"):
        check_call(**legal_arguments(*layouts) | with_key(huge(shape, np.int8)))


@pytest.mark.parametrize(
    ("layouts", "shape"), [(RAGGED, (2**31 - 1, 1, 656)), (PAGED, (2**21 - 1, 1024, 1, 656))]
)
def test_as_many_cache_rows_as_int32_numbers(layouts: tuple[str, str], shape: tuple[int, ...]) -> None:
    call = check_call(**legal_arguments(*layouts) | with_key(huge(shape, np.int8)))
    assert call.key.shape == (*shape[:-2], 656)


def test_more_query_rows_than_int32_numbers() -> None:
    query = huge((2**16, 2**15, 2, 576), np.float16)
    with pytest.raises(
        ValueError, match=r"^query's number of rows is 2147483648; allowed: at most 2147483647"
    ):
        check_call(**legal_arguments() | {"query": query})


@pytest.mark.parametrize("outside", [2**31, -(2**31) - 1, 2**63 - 1])
def test_an_int64_index_outside_int32(outside: int) -> None:
    indices = legal_arguments()["sparse_indices"].astype(np.int64)
    indices[1, 2, 0, 3] = outside
    with pytest.raises(ValueError, match=rf"^sparse_indices .*{outside}; allowed: values of int32"):
        check_call(**legal_arguments() | {"sparse_indices": indices})


def test_int64_indices_are_cast() -> None:
    indices = legal_arguments()["sparse_indices"].astype(np.int64)
    indices[0, 0, 0, :2] = -(2**31), 2**31 - 1
    call = check_call(**legal_arguments() | {"sparse_indices": indices})
    assert call.indices.dtype == np.int32
    np.testing.assert_array_equal(call.indices, indices.reshape(6, 5))


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_the_typed_call_is_the_callers_memory(layouts: tuple[str, str]) -> None:
    arguments = with_out(layouts)
    call = check_call(**arguments)
    assert call.query.shape == (6, 2, 576)
    assert call.indices.shape == (6, 5)
    assert call.key.dtype == np.uint8
    assert call.key.shape == tuple(n for n in arguments["key"].shape if n != 1)
    for name, array in (("query", call.query), ("key", call.key), ("sparse_indices", call.indices)):
        assert array.ctypes.data == arguments[name].ctypes.data
    np.testing.assert_array_equal(call.key, arguments["key"].view(np.uint8).reshape(call.key.shape))
    assert call.out is arguments["out"]
    assert call.output_shape == arguments["out"].shape
    assert call.lse_shape == arguments["out"].shape[:-1]


def test_strided_arrays_are_read_rightly() -> None:
    arguments = legal_arguments()
    strided = {}
    for name in ("query", "key", "sparse_indices"):
        array = arguments[name]
        store = np.zeros((*array.shape[:2], 3, *array.shape[2:]), array.dtype)[::-1, :, 1]
        store[...] = array
        assert not store.flags.c_contiguous
        strided[name] = store
    call, plain = check_call(**arguments | strided | {"value": None}), check_call(**arguments)
    np.testing.assert_array_equal(call.query.view(np.uint16), plain.query.view(np.uint16))
    np.testing.assert_array_equal(call.key, plain.key)
    np.testing.assert_array_equal(call.indices, plain.indices)
    assert np.shares_memory(call.key, strided["key"])


def test_a_memory_mapped_cache(tmp_path: Path) -> None:
    arguments = legal_arguments()
    mapped = np.memmap(tmp_path / "cache", np.int8, "w+", shape=arguments["key"].shape)
    mapped[...] = arguments["key"]
    call = check_call(**arguments | with_key(mapped))
    assert np.shares_memory(call.key, mapped)


@pytest.mark.parametrize(
    "view",
    [
        lambda key: key,
        lambda key: None,
        lambda key: key[...],
        lambda key: key[..., :512],
        lambda key: key.reshape(key.shape),
        lambda key: key.view(np.ndarray)[:],
    ],
)
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_values_that_are_keys_memory(layouts: tuple[str, str], view: Any) -> None:
    arguments = legal_arguments(*layouts)
    assert check_call(**arguments | {"value": view(arguments["key"])}).key.size


@pytest.mark.parametrize(
    ("view", "text"),
    [
        (lambda key: key.copy(), "^value is a tensor of its own, which would be ignored.*; allowed: "),
        (lambda key: key[..., :512].copy(), "^value is a tensor of its own"),
        (lambda key: key[::-1], "^value is a tensor of its own"),
        (lambda key: key[..., 1:513], "^value is a tensor of its own"),
        (lambda key: key[..., ::-1], "^value is a tensor of its own"),
        (lambda key: key[:, :39], "^value has shape .*; allowed: "),
        (lambda key: key[:1], "^value has shape"),
        (lambda key: key[..., :511], "^value has shape"),
        (lambda key: key[..., 0, :], "^value has shape"),
        (lambda key: key[..., :0], "^value has shape"),
    ],
)
def test_values_that_would_be_ignored(view: Any, text: str) -> None:
    arguments = legal_arguments()
    with pytest.raises(ValueError, match=text):
        check_call(**arguments | {"value": view(arguments["key"])})


def test_a_strided_out() -> None:
    arguments = with_out()
    wide = np.zeros((2, 3, 2, 600), BFLOAT16)
    assert check_call(**arguments | {"out": wide[..., 50:562]}).out is not None


def test_a_read_only_out() -> None:
    arguments = with_out()
    arguments["out"].flags.writeable = False
    with pytest.raises(ValueError, match=r"^out is read-only; allowed: "):
        check_call(**arguments)


@pytest.mark.parametrize("step", [0, 2, 1022])
def test_an_out_whose_elements_share_memory(step: int) -> None:
    row = np.zeros((2, 3, 4, 512), BFLOAT16)
    out = np.lib.stride_tricks.as_strided(row, (2, 3, 2, 512), (*row.strides[:2], step, 2))
    with pytest.raises(ValueError, match=r"^out has strides .*; allowed: "):
        check_call(**with_out() | {"out": out})


@pytest.mark.parametrize(
    "name",
    ["query", "key", "sparse_indices", "block_table", "actual_seq_lengths_query", "actual_seq_lengths_kv"],
)
def test_an_out_that_overlaps_an_input(name: str) -> None:
    arguments = with_out(RAGGED_PAGED)
    given = arguments[name]
    memory = np.zeros(arguments["out"].nbytes + given.nbytes, np.uint8)
    arguments[name] = memory[: given.nbytes].view(given.dtype).reshape(given.shape)
    arguments[name][...] = given
    if name == "key":
        arguments["value"] = arguments["key"]

    def out_at(start: int) -> npt.NDArray[Any]:
        return memory[start : start + arguments["out"].nbytes].view(BFLOAT16).reshape(arguments["out"].shape)

    assert check_call(**arguments | {"out": out_at(given.nbytes)}).out is not None
    with pytest.raises(ValueError, match=r"^out overlaps the memory of an input; allowed: "):
        check_call(**arguments | {"out": out_at(given.nbytes - 2)})


def test_an_out_between_the_columns_of_the_query() -> None:
    both = np.zeros((2, 3, 2, 576 + 512), BFLOAT16)
    arguments = legal_arguments() | {"query": both[..., :576]}
    assert check_call(**arguments | {"out": both[..., 576:]}).out is not None
    with pytest.raises(ValueError, match=r"^out overlaps"):
        check_call(**arguments | {"out": both[..., 575 : 575 + 512]})


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("selected", [1, 3, 2049])
def test_numbers_of_selected_blocks(layouts: tuple[str, str], selected: int) -> None:
    assert check_call(**legal_arguments(*layouts, selected=selected)).indices.shape == (6, selected)


@pytest.mark.parametrize(
    ("layouts", "query", "cache", "batch"),
    [
        (PLAIN, (0, 3), (0, 40), 0),
        (PLAIN, (2, 0), (2, 40), 2),
        (PLAIN, (2, 3), (2, 0), 2),
        (PAGED, (0, 3), (8, 16), 0),
        (PAGED, (2, 3), (0, 16), 2),
        (RAGGED, (0,), (0,), 0),
        (RAGGED, (0,), (80,), 2),
        (RAGGED, (6,), (80,), 0),
        (RAGGED_PAGED, (0,), (8, 16), 0),
        (RAGGED_PAGED, (6,), (0, 16), 0),
    ],
)
def test_empty_dimensions(
    layouts: tuple[str, str], query: tuple[int, ...], cache: tuple[int, ...], batch: int
) -> None:
    zeros: Any = (
        np.zeros(batch, np.int32) if layouts != PLAIN and batch else ([] if layouts != PLAIN else None)
    )
    call = check_call(
        np.zeros((*query, 2, 576), np.float16),
        np.zeros((*cache, 1, 656), np.int8),
        None,
        np.zeros((*query, 1, 4), np.int32),
        1.0,
        layout_query=layouts[0],
        layout_kv=layouts[1],
        actual_seq_lengths_query=zeros if layouts[0] == "TND" else None,
        actual_seq_lengths_kv=zeros,
        block_table=np.zeros((batch, 1), np.int32) if layouts[1] == "PA_BSND" else None,
    )
    assert call.output_shape == (*query, 2, 512)
    assert call.query.shape == (int(np.prod(query)), 2, 576)
    assert len(call.query_lengths) == len(call.kv_lengths) == batch


def test_defaults_are_those_of_the_reference() -> None:
    checked, public = (inspect.signature(f).parameters for f in (check_call, kv_quant_sparse_flash_attention))
    # The reference also takes what only compiled kernels have a use for.
    assert {**checked, **{name: public[name] for name in ("target", "metadata")}} == dict(public)


def test_a_call_with_the_five_required_arguments() -> None:
    arguments = legal_arguments()
    names = ("query", "key", "value", "sparse_indices", "scale_value")
    call = check_call(*(arguments[name] for name in names))
    assert (call.spec.layout_query, call.spec.layout_kv, call.spec.sparse_mode) == ("BSND", "BSND", 3)
    assert (call.spec.sparse_block_size, call.spec.byte_order, call.spec.kv_dtype) == (1, "ascend", "int8")
    assert (call.query_lengths.tolist(), call.kv_lengths.tolist()) == ([3, 3], [40, 40])
    assert call.return_softmax_lse is False
    assert call.out is None
