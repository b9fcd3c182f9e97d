"""What a failed compilation looks like to whoever has to mend the template."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from qsmla.compiler.errors import CompileError
from qsmla.compiler.toolchain import Finished

_CONTEXT_LINES: Final = 6
_STDERR_CHARACTERS: Final = 8000
_LINE_CHARACTERS: Final = 2000
_SOURCE: Final = "kernel.mlir"
# kernel.mlir:12:7: error: ...
_LOCATION: Final = re.compile(r"kernel\.mlir:(\d+):\d+")
_MESSAGE: Final = re.compile(r"error: (.+)")


def numbered(text: str, line: int | None = None, context: int = _CONTEXT_LINES) -> str:
    """`text` with line numbers: the lines around `line`, which is marked, or its head if `line` is None."""
    lines = text.splitlines()
    first, last = (1, 2 * context) if line is None else (max(1, line - context), line + context)
    width = len(str(len(lines)))
    return "\n".join(
        f"{'>' if number == line else ' '} {number:>{width}} | {content}"
        for number, content in enumerate(lines, 1)
        if first <= number <= last
    )


def check_parses(text: str, label: str) -> None:
    """Parse and verify a rendered kernel in this process, which takes milliseconds.

    Raises:
        CompileError: it does not parse or verify.
    """
    from iree.compiler import ir

    with ir.Context():
        try:
            ir.Module.parse(text)
        except ir.MLIRError as error:
            diagnostic = error.error_diagnostics[0]
            position = re.search(r":(\d+):(\d+)", str(diagnostic.location))
            line = int(position[1]) if position else None
            where = f" at line {line}" if line else ""
            summary = f"{label} renders to MLIR that is wrong{where}: {diagnostic.message}"
            sections = [("what the parser says", str(error))]
            raise _failure(summary, {_SOURCE: text}, line, sections) from error


def compile_error(
    sources: Mapping[str, str], label: str, command: Sequence[str], finished: Finished, timeout: float
) -> CompileError:
    """The error for a compiler that ended without an artifact.

    Args:
        sources: what the compiler read, by file name: "kernel.mlir" is the rendered kernel.
        label: the kernel's name.
        command: what was run.
        finished: how it ended.
        timeout: the seconds it had.
    """
    location, message = _LOCATION.search(finished.stderr), _MESSAGE.search(finished.stderr)
    lines = sources[_SOURCE].count("\n") + 1
    line = int(location[1]) if location and int(location[1]) <= lines else None
    if finished.timed_out:
        summary = f"iree-compile was killed after {timeout:g} s, the timeout, on {label}"
    else:
        said = f" ({message[1].strip()[:300]})" if message else ""
        summary = f"iree-compile {finished.ending} on {label}{said}"
    sections = [
        ("command", shlex.join(command)),
        ("how it ended", f"iree-compile {finished.ending}"),
        ("what it printed", finished.stderr.strip() or "(nothing)"),
    ]
    return _failure(summary, sources, line, sections)


def _failure(
    summary: str, sources: Mapping[str, str], line: int | None, sections: list[tuple[str, str]]
) -> CompileError:
    """The error with its report, and both what the compiler read and the report saved for later."""
    where = f" around line {line}" if line else ""
    everything = [(f"the rendered template{where}", numbered(sources[_SOURCE], line)), *sections]
    full = "\n\n".join(f"{title}:\n{body}" for title, body in everything)
    shown = "\n\n".join(f"{title}:\n{_shortened(body)}" for title, body in everything)
    try:
        folder = Path(tempfile.mkdtemp(prefix="qsmla-failed-"))
        source, report = folder / _SOURCE, folder / "report.txt"
        for name, text in sources.items():
            (folder / name).write_text(text)
        report.write_text(f"{summary}\n\n{full}\n")
    except OSError:
        return CompileError(summary, shown)
    kept = f"the whole rendered template: {source}\nthis report, nothing left out: {report}"
    return CompileError(f"{summary}; report in {folder}", f"{shown}\n\n{kept}", folder)


def _shortened(text: str) -> str:
    """Head and tail of what may be megabytes of IR, its longest lines (descriptions of itself) cut."""
    text = "\n".join(
        line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} [...]"
        for line in text.splitlines()
    )
    if len(text) <= _STDERR_CHARACTERS:
        return text
    half = _STDERR_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
