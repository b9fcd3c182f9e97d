"""Running the command line inside the test's process."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from qsmla import cli


@dataclass(frozen=True)
class Result:
    """What a command left: its exit status and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line that a failed command prints on standard error, without the program's name."""
        assert self.status != 0
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("qsmla: ")
        return lines[0].removeprefix("qsmla: ")


@pytest.fixture
def qsmla(capsys, monkeypatch):
    """`qsmla("emit", "--heads", 16)` runs the command and gives its `Result`."""
    monkeypatch.setattr(cli.report.warnings, "showwarning", cli.report.warnings.showwarning)
    before = signal.getsignal(signal.SIGTERM)

    def call(*words: object) -> Result:
        capsys.readouterr()
        status = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    yield call
    signal.signal(signal.SIGTERM, before)
