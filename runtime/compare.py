"""Whether a result is right: the specification's tolerances against the float64 reference."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ABSOLUTE: Final = 1e-3
"""Allowed error of an element, as a part of the largest |V| that its row attends to."""
RELATIVE: Final = 2.01 / 128
"""Allowed error of an element, as a part of |reference| + 1e-6; either of the two suffices."""
TENSOR: Final = 5e-6
"""Allowed 1 - 2 sum(xy) / sum(x^2 + y^2) of the whole tensor."""
LSE_ABSOLUTE: Final = 1e-5
LSE_RELATIVE: Final = 8.01 / 65536

_CHUNK: Final = 1 << 20
"""Elements compared in one go: bounds the scratch memory."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a comparison found. Errors are maxima over the elements that are finite on both sides."""

    elements: int
    failed: int
    """Elements outside the tolerance."""
    misplaced: int
    """Elements where NaN or an infinity, its sign counted, stands on one side only."""
    first_failure: tuple[int, ...] | None
    """Index of the first element that is outside the tolerance or misplaced."""
    max_error: float
    max_error_over_vmax: float
    """Over rows whose vmax is not 0."""
    tolerance_used: float
    """Largest error as a part of what was allowed: at most 1 in a result that passes."""
    tensor_difference: float
    lse_failed: int = 0
    """Elements of the lse outside the tolerance, or NaN or infinite on one side only."""
    lse_max_error: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every rule is met."""
        return not (self.failed or self.misplaced or self.lse_failed) and self.tensor_difference <= TENSOR

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the verdict as plain values that JSON takes, infinities excepted."""
        return {"passed": self.passed, **dataclasses.asdict(self)}

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        parts = [
            f"{verdict}: {self.elements} elements, max error {self.max_error:.3g} "
            f"({self.max_error_over_vmax:.3g} of vmax, {self.tolerance_used:.3g} of the tolerance), "
            f"tensor difference {self.tensor_difference:.3g} (allowed {TENSOR:g})"
        ]
        if self.failed or self.misplaced:
            parts.append(
                f"{self.failed} outside the tolerance, {self.misplaced} misplaced NaN or infinity, "
                f"first at {self.first_failure}"
            )
        if self.lse_failed or self.lse_max_error:
            parts.append(f"lse max error {self.lse_max_error:.3g}, {self.lse_failed} outside the tolerance")
        return "; ".join(parts)


def compare(
    result: npt.NDArray[Any],
    reference: npt.NDArray[Any],
    vmax: npt.NDArray[Any],
    *,
    lse: npt.NDArray[Any] | None = None,
    reference_lse: npt.NDArray[Any] | None = None,
) -> Comparison:
    """Compare an output, and the lse where it is given, with the reference.

    A row whose vmax is 0 is a sum of zeros or of nothing, and has to be exact.

    Args:
        result: [..., heads, 512], any float dtype.
        reference: as many elements in the same order, better still before the rounding to result's dtype.
        vmax: one for each row (heads x 512 elements): the largest finite |V| that the row attends to.
        lse: [..., heads].
        reference_lse: as many elements in the same order.

    Raises:
        ValueError: sizes do not fit each other, or only one lse is given.
    """
    width = math.prod(result.shape[-2:])
    if result.ndim < 2 or not result.size == reference.size == vmax.size * width:
        raise ValueError(
            f"result has shape {result.shape}, reference {reference.shape}, vmax {vmax.shape}; allowed: "
            "[..., heads, 512], the same number of elements, one vmax for each row"
        )
    limits = vmax.astype(np.float64).reshape(-1, 1)
    outputs = _compare_output(result, reference.reshape(len(limits), width), limits)
    if lse is None and reference_lse is None:
        return Comparison(**outputs)
    if lse is None or reference_lse is None or lse.size != reference_lse.size:
        shapes = [None if given is None else given.shape for given in (lse, reference_lse)]
        raise ValueError(
            f"lse has shape {shapes[0]} and reference_lse {shapes[1]}; allowed: as many elements in both"
        )
    lse_failed, lse_max_error = _compare_lse(lse, reference_lse.reshape(lse.shape))
    return Comparison(**outputs, lse_failed=lse_failed, lse_max_error=lse_max_error)


def _compare_output(
    result: npt.NDArray[Any], reference: npt.NDArray[Any], vmax: npt.NDArray[np.float64]
) -> dict[str, Any]:
    rows = result.reshape(reference.shape)
    failed = misplaced = 0
    first_failure = None
    max_error = max_over_vmax = used = products = squares = 0.0
    step = max(1, _CHUNK // max(1, reference.shape[1]))
    for start in range(0, len(vmax), step):
        x, y = (side[start : start + step].astype(np.float64) for side in (rows, reference))
        limits = vmax[start : start + step]
        differs, finite = _places(x, y)
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
        error = np.abs(x - y)
        part = _part_of_tolerance(error, y, limits)
        wrong = (part > 1) | differs
        if first_failure is None and wrong.any():
            flat = start * reference.shape[1] + int(wrong.argmax())
            first_failure = tuple(int(i) for i in np.unravel_index(flat, result.shape))
        failed += int(np.count_nonzero(part > 1))
        misplaced += int(np.count_nonzero(differs))
        max_error = max(max_error, error.max(initial=0))
        max_over_vmax = max(
            max_over_vmax, np.divide(error, limits, out=np.zeros_like(error), where=limits > 0).max()
        )
        used = max(used, part.max(initial=0))
        products += float((x * y).sum())
        squares += float((x * x + y * y).sum())
    return {
        "elements": result.size,
        "failed": failed,
        "misplaced": misplaced,
        "first_failure": first_failure,
        "max_error": float(max_error),
        "max_error_over_vmax": float(max_over_vmax),
        "tolerance_used": float(used),
        "tensor_difference": 1 - 2 * products / squares if squares else 0.0,
    }


def _part_of_tolerance(
    error: npt.NDArray[np.float64], reference: npt.NDArray[np.float64], vmax: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Error over the larger of the two allowances; infinite for any error in a row whose vmax is 0."""
    allowed = np.maximum(ABSOLUTE * vmax, RELATIVE * (np.abs(reference) + 1e-6))
    return np.where(vmax > 0, error / allowed, np.where(error > 0, np.inf, 0))


def _compare_lse(lse: npt.NDArray[Any], reference: npt.NDArray[Any]) -> tuple[int, float]:
    x, y = lse.astype(np.float64), reference.astype(np.float64)
    differs, finite = _places(x, y)
    error = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
    allowed = np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * np.abs(np.where(finite, y, 0)))
    return int(np.count_nonzero((error > allowed) | differs)), float(error.max(initial=0))


def _places(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Where NaN or infinity stands on one side only, and where both sides are finite."""
    finite = np.isfinite(x) & np.isfinite(y)
    same = finite | (np.isnan(x) & np.isnan(y)) | (x == y)
    return ~same, finite
