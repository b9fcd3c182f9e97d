"""The specification's comparison as an assertion."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from qsmla.runtime.compare import Comparison, compare
from qsmla.runtime.reference import Attended


def assert_close(
    result: npt.NDArray[Any], attended: Attended, lse: npt.NDArray[Any] | None = None
) -> Comparison:
    """Assert that an output, and its lse where given, is within the tolerances of the float64 reference."""
    reference_lse = None if lse is None else attended.lse
    report = compare(result, attended.output, attended.vmax, lse=lse, reference_lse=reference_lse)
    assert report.passed, str(report)
    return report
