"""The compiler as a child process: it can crash or hang without taking this process along."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsmla.compiler.errors import CompilerMissingError

_GRACE_S: Final = 10.0
_running: set[subprocess.Popen[bytes]] = set()
_running_guard = threading.Lock()


@dataclass(frozen=True)
class Finished:
    """A child process that ended.

    Attributes:
        returncode: the exit status, or minus the number of the signal that ended it.
        stderr: what it printed.
        timed_out: it ran past its time and was killed.
    """

    returncode: int
    stderr: str
    timed_out: bool

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.timed_out:
            return "was killed at its time limit"
        if self.returncode >= 0:
            return f"ended with return code {self.returncode}"
        try:
            name = signal.Signals(-self.returncode).name
        except ValueError:
            name = f"signal {-self.returncode}"
        return f"crashed with {name} (return code {self.returncode})"


@functools.cache
def find_tool() -> str:
    """The path of the iree-compile binary itself.

    The script of that name in a bin folder is a Python wrapper; killing it leaves the compiler running.

    Raises:
        CompilerMissingError: the package iree-base-compiler is not installed, or comes without the binary.
    """
    if importlib.util.find_spec("iree") is None or importlib.util.find_spec("iree.compiler") is None:
        raise CompilerMissingError("iree-base-compiler")
    from iree.compiler.tools.binaries import find_tool as find

    try:
        return str(find("iree-compile"))
    except ValueError as error:
        raise CompilerMissingError("the iree-compile binary of iree-base-compiler") from error


@functools.cache
def compiler_version() -> str:
    """The installed version of iree-base-compiler.

    Raises:
        CompilerMissingError: it is not installed.
    """
    try:
        return importlib.metadata.version("iree-base-compiler")
    except importlib.metadata.PackageNotFoundError:
        raise CompilerMissingError("iree-base-compiler") from None


@functools.cache
def runtime_version() -> str:
    """The installed version of iree-base-runtime."""
    return importlib.metadata.version("iree-base-runtime")


def run(command: Sequence[str], timeout: float, folder: str | None = None) -> Finished:
    """Run `command` in `folder`, in a session of its own, and wait for it at most `timeout` seconds.

    A command that is not done by then, or when an interrupt comes, is killed with its whole process group.
    Output goes through a file, so that a grandchild that keeps a pipe open cannot hold up the caller.

    Raises:
        OSError: the command cannot be started.
    """
    with tempfile.TemporaryFile() as stderr:
        # Together, so that no child runs that `stop_all` does not know.
        with _running_guard:
            child = subprocess.Popen(
                command,
                cwd=folder,
                # Where Python finds room: the compiler gives up on a TMPDIR that is missing or full.
                env={**os.environ, "TMPDIR": folder or tempfile.gettempdir()},
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _running.add(child)
        timed_out = False
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            with _running_guard:
                _running.discard(child)
                if child.returncode is None:
                    _kill_group(child)
        stderr.seek(0)
        return Finished(child.returncode, stderr.read().decode(errors="replace"), timed_out)


def stop_all() -> None:
    """Kill the commands that other threads are running, after an interrupt that only this one sees."""
    with _running_guard:
        for child in _running:
            if child.returncode is None:
                _kill_group(child)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """End a child that has not been waited for, and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(_GRACE_S)
