"""The bench's second table, on small sweeps and in real processes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from qsmla.tools import bench_calls, bench_report
from qsmla.tools.bench import Settings
from qsmla.tools.bench_calls import Calls
from qsmla.tools.bench_measure import Spread
from qsmla.tools.bench_peers import Choice
from qsmla.tools.bench_shapes import Shape, build_cache, build_case


@pytest.fixture(scope="module")
def calls() -> Calls:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_calls, "COST_HEADS", (2,))
        patch.setattr(bench_calls, "COST_KEYS", (512, 1024, 4096))
        patch.setattr(bench_calls, "COST_ROWS", (1, 3))
        patch.setattr(bench_calls, "SCALING", Shape(1, 2, 512))
        patch.setattr(bench_calls, "_OVERHEAD_ROUNDS", 3)
        patch.setenv("QSMLA_NUM_WORKERS", "2")
        return bench_calls.run(Settings(rounds=2, cache_rows=2048, choice=Choice(alone=True)))


def test_a_fresh_process_compiles_and_the_next_one_does_not(calls: Calls):
    first = calls.first["qsmla"]
    assert 0 < first.warm < first.cold


def test_costs_are_of_the_lists_that_the_cache_holds(calls: Calls):
    assert [(cost.heads, cost.rows, cost.keys) for cost in calls.costs] == [
        (2, 1, 512),
        (2, 1, 1024),
        (2, 1, 512),
        (2, 3, 512),
    ]
    assert list(calls.flatness) == ["2 heads, 512 to 1024 keys", "2 heads, 1 to 3 rows"]
    for label, costs in zip(calls.flatness, (calls.costs[:2], calls.costs[2:]), strict=True):
        values = [cost.nanoseconds for cost in costs]
        assert calls.flatness[label] == pytest.approx(max(values) / min(values))
        assert min(values) > 0


def test_overhead_and_scaling_are_there(calls: Calls):
    assert list(calls.overhead) == ["qsmla"]
    assert calls.overhead["qsmla"].rounds >= 2
    assert calls.workers == 2
    assert list(calls.scaling) == ["qsmla"]
    assert calls.scaling["qsmla"] > 0
    assert {absent.name for absent in calls.absent} >= {"torch.compile bf16", "torch eager bf16"}


def test_json_holds_all_of_it(calls: Calls):
    shown = bench_report.calls_as_json(calls)
    assert set(shown) == {"workers", "overhead", "first", "scaling", "costs", "flatness", "absent"}
    assert shown["first"]["qsmla"] == {"cold": calls.first["qsmla"].cold, "warm": calls.first["qsmla"].warm}
    assert shown["costs"][0]["nanoseconds"] == calls.costs[0].nanoseconds


def test_what_is_timed_has_been_compiled_and_found_right(monkeypatch: pytest.MonkeyPatch):
    """A compiler's seconds were in the ratios once: a slow first call got two rounds, itself one of them."""
    original = bench_calls.product
    made: list[str] = []

    def product(case, target):
        contender = original(case, target)

        def output(result):
            made.append(case.name)
            return contender.output(result)

        return dataclasses.replace(contender, output=output)

    def interleave(calls, rounds):
        assert len(made) == len(calls)
        made.clear()
        return {name: Spread.of([1.0, 1.0]) for name in calls}

    monkeypatch.setattr(bench_calls, "product", product)
    monkeypatch.setattr(bench_calls, "interleave", interleave)
    cache = build_cache(1024, "int8", np.random.default_rng(0))
    cases = [build_case(Shape(rows, 2, 512), cache, "int8", np.random.default_rng(0)) for rows in (1, 3)]
    assert [cost.rows for cost in bench_calls._costs(cases, 2, Choice(alone=True))] == [1, 3]


def test_one_worker_scales_with_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench_calls, "_overhead", lambda *arguments: {})
    monkeypatch.setattr(bench_calls, "_first_calls", lambda *arguments: {})
    monkeypatch.setattr(bench_calls, "COST_HEADS", ())
    settings = Settings(rounds=2, workers=1, cache_rows=512, choice=Choice(alone=True))
    calls = bench_calls.run(settings)
    assert calls.scaling == {}
    assert [(absent.name, absent.reason) for absent in calls.absent] == [("scaling", "there is one worker")]


def test_a_child_that_fails_is_absent_with_its_reason():
    absent: list[bench_calls.Absent] = []
    assert bench_calls._first_calls("int8", Choice("llvm-cpu:nonsense", alone=True), absent) == {}
    (one,) = absent
    assert one.name == "first call of qsmla"
    assert "nonsense" in one.reason
