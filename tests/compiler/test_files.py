"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest

from qsmla.compiler import files


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "out.bin"
    files.write(path, b"one")
    files.write(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["out.bin"]


def write_half(path):
    with files.staged(path) as file:
        file.write(b"new")
        raise RuntimeError("half way")


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.bin"
    files.write(path, b"old")
    with pytest.raises(RuntimeError, match="half way"):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_umask_counts(tmp_path):
    path = tmp_path / "out.bin"
    before = os.umask(0o027)
    try:
        files.write(path, b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o400])
def test_what_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    path.chmod(mode)
    with files.staged(path) as file:
        # Nobody else reads what is not whole yet either.
        (staging,) = tmp_path.glob(".*")
        assert stat.S_IMODE(staging.stat().st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_no_room_leaves_nothing(tmp_path):
    script = (
        "import resource, sys; from qsmla.compiler import files; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); files.write(sys.argv[1], bytes(100_000))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "out.bin")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OSError: [Errno 27] File too large" in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "error"), [("missing/out", FileNotFoundError), (".", IsADirectoryError)])
def test_wrong_places_are_os_errors(tmp_path, name, error):
    with pytest.raises(error):
        files.write(tmp_path / name, b"")
    assert os.listdir(tmp_path) == []


def test_links_lead_to_what_is_replaced(tmp_path):
    real, link = tmp_path / "real.bin", tmp_path / "link.bin"
    real.write_bytes(b"old")
    link.symlink_to(real)
    files.write(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_devices_and_pipes_stay_what_they_are(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    files.write(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    files.write(os.devnull, b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
