"""How the command line speaks: results on standard output, one sentence a failure on standard error."""

from __future__ import annotations

import json
import math
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from qsmla.compiler.errors import CompileError

DEBUG_VARIABLE: Final = "QSMLA_DEBUG"


class CommandError(Exception):
    """A command that did not do what it was asked to; the text is one sentence."""


def sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, CompileError):
        text = error.summary
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, MemoryError):
        text = f"out of memory: {error}"
    elif format_message := getattr(error, "format_message", None):
        text = format_message()
    elif isinstance(error, (CommandError, ValueError, TypeError, OSError, ImportError)):
        text = str(error) or type(error).__name__
    else:
        text = f"internal error, {type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows where)"
    return " ".join(text.split())


def fail(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Say what went wrong on standard error; the exit status."""
    if debug:
        traceback.print_exception(error)
    text = sentence(error)
    print(json.dumps({"error": text}) if as_json else f"qsmla: {text}", file=sys.stderr)
    return int(getattr(error, "exit_code", 1))


def show_warnings_as_lines() -> None:
    """Warnings come as one line, without the source line that raised them."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        print(f"qsmla: warning: {' '.join(str(message).split())}", file=sys.stderr)

    warnings.showwarning = show


def print_json(value: Any) -> None:
    """`value` as indented JSON on standard output; a number that is not finite, which JSON lacks, is null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Names and values in two columns; a long value stays on its line."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        print(f"{name:<{width}}  {value}")


def print_table(titles: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    """A plain table whose columns are as wide as they need to be."""
    cells = [titles, *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    for row in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def refuse_overwriting(output: Path | None, *inputs: Path | None) -> None:
    """Raise CommandError if writing `output` would replace one of the files that are read."""
    for source in inputs:
        if output and source and output.exists() and source.exists() and output.samefile(source):
            raise CommandError(f"{output} is an input of this command; write to another file")
