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
    assert sizes.pass_keys <= sizes.key_rows < sizes.pass_keys + sizes.key_step
    assert sizes.several_passes == (sizes.pass_keys != KEY_BLOCK)
    if sizes.several_passes:
        # A pass begins where a step does, and no head is done twice.
        assert sizes.pass_keys % sizes.key_step == 0
        assert heads % sizes.group == 0
    assert NOPE_DIM % (sizes.value_vectors * sizes.lanes) == 0
    assert [head for block in sizes.head_blocks for head in block] == list(range(sizes.group))
    if schedule.pairs:
        assert sizes.key_step % 2 == 0
    if heads < 8:
        assert sizes.group == heads
        # Slots are loaded as vectors.
        assert KEY_BLOCK % sizes.key_step == 0
    else:
        assert sizes.group <= heads
        assert sizes.group % sizes.lanes == 0


@by_schedule
@pytest.mark.parametrize("heads", range(1, 129))
def test_sums_fit_the_registers(schedule: Schedule, heads: int) -> None:
    sizes = blocking(schedule, heads)
    vectors = sizes.group // sizes.lanes if heads >= 8 else heads
    scores = sizes.keys_at_once * vectors
    values = max(len(block) for block in sizes.head_blocks) * sizes.value_vectors
    assert min(scores, values) >= 5
    # The sums, the factors of one side, and one that is broadcast.
    assert scores + (vectors if heads >= 8 else 1) < schedule.registers
    assert values + (sizes.value_vectors if heads >= 8 else 1) < schedule.registers


def test_thirty_two_and_forty_eight_heads_are_whole_groups() -> None:
    for schedule in (AVX2, AVX512, AVX512_BF16):
        for heads in (8, 16, 32, 48, 64, 128):
            assert heads % blocking(schedule, heads).group == 0
