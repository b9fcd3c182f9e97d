"""What can go wrong between a specification and a loaded artifact."""

from __future__ import annotations

from pathlib import Path


class CompilerMissingError(ImportError):
    """The packages that build artifacts are not installed; finished artifacts run without them."""

    def __init__(self, package: str) -> None:
        super().__init__(f"compiling needs {package}, which is not installed: pip install 'qsmla[compiler]'")


class CompileError(RuntimeError):
    """A kernel did not compile.

    `str()` gives the whole report: the rendered template around the error, the command, the return code
    and what the compiler printed.

    Attributes:
        summary: the same in one sentence.
        folder: where the rendered template and the report were left, or None.
    """

    def __init__(self, summary: str, report: str = "", folder: Path | None = None) -> None:
        super().__init__(f"{summary}\n{report}" if report else summary)
        self.summary = summary
        self.folder = folder


class ArtifactError(ValueError):
    """A file is not an artifact that can be used here; the text is one sentence that says why."""
