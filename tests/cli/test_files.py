"""Files that commands cannot read or write: one sentence that names the file and what is the matter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

LENGTHS = ("--num-heads-q", 1, "--seqused-q", "1,1", "--seqused-ori-kv", "300,2560", "--num-cores", 2)


@pytest.mark.parametrize(
    "text",
    [
        "300,,2560",
        "300,2560,",
        ",300",
        ",",
        "",
        "300,1_000",
        "300,٣",
        "300,２",
        "3 0,4",
        "1.0,2",
        "0x1",
        "1;2",
    ],
)
@pytest.mark.parametrize("option", ["--seqused-ori-kv", "--cu-seqlens-q"])
def test_lengths_that_are_no_numbers(qsmla, option, text):
    complaint = qsmla("metadata", "--num-heads-q", 1, "--batch-size", 2, option, text).complaint
    name = option[2:].replace("-", "_")
    assert complaint == f"{name} is {text!r}; allowed: whole numbers joined by commas"


def test_lengths_may_have_spaces_around_them(qsmla):
    words = ("--num-heads-q", 1, "--seqused-q", " 1, 1 ", "--seqused-ori-kv", "300, 2560", "--num-cores", 2)
    assert qsmla("metadata", *words, "--json").json == qsmla("metadata", *LENGTHS, "--json").json


@pytest.mark.parametrize("value", ["1", '"1,1"', "true", '{"a": 1}'])
def test_lengths_in_json_are_lists(qsmla, tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text(f'{{"num_heads_q": 1, "seqused_q": {value}}}')
    complaint = qsmla("metadata", path).complaint
    assert complaint.startswith(f"{path} holds ")
    assert complaint.endswith(" as seqused_q; allowed: a list of whole numbers")


@pytest.mark.parametrize("value", [3, "1,1"])
def test_lengths_in_npz_are_arrays(qsmla, tmp_path, value):
    path = tmp_path / "a.npz"
    np.savez(path, num_heads_q=1, seqused_q=value)
    assert (
        qsmla("metadata", path).complaint
        == f"{path} holds {value!r} as seqused_q; allowed: an array of whole numbers"
    )


@pytest.mark.parametrize("text", ["[" * 100_000, '{"seqused_q":' * 100_000])
def test_json_that_is_nested_too_deeply(qsmla, tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    expected = f"{path} is neither an .npz file nor readable JSON: it is nested too deeply"
    assert qsmla("metadata", path).complaint == expected


def test_other_files_that_are_nested_too_deeply(qsmla, tmp_path):
    (tmp_path / "case.json").write_text("[" * 100_000)
    assert f"{tmp_path / 'case.json'} describes no case" in qsmla("replay", tmp_path).complaint
    (tmp_path / "matrix.toml").write_text("heads = " + "[" * 100_000)
    complaint = qsmla("compile", "--matrix", tmp_path / "matrix.toml", "-o", tmp_path / "out").complaint
    assert complaint.startswith(f"{tmp_path / 'matrix.toml'} is not TOML")


def write_text(path: Path) -> None:
    path.write_text("hello")


def write_nothing(path: Path) -> None:
    path.write_bytes(b"")


def write_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def write_objects(path: Path) -> None:
    np.savez(path, seqused_q=np.array([None]))


@pytest.mark.parametrize("command", ["metadata", "run"])
@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (write_text, "it is no zip archive"),
        (write_nothing, "it is empty"),
        (write_one_array, "it is an .npy file, of a single array"),
        (write_objects, "seqused_q holds Python objects"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_npz_file_is_called_what_it_is(qsmla, tmp_path, command, write, reason):
    path = tmp_path / "a.npz"
    write(path)
    words = (path,) if command == "metadata" else (__file__, path, tmp_path / "out.npz")
    expected = f"{path} is not a readable .npz file of plain arrays: {reason}"
    assert qsmla(command, *words).complaint == expected


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
def test_a_file_whose_reading_fails_is_named(qsmla, tmp_path):
    path = tmp_path / "a.npz"
    path.symlink_to("/proc/self/mem")
    mem = "/proc/self/mem"
    for words, name in (
        (("metadata", mem), mem),
        (("metadata", path), path),
        (("run", __file__, path, tmp_path / "out.npz"), path),
        (("inspect", mem), mem),
        (("verify", mem), mem),
        (("compile", "--matrix", mem), mem),
    ):
        assert qsmla(*words).complaint == f"{name}: Input/output error"
    (tmp_path / "case.json").symlink_to(mem)
    assert qsmla("replay", tmp_path).complaint == f"{tmp_path / 'case.json'}: Input/output error"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
def test_a_full_device_is_named(qsmla):
    for words in (("metadata", *LENGTHS, "--plot", "/dev/full"), ("emit", "-o", "/dev/full")):
        assert qsmla(*words).complaint == "/dev/full: No space left on device"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_is_a_failure(tmp_path, unbuffered):
    """Python itself says nothing of it where standard output has no buffer."""
    script = (
        "import resource, sys; from qsmla import cli; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); sys.exit(cli.main(['emit']))"
    )
    with open(tmp_path / "kernel.mlir", "wb") as output:
        result = subprocess.run(
            [sys.executable, "-c", script],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    assert (result.returncode, result.stderr) == (1, "qsmla: File too large\n")
    assert (tmp_path / "kernel.mlir").stat().st_size == 1000


@pytest.mark.parametrize("name", ["a.xyz", "a.tar.gz", "a.txt"])
def test_a_picture_of_no_kind(qsmla, tmp_path, name):
    complaint = qsmla("metadata", *LENGTHS, "--plot", tmp_path / name).complaint
    assert complaint.startswith(f"plot is {str(tmp_path / name)!r}; allowed suffixes: ")
    assert " png, " in complaint
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_needs_tex(qsmla, tmp_path, monkeypatch):
    path = tmp_path / "a.pgf"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    complaint = qsmla("metadata", *LENGTHS, "--plot", path).complaint
    assert complaint.startswith(f"plot is {str(path)!r}; allowed suffixes: ")
    assert "pgf" not in complaint.partition(";")[2]
    # TeX that is there and does not work, or goes away.
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")
    monkeypatch.setitem(matplotlib.rcParams, "pgf.texsystem", "lualatex")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert qsmla("metadata", *LENGTHS, "--plot", path).complaint.startswith(f"{path} cannot be drawn: ")
    assert list(tmp_path.iterdir()) == []


def test_a_picture_in_no_folder(qsmla, tmp_path):
    complaint = qsmla("metadata", *LENGTHS, "--plot", tmp_path / "no" / "a.png").complaint
    assert complaint == f"{tmp_path / 'no'}: No such file or directory"
