"""How much of a hand-scheduled kernel's work is in registers at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qsmla.ir.schedule import KEY_BLOCK, Schedule

_FEW_HEADS = 8
"""Below this many heads, heads as lanes would leave lanes empty."""
_PASS_KEYS = 64
"""About as many keys are done in a pass: 150 KB of float32."""


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """The sizes that the loops of a hand-scheduled kernel step by.

    Attributes:
        lanes: float32 values in a vector.
        group: heads done together; a multiple of `lanes`. With few heads, all.
        keys_at_once: keys whose scores are in registers together.
        key_step: what the number of keys is rounded up to.
        pass_keys: keys that are gathered and done at a time; a multiple of `key_step`, or all of a block.
        head_blocks: the heads of a group, in blocks whose values are in registers together.
        value_vectors: vectors of columns of a value in registers, for each head of a block.
    """

    lanes: int
    group: int
    keys_at_once: int
    key_step: int
    pass_keys: int
    head_blocks: tuple[range, ...]
    value_vectors: int

    @property
    def key_rows(self) -> int:
        """Rows of keys that a pass may need: whole steps."""
        return math.ceil(self.pass_keys / self.key_step) * self.key_step

    @property
    def several_passes(self) -> bool:
        """Whether a block of keys takes more than one pass."""
        return self.pass_keys < KEY_BLOCK


def blocking(schedule: Schedule, heads: int) -> Blocking:
    """The sizes for `heads` heads: sums enough to hide the latency of a multiply-add, registers to spare."""
    lanes = schedule.lanes
    if heads < _FEW_HEADS:
        # A sum a key and head, at most as many as lanes; and keys that divide the step.
        at_once = 1 << (lanes // heads).bit_length() - 1
        return Blocking(
            lanes=lanes,
            group=heads,
            keys_at_once=at_once,
            key_step=lanes,
            pass_keys=_pass_keys(heads, heads, lanes),
            head_blocks=(range(heads),),
            value_vectors=at_once,
        )
    # Heads are lanes: with fewer than the lanes, half vectors.
    lanes = min(lanes, heads // 8 * 8)
    if schedule.registers >= 32:
        # A factor that is the same for all lanes comes from memory, so that the sums have the registers.
        vectors, keys_at_once, heads_at_once = 1, 16, 8
    else:
        # 12 sums; a register more would have to be spilt.
        vectors = 2 if heads >= 2 * lanes else 1
        keys_at_once, heads_at_once = 12 // vectors, 6
    group = vectors * lanes
    return Blocking(
        lanes=lanes,
        group=group,
        keys_at_once=keys_at_once,
        key_step=keys_at_once,
        pass_keys=_pass_keys(heads, group, keys_at_once),
        head_blocks=tuple(
            range(first, min(first + heads_at_once, group)) for first in range(0, group, heads_at_once)
        ),
        value_vectors=2,
    )


def _pass_keys(heads: int, group: int, key_step: int) -> int:
    """Few enough to stay in the L2 cache; all of a block where groups overlap."""
    if heads % group:
        # A head that two groups do would have its sums of earlier passes counted twice.
        return KEY_BLOCK
    return math.ceil(_PASS_KEYS / key_step) * key_step
