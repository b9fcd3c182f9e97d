"""Contenders checked and then timed in turn, so that a machine's drift and noise fall on all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LARGEST_ERROR: Final = 0.01
"""Allowed |difference| / |reference| (Frobenius norms): all contenders multiply bfloat16 numbers."""
PAUSE_S: Final = 0.03
"""Before a contender's turn: threads of an OpenMP runtime spin on behind their own call, on the cores that
the next contender needs. GNU's look 300,000 times, each of which takes 40 and more cycles: with a pause of
5 ms the next contender was up to 40 % slower, with 30 ms it is as fast as without any spinning."""
WARM_UP_S: Final = 0.02
"""A turn begins with untimed calls for so long: whoever had the turn before, and the pause, leave other
threads, code and memory in the caches, and a core that has slept takes some calls to be as fast as before."""
WARM_UP_BELOW_S: Final = 0.1
"""Calls longer than this hardly feel how they begin, and get none."""

BUDGET_S: Final = 3.0
"""For the timed calls of one contender on one shape."""

OWN: Final = "qsmla"


@dataclass(frozen=True, eq=False)
class Expected:
    """What index set 0 has to give."""

    rows: npt.NDArray[np.int64]
    """Which query rows are compared."""
    output: npt.NDArray[np.float64]
    """[len(rows), heads, 512]."""


@dataclass(frozen=True, eq=False)
class Contender:
    """One way to compute a case.

    Attributes:
        name: as the tables have it.
        call: from a number, which says what index set to take, to a result; this is what is timed.
        output: from such a result to [rows, heads, 512] float32; not timed.
        expected: where its inputs are its own; None: the case's.
    """

    name: str
    call: Callable[[int], Any]
    output: Callable[[Any], npt.NDArray[np.float32]]
    expected: Expected | None = None


@dataclass(frozen=True)
class Absent:
    """A contender or a roof that is not measured, and why, in one line."""

    name: str
    reason: str


@dataclass(frozen=True)
class Spread:
    """Seconds of one call over the rounds."""

    median: float
    minimum: float
    p90: float
    rounds: int

    @staticmethod
    def of(seconds: Sequence[float]) -> Spread:
        """The spread of at least two measurements."""
        p90 = statistics.quantiles(seconds, n=10, method="inclusive")[-1]
        return Spread(statistics.median(seconds), min(seconds), p90, len(seconds))


@dataclass(frozen=True)
class Timing:
    """A contender on a case; seconds.

    Attributes:
        name: the contender's.
        error: |difference| / |reference| of its result.
        first: its first call, with whatever it compiles then.
        spread: the timed calls.
    """

    name: str
    error: float
    first: float
    spread: Spread


def relative_error(output: npt.NDArray[np.float32], expected: Expected) -> float:
    """|difference| / |reference| of the rows that are compared."""
    difference = output[expected.rows].astype(np.float64) - expected.output
    return float(np.linalg.norm(difference) / np.linalg.norm(expected.output))


def admit(
    contenders: Sequence[Contender], expected: Expected
) -> tuple[dict[str, tuple[float, float]], list[Absent]]:
    """Call each contender once; the error and the seconds of those that are right, and who is not.

    Raises:
        ValueError: qsmla itself is wrong.
    """
    admitted: dict[str, tuple[float, float]] = {}
    refused: list[Absent] = []
    for contender in contenders:
        begin = time.perf_counter()
        try:
            result = contender.call(0)
        except Exception as error:
            if contender.name == OWN:
                raise
            refused.append(Absent(contender.name, f"failed: {one_line(error)}"))
            continue
        first = time.perf_counter() - begin
        distance = relative_error(contender.output(result), contender.expected or expected)
        if distance <= LARGEST_ERROR:
            admitted[contender.name] = distance, first
            continue
        reason = f"wrong: relative error {distance:.3g}; allowed: {LARGEST_ERROR}"
        if contender.name == OWN:
            raise ValueError(f"{OWN} is {reason}")
        refused.append(Absent(contender.name, reason))
    return admitted, refused


def interleave(
    calls: Mapping[str, Callable[[int], Any]],
    rounds: int,
    pause: float = PAUSE_S,
    budget: float = BUDGET_S,
) -> dict[str, Spread]:
    """Time the calls in turn, round after round; a first round warms up, and so do calls of each turn.

    Each call gets another number, and so another index set, so that none finds in the cache what the one
    before it read; and each round begins with another call.

    Args:
        calls: from a number to anything.
        rounds: timed calls of each, at least 2.
        pause: seconds to sleep before each turn.
        budget: seconds for all calls of one kind; slow ones get fewer rounds, but no fewer than 2.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    wanted = dict.fromkeys(calls, rounds)
    first: dict[str, float] = {}
    names = list(calls)
    number = 0
    for index in range(rounds + 1):
        start = index % max(1, len(names))
        for name in names[start:] + names[:start]:
            if len(seconds[name]) >= wanted[name]:
                continue
            time.sleep(pause)
            if first.get(name, WARM_UP_BELOW_S) < WARM_UP_BELOW_S:
                number = _warm_up(calls[name], number)
            number += 1
            begin = time.perf_counter()
            calls[name](number)
            taken = time.perf_counter() - begin
            if index == 0:
                first[name] = taken
                wanted[name] = min(rounds, max(2, int(budget / taken)))
            if index or 3 * taken > budget:
                seconds[name].append(taken)
    return {name: Spread.of(each) for name, each in seconds.items()}


def _warm_up(call: Callable[[int], Any], number: int) -> int:
    """Call for a while, at least once, with numbers behind `number`; the last of them."""
    end = time.perf_counter() + WARM_UP_S
    while True:
        number += 1
        call(number)
        if time.perf_counter() >= end:
            return number


def one_line(error: BaseException) -> str:
    """What an exception says first, short enough for a table's footnote."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
