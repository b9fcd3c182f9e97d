"""How a kernel is arranged for a class of machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from qsmla.ir.spec import Spec

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
        lanes: float32 values in a vector register that the body is written out for; 0: left to the compiler.
        registers: how many such registers there are.
        pairs: how pairs of bfloat16 are multiplied and added: "vdpbf16ps", the instruction; "widened", what
            every CPU has; "": the body has none.
        tables: what looks hifloat8's codes up in registers: "vpermi2w" or "pshufb".
        compile_flags: flags of `iree-compile` that the body needs.
    """

    name: str
    contraction_dtype: str
    lanes: int = 0
    registers: int = 0
    pairs: str = ""
    tables: str = ""
    compile_flags: tuple[str, ...] = ()

    def serves(self, spec: Spec) -> bool:
        """Whether the schedule has a body for a kernel; the portable one has one for each."""
        return not self.pairs or spec.query_dtype == "bfloat16"

    @property
    def label(self) -> str:
        """The schedule as one word."""
        return f"{self.name}_{self.contraction_dtype}"


LINALG_QUERY: Final = Schedule(name="linalg", contraction_dtype="query")
"""Portable, 16-bit operands: what GPUs feed their matrix units."""

LINALG_FLOAT32: Final = Schedule(name="linalg", contraction_dtype="float32")
"""Portable, float32 operands: CPUs, where a 16-bit product is emulated unless hand-scheduled."""

# A block of keys lies on the stack.
_STACK: Final = ("--iree-llvmcpu-stack-allocation-limit=1048576",)

AVX2: Final = Schedule(name="avx2", contraction_dtype="float32", lanes=8, registers=16, compile_flags=_STACK)
"""Hand-scheduled for x86-64 CPUs with AVX2, FMA and F16C."""

AVX512: Final = Schedule(
    name="avx512",
    contraction_dtype="float32",
    lanes=16,
    registers=32,
    tables="vpermi2w",
    compile_flags=_STACK,
)
"""The same for CPUs with AVX-512 (F, BW, DQ, VL)."""

AVX512_BF16: Final = Schedule(
    name="avx512_bf16",
    contraction_dtype="query",
    lanes=16,
    registers=32,
    pairs="vdpbf16ps",
    tables="vpermi2w",
    compile_flags=_STACK,
)
"""The same for CPUs with AVX512-BF16, whose dot products take pairs of bfloat16: bfloat16 queries only."""

SCHEDULES: Final = {
    schedule.label: schedule for schedule in (LINALG_QUERY, LINALG_FLOAT32, AVX2, AVX512, AVX512_BF16)
}
