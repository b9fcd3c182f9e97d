"""The matrix's targets: one small file each, `<target>.toml`, read into a `Config`.

target = "vulkan:lavapipe"    what to compile for and run on
cases = "some"                "all" or "some" kernels; --whole-matrix makes it "all"
runs_in_ci = true             where CI=true the device has to be there; elsewhere its tests are skipped
[[expected_failures]]         strict: the case has to fail, and at this stage
case = "*-128-1-0-*-ragged"   a pattern of case names
stage = "compile"             compile, load, run or compare
reason = "..."
"""

from __future__ import annotations

import fnmatch
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from matrix.cases import Case

from qsmla.compiler.drivers import find
from qsmla.compiler.targets import Target
from qsmla.tools.stages import ERRORS

FILES = sorted(Path(__file__).parent.glob("*.toml"))


@dataclass(frozen=True)
class Config:
    """One file."""

    target: str
    cases: str
    runs_in_ci: bool
    expected_failures: tuple[dict[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Config:
        """Refuses keys, stages and case choices that do not exist."""
        fields = tomllib.loads(path.read_text())
        config = cls(expected_failures=tuple(fields.pop("expected_failures", ())), **fields)
        Target.parse(config.target)
        assert config.cases in ("all", "some"), config.cases
        for entry in config.expected_failures:
            assert entry.keys() == {"case", "stage", "reason"}
            assert entry["stage"] in ERRORS
        return config

    def marks(self, case: Case) -> list[Any]:
        """The expected failure of a case, strict and of its stage's type."""
        return [
            pytest.mark.xfail(strict=True, raises=ERRORS[entry["stage"]], reason=entry["reason"])
            for entry in self.expected_failures
            if fnmatch.fnmatchcase(case.name, entry["case"])
        ]

    def need_device(self) -> None:
        """Skip the test where no device runs the target; in CI that is a failure for those that must run."""
        reason = Target.parse(self.target).unmet()
        if reason is None:
            return
        hint = find(Target.parse(self.target).kind).reason or reason
        if self.runs_in_ci and os.environ.get("CI") == "true":
            pytest.fail(f"{self.target} has to run in CI: {hint}")
        pytest.skip(f"{self.target}: {hint}")


CONFIGS = [Config.read(path) for path in FILES]
