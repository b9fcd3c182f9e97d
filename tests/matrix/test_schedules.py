"""The hand-written schedules of larger CPUs, on whatever CPU is here.

Wide vectors are compiled for narrower ones, and what takes an instruction of AVX-512 is done as a CPU
without it would. On a CPU of the schedule's own kind the matrix runs the schedule itself.
"""

from __future__ import annotations

import dataclasses

import pytest
from matrix.cases import Case, cases
from matrix.mla_cases import MlaCase, mla_cases
from tolerance import assert_close

from qsmla.compiler.build import build_artifact, plan
from qsmla.compiler.cache import ArtifactCache
from qsmla.compiler.targets import Target
from qsmla.ir.schedule import AVX512, AVX512_BF16, Schedule
from qsmla.runtime.operator import load_artifact
from qsmla.tools.stages import reference_of

SCHEDULES = (
    dataclasses.replace(AVX512, name="avx512_on_avx2", tables="pshufb"),
    dataclasses.replace(AVX512_BF16, name="avx512_bf16_on_avx2", tables="pshufb", pairs="widened"),
)
TARGET = "llvm-cpu:x86-64-v3"

by_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.name)


@by_schedule
@pytest.mark.parametrize("case", [*cases("some"), *mla_cases("some")], ids=lambda case: case.name)
def test_case(schedule: Schedule, case: Case | MlaCase) -> None:
    if reason := Target.parse(TARGET).unmet():
        pytest.skip(reason)
    if not schedule.serves(case.spec):
        pytest.skip(f"{schedule.name} has no body for {case.spec.query_dtype} queries")
    arguments = case.arguments()
    work = plan(case.spec, TARGET, schedule)
    artifact = ArtifactCache().get_or_build(work.key, work.record.source_hash, lambda: build_artifact(work))
    kernel = load_artifact(artifact)
    output, lse = kernel(**arguments, return_softmax_lse=True)
    assert_close(output, reference_of(case.spec, arguments), lse)
