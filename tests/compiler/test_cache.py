"""The cache only ever saves time: whatever happens to it, callers get a right artifact."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
import warnings

import filelock
import pytest

from qsmla.compiler import cache as cache_module
from qsmla.compiler import files
from qsmla.compiler.cache import ENVIRONMENT_VARIABLE, ArtifactCache, default_folder

KEY = "0123abcd"


class Builder:
    """Hands out an artifact that is not in a file, and counts how often."""

    def __init__(self, artifact, seconds=0.0):
        self.artifact = artifact
        self.seconds = seconds
        self.calls = 0

    def __call__(self):
        self.calls += 1
        time.sleep(self.seconds)
        return type(self.artifact)(self.artifact.data, self.artifact.record)

    def through(self, store):
        return store.get_or_build(KEY, self.artifact.source_hash, self)


@pytest.fixture
def store(tmp_path):
    return ArtifactCache(tmp_path / "new" / "cache")


@pytest.fixture
def builder(kernel_artifact):
    return Builder(kernel_artifact)


def test_second_call_finds_what_the_first_stored(store, builder):
    first, second = builder.through(store), builder.through(store)
    assert builder.calls == 1
    assert first.path == second.path == store.path(KEY)
    assert first.data == second.data == store.path(KEY).read_bytes()
    assert [(entry.path, entry.size) for entry in store.entries()] == [(first.path, len(first.data))]


def test_keys_are_apart(store, builder):
    builder.through(store)
    assert store.get("another", builder.artifact.source_hash) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        lambda data: b"garbage",
    ],
    ids=["empty", "cut", "flipped bit", "garbage"],
)
def test_corrupt_entry_is_rebuilt(store, builder, damage):
    path = builder.through(store).path
    path.write_bytes(damage(path.read_bytes()))
    assert builder.through(store).data == builder.artifact.data
    assert builder.calls == 2
    assert path.read_bytes() == builder.artifact.data


def test_entry_of_another_source_is_rebuilt(store, builder):
    builder.through(store)
    assert store.get(KEY, "0" * 64) is None
    assert store.get(KEY, builder.artifact.source_hash) is not None


def test_failed_build_stores_nothing_and_frees_the_lock(store, builder):
    def fail():
        raise RuntimeError("no kernel")

    with pytest.raises(RuntimeError, match="no kernel"):
        store.get_or_build(KEY, builder.artifact.source_hash, fail)
    assert store.entries() == []
    assert builder.through(store).path is not None


@pytest.mark.parametrize("place", ["file", "below a file", "/proc/qsmla"])
def test_unusable_folder_costs_one_warning_and_nothing_else(tmp_path, builder, place):
    (tmp_path / "file").write_text("in the way")
    folder = {"file": tmp_path / "file", "below a file": tmp_path / "file" / "cache"}.get(place, place)
    store = ArtifactCache(folder)
    with pytest.warns(RuntimeWarning, match="cannot be used .* compiled anew") as caught:
        artifact = builder.through(store)
    assert len(caught) == 1
    assert (artifact.data, artifact.path) == (builder.artifact.data, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert builder.through(store).data == artifact.data
    assert builder.calls == 2
    assert store.entries() == []


def test_full_folder_costs_one_warning_and_nothing_else(store, builder, monkeypatch):
    def no_room(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write", no_room)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        artifact = builder.through(store)
    assert (artifact.data, artifact.path) == (builder.artifact.data, None)
    assert store.entries() == []


def test_readable_entry_in_a_folder_without_locks_is_used(store, builder, monkeypatch):
    builder.through(store)

    def refuse(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    assert builder.through(store).path == store.path(KEY)
    assert builder.calls == 1


def test_threads_build_once(store, kernel_artifact):
    builder, results = Builder(kernel_artifact, seconds=0.3), []
    threads = [threading.Thread(target=lambda: results.append(builder.through(store))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builder.calls == 1
    assert [result.data for result in results] == [kernel_artifact.data] * 4


COMPILE_AND_COUNT = """
import sys
from qsmla.compiler import build, toolchain
run = toolchain.run
def counted(*arguments):
    with open(sys.argv[1], "a") as log:
        log.write("compiled\\n")
    return run(*arguments)
toolchain.run = counted
from qsmla.ir.spec import KernelSpec
print(build.compile(KernelSpec(heads=1)).source_hash)
"""


def test_processes_compile_once(tmp_path, kernel_artifact):
    environment = os.environ | {ENVIRONMENT_VARIABLE: str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILE_AND_COUNT, str(tmp_path / "log")]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert (out.strip(), process.returncode) == (kernel_artifact.source_hash, 0), err
    assert (tmp_path / "log").read_text() == "compiled\n"
    assert len(ArtifactCache(tmp_path / "cache").entries()) == 1


def test_clear_removes_entries_and_leftovers_but_no_held_lock(store, builder):
    size = len(builder.through(store).data)
    (store.folder / f".x.vmfb.123{files.STAGING_SUFFIX}").write_bytes(b"left by a killed process")
    (store.folder / "somebody else's").write_text("stays")
    with filelock.FileLock(store.folder / "busy.lock"):
        assert store.clear() == (1, size)
        assert sorted(os.listdir(store.folder)) == ["busy.lock", "somebody else's"]
    assert store.clear() == (0, 0)
    assert builder.through(store).path is not None
    assert builder.calls == 2


def test_environment_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "there"))
    assert default_folder() == tmp_path / "there"
    assert ArtifactCache().folder == tmp_path / "there"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "~/there")
    assert default_folder() == cache_module.Path.home() / "there"
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    assert default_folder().name == "qsmla"
