"""The steps of hand-scheduled loops: they cover everything, and fit the registers."""

from __future__ import annotations

import pytest

from qsmla.ir.blocking import blocking
from qsmla.ir.schedule import AVX2, AVX512, AVX512_BF16, KEY_BLOCK, Schedule
from qsmla.ir.spec import NOPE_DIM

by_schedule = pytest.mark.parametrize("schedule", [AVX2, AVX512, AVX512_BF16], ids=lambda each: each.name)


@by_schedule
@pytest.mark.parametrize("heads", range(1, 129))
def test_steps_come_out_even_or_overlap(schedule: Schedule, heads: int) -> None:
    sizes = blocking(schedule, heads)
    assert sizes.lanes in (8, 16)
    assert sizes.lanes <= schedule.lanes
    assert sizes.key_step % sizes.keys_at_once == 0
    assert KEY_BLOCK <= sizes.key_rows < KEY_BLOCK + sizes.key_step
    assert sizes.value_vectors * sizes.lanes <= NOPE_DIM
    if schedule.pairs:
        assert sizes.key_step % 2 == 0
    if heads < 8:
        assert sizes.group == heads
        # Slots are loaded as vectors, and panels of columns do not overlap.
        assert KEY_BLOCK % sizes.key_step == NOPE_DIM % (sizes.value_vectors * sizes.lanes) == 0
    else:
        assert sizes.group <= heads
        assert sizes.group % sizes.lanes == sizes.group % sizes.heads_at_once == 0


@by_schedule
@pytest.mark.parametrize("heads", range(1, 129))
def test_sums_fit_the_registers(schedule: Schedule, heads: int) -> None:
    sizes = blocking(schedule, heads)
    vectors = sizes.group // sizes.lanes if heads >= 8 else heads
    scores, values = sizes.keys_at_once * vectors, sizes.heads_at_once * sizes.value_vectors
    # Those of a step, one factor of the other side, and one to hold what is broadcast.
    assert min(scores, values) >= min(schedule.registers // 4, 5)
    assert scores + (vectors if heads >= 8 else 1) < schedule.registers
    assert values + 1 < schedule.registers


def test_thirty_two_and_forty_eight_heads_are_whole_groups() -> None:
    for schedule in (AVX2, AVX512, AVX512_BF16):
        for heads in (8, 16, 32, 48, 64, 128):
            assert heads % blocking(schedule, heads).group == 0
