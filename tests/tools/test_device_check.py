"""The check of a machine with a GPU: its result file, and a dry run on the CPU."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from matrix.mla_cases import HEADS

from qsmla.compiler.targets import Target
from qsmla.ir.spec import HEAD_COUNTS
from qsmla.tools import device_check
from qsmla.tools.device_check import SHAPES, Measured, Report, Shape, TargetReport

SMALL = Shape("decode, 2 requests", 2, 2, 16, 512, 64)
MEASURED = Measured(SMALL, False, None, 20, 1.5, 0.002, 0.001, 0.5, 12.0, 0.25)
REPORT = Report(
    format=1,
    versions={"qsmla": "0.1.0", "iree": "3.13.0"},
    machine="Linux",
    seconds=100.0,
    dry_run=False,
    targets=[
        TargetReport("cuda:sm_80", "NVIDIA H200", None, 30, 30, [], [MEASURED], ["prefill"]),
        TargetReport("vulkan", None, "no driver", 0, 0, [], [], []),
    ],
)


def test_shapes_are_flashmla_s():
    decode = [shape for shape in SHAPES if shape.name.startswith("decode")]
    assert [shape.requests for shape in decode] == [2, 64, 74, 128]
    assert {(shape.rows, shape.heads, shape.keys, shape.selected) for shape in decode} == {
        (2, 128, 32768, 2048)
    }
    (prefill,) = (shape for shape in SHAPES if shape.name == "prefill")
    assert (prefill.requests * prefill.rows, prefill.heads, prefill.selected) == (4096, 128, 2048)


def test_the_result_file_comes_back():
    assert Report.from_json(REPORT.to_json()) == REPORT
    assert json.loads(REPORT.to_json())["targets"][0]["measured"][0]["shape"]["heads"] == 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": 2}', "format is 2; allowed: 1"),
        ("[]", "no result file"),
        ('{"format": 1}', "no result file"),
        ('{"format": 1, "targets": [], "speed": 3}', "no result file"),
    ],
)
def test_other_files_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Report.from_json(text)


def test_a_report_passes_if_what_ran_is_right():
    cuda, vulkan = REPORT.targets
    assert REPORT.passed
    for wrong in (
        [vulkan],
        [dataclasses.replace(cuda, failures=["a case"])],
        [dataclasses.replace(cuda, measured=[dataclasses.replace(MEASURED, error="wrong")])],
    ):
        assert not dataclasses.replace(REPORT, targets=wrong).passed


def test_a_dry_run_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "result.json"
    assert device_check.main(["--dry-run", "-o", str(path)]) == 0
    report = Report.from_json(path.read_text())
    (target,) = report.targets
    assert report.dry_run
    assert (target.device, target.cases, target.passed, target.left_out) == ("default", 4, 4, [])
    assert [one.shape for one in target.measured] == list(device_check.DRY_SHAPES)
    for one in target.measured:
        rows = one.shape.requests * one.shape.rows
        assert 0 < one.minimum_s <= one.median_s
        assert 0 < one.tolerance_used <= 1
        flops = 2 * rows * one.shape.heads * one.shape.selected * 1088
        assert one.tflops == pytest.approx(flops / one.median_s / 1e12)
        moved = rows * (one.shape.selected * 656 + 2 * one.shape.heads * 1088)
        assert one.gbytes_per_s == pytest.approx(moved / one.median_s / 1e9)
    printed = capsys.readouterr().out
    assert "4 of 4 cases pass" in printed
    assert "decode, 2 requests: " in printed


def test_the_matrix_is_of_both_operators():
    cases = list(device_check._matrix())
    heads = {
        operator: {case.spec.heads for case in cases if case.spec.operator == operator}
        for operator in ("kv_quant_sparse_flash_attention", "quant_sparse_flash_mla")
    }
    assert heads["kv_quant_sparse_flash_attention"] == set(HEAD_COUNTS)
    assert heads["quant_sparse_flash_mla"] == set(HEADS)
    # A dry run, of the first cases, has both.
    assert len({case.spec.operator for case in cases[:4]}) == 2


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "result.json"
    assert device_check.main(["--target", "vulkan:adreno", "-o", str(path)]) == 1
    assert "vulkan:adreno: not run: " in capsys.readouterr().out
    assert Report.from_json(path.read_text()).targets[0].device is None


def test_time_that_runs_out_leaves_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device_check, "BUDGET_S", -1.0)
    (target,) = device_check.run(("llvm-cpu",), True).targets
    assert target.left_out == ["4 cases of the matrix", "decode, 2 requests", "prefill"]
    assert (target.cases, target.measured) == (0, [])


def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch):
    operator = device_check.qsmla.kv_quant_sparse_flash_attention

    class Wrong:
        def __init__(self, right):
            self._right = right

        def numpy(self):
            output = self._right.numpy()
            output[0, 0, 0] += 1
            return output

    monkeypatch.setattr(
        device_check.qsmla, "kv_quant_sparse_flash_attention", lambda **given: Wrong(operator(**given))
    )
    measured = device_check.measure(SMALL, Target.parse("llvm-cpu"))
    assert measured.error is not None
    assert "of the tolerance" in measured.error


def test_requests_share_pages_where_the_cache_would_be_too_large():
    call = device_check.build_call(SMALL, pages=5)
    assert call["key"].shape == (5, 64, 1, 656)
    assert call["block_table"].shape == (2, 8)
    assert set(np.unique(call["block_table"])) == set(range(5))
    ids = call["sparse_indices"]
    assert ids.shape == (4, 1, 64)
    assert (np.diff(ids, axis=-1) > 0).all()
    assert ids.max() < 512
