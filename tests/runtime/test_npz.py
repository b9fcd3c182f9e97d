"""Arrays in .npz files, dtypes that NumPy does not know included."""

from __future__ import annotations

import json
import os
import zipfile

import ml_dtypes
import numpy as np
import pytest

from qsmla.runtime.npz import load_npz, save_npz


def npz(tmp_path, **arrays):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "float16", "float32", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
)
def test_arrays_come_back(tmp_path, dtype):
    array = np.arange(-6, 6).reshape(3, 4).astype(dtype)[:, ::2]
    save_npz(tmp_path / "a.npz", array=array)
    back = load_npz(tmp_path / "a.npz")["array"]
    assert back.dtype == array.dtype
    assert back.ctypes.data % 64 == 0
    np.testing.assert_array_equal(back, array)


def test_scalars_come_back_as_python_values(tmp_path):
    save_npz(tmp_path / "a.npz", scale=0.5, flag=True, count=3, word="BSND")
    back = load_npz(tmp_path / "a.npz")
    assert back == {"scale": 0.5, "flag": True, "count": 3, "word": "BSND"}
    assert [type(value) for value in back.values()] == [float, bool, int, str]


def test_numpy_alone_reads_the_file(tmp_path):
    save_npz(tmp_path / "a.npz", query=np.array([1, -2], ml_dtypes.bfloat16), key=np.int8([3]))
    with np.load(tmp_path / "a.npz") as archive:
        assert json.loads(str(archive["dtypes"])) == {"query": "bfloat16"}
        assert archive["query"].tolist() == [0x3F80, 0xC000]
        assert archive["key"].tolist() == [3]


@pytest.mark.parametrize("stored", [np.uint16, np.int16, ml_dtypes.bfloat16])
def test_declared_bits_become_bfloat16(tmp_path, stored):
    bits = np.uint16([0x3F80, 0xC000]).view(stored)
    back = load_npz(npz(tmp_path, query=bits, dtypes='{"query": "bfloat16"}'))["query"]
    assert back.astype(np.float32).tolist() == [1, -2]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"query": np.ones(2, ml_dtypes.bfloat16)}, ["query has dtype |V2", '{"query": "bfloat16"}']),
        (
            {"query": np.ones(2, np.uint8), "dtypes": '{"query": "bfloat16"}'},
            ["uint8", "integers of 16 bits"],
        ),
        ({"query": np.ones(2, np.float16), "dtypes": '{"query": "bfloat16"}'}, ["stored as float16"]),
        (
            {"query": np.ones(2), "dtypes": '{"key": "bfloat16"}'},
            ["names 'key', which the file does not hold"],
        ),
        ({"query": np.ones(2), "dtypes": '{"query": "int4"}'}, ["dtypes is", "bfloat16 or float8_e4m3fn"]),
        ({"query": np.ones(2), "dtypes": '{"query": ["int4"]}'}, ["dtypes is"]),
        ({"query": np.ones(2), "dtypes": "query"}, ["dtypes is 'query'"]),
        ({"query": np.ones(2), "dtypes": np.ones(3)}, ["dtypes is"]),
        ({"query": np.array([None])}, ["is not a readable .npz file of plain arrays"]),
    ],
)
def test_wrong_entries_are_named(tmp_path, arrays, words):
    path = npz(tmp_path, **arrays)
    with pytest.raises(ValueError, match=r"a\.npz") as caught:
        load_npz(path)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 garbage", b"\x93NUMPY garbage"])
def test_files_that_are_no_archives(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a readable"):
        load_npz(path)


def test_single_array_file(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(ValueError, match="is not a readable"):
        load_npz(tmp_path / "a.npy")


def test_cut_and_damaged_files(tmp_path):
    data = npz(tmp_path, query=np.arange(1000)).read_bytes()
    path = tmp_path / "b.npz"
    for content in (data[:-30], data[:500], data[:2000] + b"\xff" + data[2001:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a readable"):
            load_npz(path)
    with pytest.raises(FileNotFoundError):
        load_npz(tmp_path / "none.npz")


@pytest.mark.parametrize("arrays", [{"dtypes": np.ones(3)}, {"query": np.array([None])}])
def test_what_cannot_be_stored(tmp_path, arrays):
    with pytest.raises(ValueError, match="cannot be stored"):
        save_npz(tmp_path / "a.npz", **arrays)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", ["(99999999999999999999,)", "(" * 3000, "(1 +", "(-1,)", "(2**63,)"])
def test_array_headers_made_to_do_harm(tmp_path, shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("query.npy", header)
    with pytest.raises(ValueError, match="is not a readable"):
        load_npz(tmp_path / "a.npz")
