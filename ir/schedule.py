"""How a kernel is arranged for a class of machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KEY_BLOCK: Final = 256
"""Key slots of one work item. A row's keys are cut into blocks of this many, each block gives one partial
result, and the partial results fold in block order: the same for every schedule, or bits would differ."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One arrangement of the attention body.

    Attributes:
        name: the template of the body; "linalg" is portable.
        contraction_dtype: what both matmuls multiply: "query" for the query's own dtype, "float32" to
            convert after rounding, for machines without 16-bit dot products. The products are exact in
            float32 either way, so only the order of the sums can differ.
        compile_flags: flags of `iree-compile` that the body needs.
    """

    name: str
    contraction_dtype: str
    compile_flags: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The schedule as one word."""
        return f"{self.name}_{self.contraction_dtype}"


LINALG_QUERY: Final = Schedule(name="linalg", contraction_dtype="query")
"""Portable, 16-bit operands: what GPUs feed their matrix units."""

LINALG_FLOAT32: Final = Schedule(name="linalg", contraction_dtype="float32")
"""Portable, float32 operands: CPUs, where a 16-bit product is emulated unless hand-scheduled."""

SCHEDULES: Final = {schedule.label: schedule for schedule in (LINALG_QUERY, LINALG_FLOAT32)}
