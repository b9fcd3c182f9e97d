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
        name: how the body is written; "linalg" is portable.
        contraction_dtype: what both matmuls multiply: "query" for the query's own dtype, "float32" to
            convert after rounding, for machines without 16-bit dot products. The products are exact in
            float32 either way, so only the order of the sums can differ.
        compile_flags: flags of `iree-compile` that the body needs.
    """

    name: str
    contraction_dtype: str
    compile_flags: tuple[str, ...] = ()

    def serves(self, operator: str) -> bool:
        """Whether the schedule has a body for an operator; the portable one has one for each."""
        return self.name == "linalg" or operator == "kv_quant_sparse_flash_attention"

    @property
    def label(self) -> str:
        """The schedule as one word."""
        return f"{self.name}_{self.contraction_dtype}"


LINALG_QUERY: Final = Schedule(name="linalg", contraction_dtype="query")
"""Portable, 16-bit operands: what GPUs feed their matrix units."""

LINALG_FLOAT32: Final = Schedule(name="linalg", contraction_dtype="float32")
"""Portable, float32 operands: CPUs, where a 16-bit product is emulated unless hand-scheduled."""

AVX2: Final = Schedule(
    name="avx2",
    contraction_dtype="float32",
    # A block of keys in float32 lies on the stack.
    compile_flags=("--iree-llvmcpu-stack-allocation-limit=1048576",),
)
"""Hand-scheduled for x86-64 CPUs with AVX2, FMA and F16C."""

SCHEDULES: Final = {schedule.label: schedule for schedule in (LINALG_QUERY, LINALG_FLOAT32, AVX2)}
