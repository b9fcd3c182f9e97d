from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tolerance import assert_close

from qsmla.runtime import compare as module
from qsmla.runtime.compare import Comparison, compare
from qsmla.runtime.reference import Attended

ROWS, HEADS = 3, 2


def reference(seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    values = np.random.default_rng(seed).uniform(0.5, 1.5, (ROWS, HEADS, 512))
    return values, np.full(ROWS, 4.0)


def compared(change: Any, vmax: float = 4.0) -> Comparison:
    """The report on a copy of the reference that `change` was applied to."""
    expected, limits = reference()
    result = expected.copy()
    change(result)
    return compare(result, expected, np.full_like(limits, vmax))


def put(value: float, index: tuple[int, int, int] = (1, 1, 7)) -> Any:
    def change(result: npt.NDArray[Any]) -> None:
        result[index] = value

    return change


def add(amount: float) -> Any:
    def change(result: npt.NDArray[Any]) -> None:
        result[1, 1, 7] += amount

    return change


def test_equal_tensors_pass_with_no_error() -> None:
    report = compared(lambda result: None)
    assert report.passed
    assert (report.elements, report.failed, report.misplaced, report.first_failure) == (
        ROWS * HEADS * 512,
        0,
        0,
        None,
    )
    assert report.max_error == report.tolerance_used == report.max_error_over_vmax == 0
    assert report.tensor_difference == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("part", "passed"), [(0.999, True), (1.001, False)])
@pytest.mark.parametrize("vmax", [4.0, 100.0], ids=["relative", "absolute"])
def test_an_element_may_use_the_larger_allowance(vmax: float, part: float, passed: bool, sign: int) -> None:
    expected, _ = reference()
    allowed = max(1e-3 * vmax, 2.01 / 128 * (expected[1, 1, 7] + 1e-6))
    report = compared(add(sign * part * allowed), vmax)
    assert report.passed == passed
    assert report.failed == (0 if passed else 1)
    assert report.first_failure == (None if passed else (1, 1, 7))
    assert report.tolerance_used == pytest.approx(part)
    assert report.max_error == pytest.approx(part * allowed)
    assert report.max_error_over_vmax == pytest.approx(part * allowed / vmax)


def test_small_errors_everywhere_fail_the_tensor_rule() -> None:
    """Each element is inside its allowance; the tensor is not: e^2/2 of a uniform relative error e."""
    report = compared(lambda result: np.multiply(result, 1.004, out=result))
    assert (report.failed, report.misplaced) == (0, 0)
    assert report.tensor_difference == pytest.approx(0.004**2 / 2, rel=0.01)
    assert not report.passed
    assert compared(lambda result: np.multiply(result, 1.003, out=result)).passed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_on_one_side_only(value: float) -> None:
    report = compared(put(value))
    assert not report.passed
    assert (report.misplaced, report.failed, report.first_failure) == (1, 0, (1, 1, 7))
    expected, vmax = reference()
    other_side = expected.copy()
    other_side[2, 0, 3] = value
    assert compare(expected, other_side, vmax).misplaced == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_on_both_sides_pass_and_hide_nothing(value: float) -> None:
    expected, vmax = reference()
    expected[1, 1] = value
    result = expected.copy()
    assert compare(result, expected, vmax).passed
    result[1, 0, 0] += 1
    report = compare(result, expected, vmax)
    assert (report.failed, report.misplaced, report.first_failure) == (1, 0, (1, 0, 0))


@pytest.mark.parametrize(("a", "b"), [(np.inf, -np.inf), (np.nan, np.inf), (-np.inf, np.nan)])
def test_one_kind_of_nonfinite_is_not_another(a: float, b: float) -> None:
    expected, vmax = reference()
    result = expected.copy()
    result[0, 0, 0], expected[0, 0, 0] = a, b
    assert compare(result, expected, vmax).misplaced == 1


@pytest.mark.parametrize("value", [1e-30, -1e-9, 7.0])
def test_a_row_of_nothing_has_to_be_exact(value: float) -> None:
    expected, vmax = reference()
    expected[2], vmax[2] = 0, 0
    result = expected.copy()
    assert compare(result, expected, vmax).passed
    result[2, 1, 511] = value
    report = compare(result, expected, vmax)
    assert (report.failed, report.first_failure, report.tolerance_used) == (1, (2, 1, 511), np.inf)


def test_zeros_alone_pass() -> None:
    zeros = np.zeros((ROWS, HEADS, 512), np.float16)
    report = compare(zeros, zeros.astype(np.float64), np.zeros(ROWS))
    assert report.passed
    assert report.tensor_difference == 0


