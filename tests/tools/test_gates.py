"""The gates that need no GPU: ptxas on kernels of the matrices and the demo's, spirv-val likewise.

`--whole-matrix` takes every kernel; without it the kernels are those that back ends compile in a normal run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
from pathlib import Path

import pytest
from matrix.cases import some_specs, specs
from matrix.mla_cases import mla_specs

import qsmla
from qsmla.compiler import cuda
from qsmla.compiler.vulkan import PROFILES
from qsmla.ir.spec import KernelSpec, Spec
from qsmla.runtime.checks import check_call
from qsmla.tools import executables, ptx_gate, spirv_gate
from qsmla.tools.demo import build_decode_step

RECORDS = Path(__file__).parents[2] / "build" / "ptx-gate"
DEMO = check_call(**build_decode_step((64,), heads=128).arguments).spec
ALL_SPECS = [*specs(), DEMO, *mla_specs()]
SOME_SPECS = [*some_specs(), DEMO, *(spec for spec in mla_specs() if spec.heads in (7, 33, 128))]
needs_ptxas = pytest.mark.skipif(
    ptx_gate.assembler() is None, reason="ptxas is not on the path; it comes with CUDA's toolkit (cuda-nvcc)"
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "spec" in metafunc.fixturenames:
        chosen = ALL_SPECS if metafunc.config.getoption("--whole-matrix") else SOME_SPECS
        metafunc.parametrize("spec", chosen, ids=lambda spec: spec.label)


@pytest.fixture
def spirv_val() -> None:
    if spirv_gate.validator() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs spirv-val: apt-get install spirv-tools")
        pytest.skip("spirv-val is not on the path: apt-get install spirv-tools")


@needs_ptxas
def test_ptx_assembles_without_spills_on_tensor_cores(spec: Spec) -> None:
    artifact = qsmla.compile(spec, "cuda:sm_80")
    record = {}
    for architecture in ptx_gate.ARCHITECTURES:
        entries = ptx_gate.assemble(artifact, architecture)
        record[architecture] = [dataclasses.asdict(entry) for entry in entries]
        assert ptx_gate.faults(entries, spec.heads) == []
        # Q.K of the nope columns, of the rope columns where there are any, and P.V.
        matmuls = [entry for entry in entries if entry.is_matmul]
        assert len(matmuls) == (3 if isinstance(spec, KernelSpec) else 2)
        assert all(bool(entry.mma) == (spec.heads >= 16) for entry in matmuls)
        for entry in entries:
            assert 0 < entry.registers <= 255
            assert entry.registers * entry.threads <= 65536
            # What a workgroup gets without asking the driver for more.
            assert entry.shared_bytes <= 48 << 10
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{spec.label}.json").write_text(json.dumps(record, indent=1))


def test_spirv_is_valid(spec: Spec, spirv_val: None) -> None:
    assert spirv_gate.validate(qsmla.compile(spec, "vulkan:lavapipe")) >= 12


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "lavapipe"])
def test_spirv_of_every_profile_is_valid(profile: str, spirv_val: None) -> None:
    spec = KernelSpec(heads=16, kv_dtype="float8_e4m3")
    assert spirv_gate.validate(qsmla.compile(spec, f"vulkan:{profile}")) >= 12


@needs_ptxas
@pytest.mark.parametrize("architecture", ["cuda:sm_86", "cuda:sm_89", "cuda:sm_120"])
def test_newer_architectures_compile(architecture: str) -> None:
    artifact = qsmla.compile(KernelSpec(heads=16), architecture)
    (text,) = executables.ptx(artifact)
    assert f".target {architecture.removeprefix('cuda:')}" in text
    assert text.count("mma.sync") >= 3


@needs_ptxas
def test_contractions_alone_are_told_how_many_workgroups_fit() -> None:
    """It keeps ptxas from spilling; other entry points are left to it."""
    (text,) = executables.ptx(qsmla.compile(KernelSpec(heads=32), "cuda:sm_80"))
    told = {}
    for entry in text.split(".visible .entry ")[1:]:
        told[entry.partition("(")[0]] = f".minnctapersm {cuda.WORKGROUPS}\n" in entry
    assert {name for name, is_told in told.items() if is_told} == {name for name in told if "matmul" in name}
    assert sum(told.values()) == 3


@pytest.mark.parametrize("target", ["llvm-cpu", "vulkan:lavapipe", "cuda:sm_80"])
def test_a_kernel_of_128_heads_compiles_within_ten_seconds(target: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    qsmla.compile(DEMO, target, cache=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of processor time: what else the machine does is none of the compiler's business.
    assert 0.1 < after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


@needs_ptxas
def test_ptx_gate_reports_spills_and_scalar_matmuls() -> None:
    good = ptx_gate.Entry("attend_dispatch_4_matmul_like_x", "sm_80", 64, 128, 17408, 0, 0, 32, 0)
    assert ptx_gate.faults([good, good], 128) == []
    spilling = dataclasses.replace(good, spill_bytes=8)
    assert ptx_gate.faults([good, spilling], 128) == [f"{good.name} spills 8 bytes on sm_80"]
    scalar = dataclasses.replace(good, mma=0, scalar=128)
    assert ptx_gate.faults([good, scalar], 16) == [f"{good.name} has no mma.sync"]
    assert ptx_gate.faults([good, scalar], 8) == []
    assert ptx_gate.faults([good], 8) == ["1 matmuls were recognised; there are Q.K and P.V"]


@needs_ptxas
def test_gates_refuse_an_artifact_of_another_kind(kernel_artifact: qsmla.Artifact) -> None:
    with pytest.raises(ValueError, match="has no PTX; compile it for cuda"):
        ptx_gate.assemble(kernel_artifact, "sm_80")


@needs_ptxas
def test_what_ptxas_refuses_is_an_error() -> None:
    artifact = qsmla.compile(KernelSpec(heads=16), "cuda:sm_89")
    with pytest.raises(ValueError, match="ptxas for sm_80 ended with"):
        ptx_gate.assemble(artifact, "sm_80")


def test_invalid_spirv_is_found(
    spirv_val: None, kernel_artifact: qsmla.Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="has no SPIR-V; compile it for vulkan"):
        spirv_gate.validate(kernel_artifact)
    artifact = qsmla.compile(KernelSpec(heads=16), "vulkan:lavapipe")
    modules = executables.spirv(artifact)
    # A module without its last instructions: the function does not end.
    monkeypatch.setattr(spirv_gate, "spirv", lambda _: [*modules[:2], modules[2][:-8]])
    with pytest.raises(ValueError, match="module 2 of 3 is not valid"):
        spirv_gate.validate(artifact)


def test_gates_print_and_fail_as_commands(
    tmp_path: Path, kernel_artifact: qsmla.Artifact, spirv_val: None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernel.vmfb"
    qsmla.compile(KernelSpec(heads=16), "vulkan:lavapipe", output=path)
    assert spirv_gate.main([str(path)]) == 0
    assert "modules are valid" in capsys.readouterr().out
    kernel_artifact.write(path)
    assert spirv_gate.main([str(path)]) == 1
    assert "has no SPIR-V" in capsys.readouterr().err
