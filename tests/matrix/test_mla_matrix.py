"""The matrix of `quant_sparse_flash_mla` on each target, against the reference."""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from matrix.mla_cases import HEADS, SCENARIOS, MlaCase, mla_cases, mla_specs
from matrix.targets import CONFIGS, Config
from tolerance import assert_close

import qsmla
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attend


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
    call = check_mla_call(**arguments)
    assert call.spec == case.spec
    # What the operator leaves alone shows.
    out = np.full(arguments["q"].shape, 7.0, ml_dtypes.bfloat16)
    output, lse = qsmla.quant_sparse_flash_mla(
        **arguments, out=out, return_softmax_lse=True, target=config.target
    )
    assert output is out
    assert lse.shape == arguments["q"].shape[:-1]
    assert_close(output, attend(call), lse)


def test_the_matrix_is_as_large_as_it_says() -> None:
    cases = list(mla_cases())
    assert len({case.name for case in cases}) == len(cases) == len(mla_specs()) * len(SCENARIOS) >= 300
    assert len(set(HEADS)) == 16
    assert {1, 128} < set(HEADS)


def test_scenarios_make_rows_with_and_without_keys_of_one_block_and_of_several() -> None:
    counts: Counter[str] = Counter()
    for case in mla_cases():
        if case.spec.heads < 9:
            call = check_mla_call(**case.arguments())
            selection = qsmla.runtime.mla_selection.select(call)
            counts["without"] += len(selection.keyless)
            counts["one"] += int((selection.blocks == 1).sum())
            counts["several"] += int((selection.blocks > 2).sum())
            counts["more than planned"] += int((selection.blocks > selection.planned_blocks).sum())
            counts["nowhere"] += len(call.query) - len(selection.output_row)
    assert min(counts.values()) > 5, counts
    assert len(counts) == 5
