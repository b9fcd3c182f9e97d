"""The matrix on the CPU of this machine."""

from __future__ import annotations

import pytest
from matrix.cases import Case, cases, run

TARGET = "llvm-cpu"


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    run(case, TARGET)
