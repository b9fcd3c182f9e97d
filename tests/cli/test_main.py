"""What holds for every command: failures, help, interrupts, closed pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qsmla import cli
from qsmla.cli import report
from qsmla.compiler.errors import CompileError, CompilerMissingError

COMMANDS = ("emit", "compile", "inspect", "run", "verify", "bench", "metadata", "replay", "devices", "cache")
QSMLA = [sys.executable, "-c", "import sys; from qsmla.cli import main; sys.exit(main())"]


def descendants(pid: int) -> list[int]:
    """The processes below one, iree-compile among them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found += [int(stat.parent.name), *descendants(int(stat.parent.name))]
    return found


def test_no_command_shows_the_commands(qsmla):
    result = qsmla()
    assert result.status == 0
    for command in COMMANDS:
        assert command in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(qsmla, command):
    result = qsmla(command, "--help")
    assert (result.status, result.err) == (0, "")
    assert f"Usage: qsmla {command}" in result.out


def test_version(qsmla):
    assert qsmla("--version").out == "0.1.0\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["emit", "--nonsense"], "No such option: --nonsense"),
        (["inspect"], "Missing argument 'ARTIFACT'."),
        (["compile", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["emit", "--heads", "many"], "Invalid value for '--heads'"),
    ],
)
def test_wrong_usage_is_status_2(qsmla, words, complaint):
    result = qsmla(*words)
    assert result.status == 2
    assert result.complaint.startswith(complaint)


def test_wrong_value_is_status_1(qsmla):
    result = qsmla("emit", "--heads", 7)
    assert (result.status, result.out) == (1, "")
    assert result.complaint == "heads is 7; allowed: 1, 2, 4, 8, 16, 32, 48, 64, 128"


def test_json_failures_are_json(qsmla):
    result = qsmla("compile", "--heads", 7, "--json")
    assert (result.status, result.out) == (1, "")
    assert json.loads(result.err) == {"error": "heads is 7; allowed: 1, 2, 4, 8, 16, 32, 48, 64, 128"}


def test_debug_shows_the_traceback(qsmla, monkeypatch):
    shown = qsmla("--debug", "emit", "--heads", 7).err
    assert "Traceback" in shown
    assert shown.endswith("qsmla: heads is 7; allowed: 1, 2, 4, 8, 16, 32, 48, 64, 128\n")
    monkeypatch.setenv(report.DEBUG_VARIABLE, "1")
    assert "Traceback" in qsmla("emit", "--heads", 7).err


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("two\n  lines"), "two lines"),
        (FileNotFoundError(2, "No such file or directory", "a.npz"), "a.npz: No such file or directory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError("Unable to allocate 1 TiB"), "out of memory: Unable to allocate 1 TiB"),
        (CompileError("it failed; report in /x", "a long\nreport"), "it failed; report in /x"),
        (
            CompilerMissingError("jinja2"),
            "compiling needs jinja2, which is not installed: pip install 'qsmla[compiler]'",
        ),
        (KeyError("x"), "internal error, KeyError: 'x' (QSMLA_DEBUG=1 shows where)"),
    ],
)
def test_any_error_is_one_sentence(qsmla, monkeypatch, error, text):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("qsmla.cli.emit.plan", fail)
    result = qsmla("emit")
    assert (result.status, result.complaint) == (1, text)


def test_interrupt_is_status_130(qsmla, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("qsmla.cli.emit.plan", interrupt)
    result = qsmla("emit")
    assert (result.status, result.complaint) == (130, "interrupted")


def test_warnings_are_one_line(qsmla, monkeypatch, tmp_path, kernel_artifact):
    monkeypatch.setattr("qsmla.compiler.build.build_artifact", lambda work, timeout: kernel_artifact)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("QSMLA_CACHE_DIR", str(tmp_path / "file"))
    with report.warnings.catch_warnings():
        report.warnings.simplefilter("default")
        result = qsmla("compile", "--heads", 1, "-o", tmp_path / "kernel.vmfb")
    assert result.status == 0
    (line,) = result.err.splitlines()
    assert line.startswith(f"qsmla: warning: the artifact cache {tmp_path / 'file'} cannot be used")


def test_closed_pipe_is_quiet():
    command = f"{' '.join(map(repr, QSMLA[:2]))} {QSMLA[2]!r} emit | head -c 10"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert len(result.stdout) == 10
    assert result.stderr == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("matrix", [False, True], ids=["one kernel", "matrix"])
def test_signal_ends_the_compiler_and_leaves_nothing(tmp_path, number, status, matrix):
    (tmp_path / "matrix.toml").write_text("heads = [1, 2, 4, 8]\nquery_dtype = ['bfloat16', 'float16']\n")
    words = ["--matrix", tmp_path / "matrix.toml", "-j", "2"] if matrix else []
    output = tmp_path / "out"
    output.mkdir()
    environment = os.environ | {"QSMLA_CACHE_DIR": str(tmp_path / "cache")}
    command = [*QSMLA, "compile", *map(str, words), "-o", f"{output}/"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (children := descendants(process.pid)):
        assert time.monotonic() < end, "the compiler did not start"
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert err == ("qsmla: interrupted\n" if number == signal.SIGINT else "")
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert list(output.glob("*.staging")) == list(output.glob(".*")) == []
    assert list((tmp_path / "cache").glob("*.staging")) == []


def test_main_gives_back_the_status(tmp_path):
    result = subprocess.run(
        [*QSMLA, "inspect", str(tmp_path / "none")], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"qsmla: {tmp_path / 'none'}: No such file or directory\n"
    assert cli.main(["--version"]) == 0


def test_numbers_that_json_lacks_are_null(capsys):
    report.print_json({"a": float("inf"), "b": [float("nan"), 1.5], "c": (True, None, "x")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": [True, None, "x"]}
