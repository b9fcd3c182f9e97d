"""The matrix on each target: every case compiled, loaded, run, and held against the reference and the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matrix.cases import Case, cases
from matrix.targets import CONFIGS, Config

from qsmla.compiler.targets import Target
from qsmla.tools.stages import attempt

FAILED = Path(__file__).parents[2] / "build" / "failed-cases"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    whole = metafunc.config.getoption("--whole-matrix")
    metafunc.parametrize(
        ("config", "case"),
        [
            pytest.param(config, case, id=f"{config.target}-{case.name}", marks=config.marks(case))
            for config in CONFIGS
            for case in cases("all" if whole else config.cases)
        ],
    )


def test_case(config: Config, case: Case) -> None:
    config.need_device()
    arguments = case.arguments()
    query = arguments["query"]
    # What the operator leaves alone shows.
    out = np.full((*query.shape[:-1], 512), 7.0, query.dtype)
    folder = FAILED / Target.parse(config.target).label.replace(":", "-") / case.name
    attempt(case.spec, arguments, config.target, out=out).check(folder)
