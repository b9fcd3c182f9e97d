"""The child process: output, time limit, crashes, and nothing left behind."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from qsmla.compiler import toolchain
from qsmla.compiler.errors import CompilerMissingError


def gone(pid: int) -> bool:
    """Whether a process has ended, or is a zombie that nobody has waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.02)


def test_output_and_return_code_come_back():
    finished = toolchain.run(["sh", "-c", "echo to stdout; echo to stderr >&2; exit 3"], 10)
    assert finished.returncode == 3
    assert finished.stderr == "to stdout\nto stderr\n"
    assert finished.ending == "ended with return code 3"


def test_crash_names_the_signal():
    finished = toolchain.run(["sh", "-c", "kill -SEGV $$"], 10)
    assert finished.returncode == -11
    assert finished.ending == "crashed with SIGSEGV (return code -11)"


def test_timeout_kills_the_whole_group(tmp_path):
    pid_file = tmp_path / "pid"
    start = time.monotonic()
    finished = toolchain.run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; echo busy; wait"], 0.5)
    assert finished.timed_out
    assert finished.ending == "was killed at its time limit"
    assert finished.stderr == "busy\n"
    assert time.monotonic() - start < 10
    wait_until(lambda: gone(int(pid_file.read_text())))


def test_stop_all_ends_what_other_threads_run(tmp_path):
    pid_file, results = tmp_path / "pid", []
    command = ["sh", "-c", f"echo $$ > {pid_file}; sleep 60"]
    thread = threading.Thread(target=lambda: results.append(toolchain.run(command, 60)))
    thread.start()
    wait_until(lambda: pid_file.exists() and pid_file.read_text().strip())
    toolchain.stop_all()
    thread.join(10)
    assert not thread.is_alive()
    assert results[0].returncode == -9
    assert gone(int(pid_file.read_text()))


def test_tool_is_the_binary_and_not_the_wrapper():
    with open(toolchain.find_tool(), "rb") as file:
        assert file.read(4) == b"\x7fELF"
    assert os.access(toolchain.find_tool(), os.X_OK)


def test_versions_are_the_pinned_ones():
    assert toolchain.compiler_version() == toolchain.runtime_version() == "3.13.0"


def test_missing_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    toolchain.find_tool.cache_clear()
    try:
        with pytest.raises(
            CompilerMissingError, match=r"iree-base-compiler.*pip install 'qsmla\[compiler\]'"
        ):
            toolchain.find_tool()
    finally:
        toolchain.find_tool.cache_clear()
