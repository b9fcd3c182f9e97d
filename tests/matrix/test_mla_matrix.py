"""The matrix of `quant_sparse_flash_mla` on each target, against the reference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from matrix.mla_cases import HEADS, SCENARIOS, MlaCase, mla_cases, mla_specs
from matrix.targets import CONFIGS, Config

from qsmla.compiler.targets import Target
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_selection import select
from qsmla.tools.stages import attempt

FAILED = Path(__file__).parents[2] / "build" / "failed-cases"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    whole = metafunc.config.getoption("--whole-matrix")
    metafunc.parametrize(
        ("config", "case"),
        [
            pytest.param(config, case, id=f"{config.target}-{case.name}")
            for config in CONFIGS
            for case in mla_cases("all" if whole else config.cases)
        ],
    )


def test_case(config: Config, case: MlaCase) -> None:
    config.need_device()
    arguments = case.arguments()
    assert check_mla_call(**arguments).spec == case.spec
    # What the operator leaves alone shows.
    out = np.full(arguments["q"].shape, 7.0, ml_dtypes.bfloat16)
    folder = FAILED / Target.parse(config.target).label.replace(":", "-") / case.name
    attempt(case.spec, arguments, config.target, out=out).check(folder)


def test_the_matrix_is_as_large_as_it_says() -> None:
    cases = list(mla_cases())
    assert len({case.name for case in cases}) == len(cases) == len(mla_specs()) * len(SCENARIOS) >= 300
    assert len(set(HEADS)) == 16
    assert {1, 128} < set(HEADS)


def test_some_cases_are_of_every_scenario() -> None:
    some = list(mla_cases("some"))
    assert {case.scenario for case in some} == set(SCENARIOS)
    assert {case.name for case in some} < {case.name for case in mla_cases()}


def test_scenarios_make_rows_with_and_without_keys_of_one_block_and_of_several() -> None:
    counts: Counter[str] = Counter()
    for case in mla_cases():
        if case.spec.heads < 9:
            call = check_mla_call(**case.arguments())
            selection = select(call)
            counts["without"] += len(selection.keyless)
            counts["one"] += int((selection.order.blocks == 1).sum())
            counts["several"] += int((selection.order.blocks > 2).sum())
            counts["more than planned"] += int((selection.order.blocks > selection.planned_blocks).sum())
            counts["nowhere"] += len(call.query) - len(selection.order.output_row)
    assert min(counts.values()) > 5, counts
    assert len(counts) == 5
