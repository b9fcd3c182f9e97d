"""The command line, `qsmla`."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

import typer

from qsmla.cli import report
from qsmla.cli.app import app

_INTERRUPTED = 130
_TERMINATED = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status: 0, 2 for wrong usage, 130 for Ctrl-C, 1 for any other failure.

    Args:
        arguments: the command line without the program's name; None for the process's own.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or os.environ.get(report.DEBUG_VARIABLE, "") not in ("", "0")
    report.show_warnings_as_lines()
    if sys.stdout is None:  # closed by whoever started the process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # Unbuffered (python -u), a text that the disk has room for a part of would be cut without an error.
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _terminate)
    command = typer.main.get_command(app)
    try:
        status = command.main(args=words, prog_name="qsmla", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except Exception as error:
        return report.fail(error, as_json="--json" in words, debug=debug)
    if status == _INTERRUPTED:
        print("qsmla: interrupted", file=sys.stderr)
    return int(status or 0)


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as an interrupt does, so that child processes and staging files go too."""
    sys.exit(_TERMINATED)


def _reader_gone() -> int:
    """Whoever read the output closed it, as `| head` does: no failure worth a word."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