def test_an_empty_tensor_passes() -> None:
    assert compare(np.zeros((0, HEADS, 512)), np.zeros((0, HEADS, 512)), np.zeros(0)).passed


def test_each_row_has_its_own_vmax() -> None:
    expected, vmax = reference()
    vmax[:] = [100, 1, 100]
    result = expected.copy()
    result[:, 0, 0] = expected[:, 0, 0] + 0.05
    report = compare(result, expected, vmax)
    assert (report.failed, report.first_failure) == (1, (1, 0, 0))


def test_other_leading_dimensions_of_the_result() -> None:
    expected, vmax = reference()
    result = expected.reshape(1, ROWS, HEADS, 512).astype(np.float32)
    assert compare(result, expected, vmax.reshape(1, ROWS)).passed
    result[0, 2, 1, 5] = 9
    assert compare(result, expected, vmax).first_failure == (0, 2, 1, 5)


def test_chunks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, vmax = reference()
    result = expected + np.random.default_rng(1).normal(0, 0.01, expected.shape)
    result[2, 1, 3] = np.nan
    whole = compare(result, expected, vmax)
    monkeypatch.setattr(module, "_CHUNK", 1)
    rows = compare(result, expected, vmax)
    assert rows.tensor_difference == pytest.approx(whole.tensor_difference)
    assert {**rows.to_dict(), "tensor_difference": 0} == {**whole.to_dict(), "tensor_difference": 0}


def lse_report(lse: list[float], expected: list[float]) -> Comparison:
    output = np.ones((len(lse), 1, 512))
    return compare(
        output,
        output,
        np.ones(len(lse)),
        lse=np.array(lse)[:, None],
        reference_lse=np.array(expected)[:, None],
    )


@pytest.mark.parametrize(
    ("lse", "expected", "passed"),
    [
        (0.0, 0.9e-5, True),
        (0.0, 1.1e-5, False),
        (100.0, 100 * (1 + 8.0 / 65536), True),
        (100.0, 100 * (1 - 8.2 / 65536), False),
        (-100.0, -100 * (1 - 8.2 / 65536), False),
        (-np.inf, -np.inf, True),
        (np.inf, -np.inf, False),
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (-np.inf, -1e30, False),
    ],
)
def test_lse(lse: float, expected: float, passed: bool) -> None:
    report = lse_report([1.0, lse, 2.0], [1.0, expected, 2.0])
    assert report.passed == passed
    assert report.lse_failed == (0 if passed else 1)
    assert (report.failed, report.misplaced) == (0, 0)


def test_the_report_is_json_and_text() -> None:
    report = compared(add(1.0))
    fields = json.loads(json.dumps(report.to_dict()))
    assert fields["passed"] is False
    assert fields["first_failure"] == [1, 1, 7]
    assert str(report).startswith("FAILED: 3072 elements, max error 1 ")
    assert "1 outside the tolerance, 0 misplaced NaN or infinity, first at (1, 1, 7)" in str(report)
    assert str(compared(lambda result: None)).startswith("passed: 3072 elements")


@pytest.mark.parametrize(
    ("result", "expected", "vmax"),
    [
        ((3, 2, 512), (3, 2, 511), (3,)),
        ((3, 2, 512), (3, 2, 512), (2,)),
        ((3, 2, 512), (3, 2, 512), (3, 2)),
        ((512,), (512,), (1,)),
    ],
)
def test_sizes_that_do_not_fit(
    result: tuple[int, ...], expected: tuple[int, ...], vmax: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="result has shape"):
        compare(np.zeros(result), np.zeros(expected), np.zeros(vmax))


@pytest.mark.parametrize(("lse", "expected"), [((3, 2), None), (None, (3, 2)), ((3, 2), (3, 1))])
def test_an_lse_without_its_reference(lse: Any, expected: Any) -> None:
    arrays = [None if shape is None else np.zeros(shape) for shape in (lse, expected)]
    values, vmax = reference()
    with pytest.raises(ValueError, match="lse has shape"):
        compare(values, values, vmax, lse=arrays[0], reference_lse=arrays[1])


def test_the_assertion_of_the_tests_fails_where_the_report_does() -> None:
    expected, vmax = reference()
    attended = Attended(expected, np.zeros((ROWS, HEADS)), vmax)
    assert assert_close(expected, attended, np.zeros((ROWS, HEADS))).passed
    with pytest.raises(AssertionError, match="FAILED"):
        assert_close(expected + 1, attended)
    with pytest.raises(AssertionError, match="lse max error 1"):
        assert_close(expected, attended, np.ones((ROWS, HEADS)))
