"""Targets: names, flags, and whether this machine can run them."""

from __future__ import annotations

import zipfile

import pytest

from qsmla.compiler import cpu, drivers, toolchain
from qsmla.compiler.targets import CUDA_ARCHITECTURES, Target, common_schedule, compile_flags, parse_targets
from qsmla.compiler.vulkan import PROFILES
from qsmla.ir.schedule import AVX2, AVX512, AVX512_BF16, LINALG_FLOAT32, LINALG_QUERY
from qsmla.ir.spec import KernelSpec, MlaSpec

LABELS = [
    *(f"llvm-cpu:{name}" for name in cpu.CPU_NAMES),
    *(f"vulkan:{name}" for name in PROFILES),
    *(f"cuda:{name}" for name in CUDA_ARCHITECTURES),
]
TWO_DISPATCHES = """
func.func @product(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.mulf %a, %b : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @sum(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = arith.addf %a, %b : tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""


def flags_of(targets: str) -> tuple[str, ...]:
    parsed = parse_targets(targets)
    return compile_flags(parsed, common_schedule(parsed, KernelSpec()))


@pytest.mark.parametrize("label", LABELS)
def test_label_and_fields_give_the_target_back(label):
    target = Target.parse(label)
    assert target.label == label
    assert Target.parse(target.label) == target
    assert Target.from_dict(target.to_dict()) == target


@pytest.mark.parametrize("label", [*LABELS, "llvm-cpu,vulkan:lavapipe,cuda", "llvm-cpu:znver4,vulkan:rdna3"])
def test_compiler_takes_the_flags_without_a_word(label, tmp_path):
    source, vmfb = tmp_path / "tiny.mlir", tmp_path / "tiny.vmfb"
    source.write_text(TWO_DISPATCHES)
    for target in parse_targets(label):
        for name, text in target.files.items():
            (tmp_path / name).write_text(text)
    command = [toolchain.find_tool(), str(source), "-o", str(vmfb), *flags_of(label)]
    finished = toolchain.run(command, 60, str(tmp_path))
    assert (finished.returncode, finished.stderr) == (0, "")
    names = zipfile.ZipFile(vmfb).namelist()
    for target in parse_targets(label):
        suffix = {
            "llvm-cpu": f"elf_{'x86_64' if target.architecture == 'x86_64' else 'arm_64'}.so",
            "vulkan": "vulkan_spirv_fb.fb",
            "cuda": "cuda_nvptx_fb.fb",
        }[target.kind]
        # A CPU's or CUDA's own two dispatches are linked into one; those of several targets must not be.
        linked = len(parse_targets(label)) == 1 and target.kind != "vulkan"
        assert sum(name.endswith(suffix) for name in names) == (1 if linked else 2)
        assert any(target.executable in name for name in names)


def test_vulkan_without_a_device_asks_for_a_profile(monkeypatch):
    monkeypatch.setattr(drivers, "find", lambda kind: drivers.Found((), "there is no driver"))
    with pytest.raises(ValueError, match=r"'vulkan', and here is no Vulkan device .*vulkan:lavapipe"):
        Target.parse("vulkan")


def test_defaults():
    assert Target.parse("llvm-cpu").label == "llvm-cpu:host"
    assert Target.parse("llvm-cpu").cpu_features == cpu.host().features
    assert Target.parse("cuda").label == "cuda:sm_80"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vulkan:", ["target is 'vulkan:'"]),
        ("vulkan:geforce", ["vulkan:geforce", "vulkan:ampere"]),
        ("llvm-cpu:z80", ["llvm-cpu:z80", "llvm-cpu:x86-64-v3"]),
        ("cuda:sm_90", ["cuda:sm_90", "cuda:sm_89"]),
        ("metal", ["metal", "llvm-cpu, vulkan, cuda"]),
        ("", ["names none"]),
        (",", ["names none"]),
        ("cuda:sm_80,cuda:sm_89", ["cuda:sm_80, cuda:sm_89", "one target of each kind"]),
    ],
)
def test_wrong_text_is_named(text, words):
    with pytest.raises(ValueError, match="target") as caught:
        parse_targets(text)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("target", [3, None, [3]])
def test_wrong_kind_is_a_type_error(target):
    with pytest.raises(TypeError, match=r"target is a (int|NoneType)"):
        parse_targets(target)


def test_texts_targets_and_sequences_mix():
    lavapipe = Target.parse("vulkan:lavapipe")
    expected = (Target.parse("llvm-cpu"), lavapipe)
    assert parse_targets("llvm-cpu,vulkan:lavapipe") == expected
    assert parse_targets(["llvm-cpu", lavapipe]) == expected
    assert parse_targets(lavapipe) == (lavapipe,)


def test_cpu_flags_name_every_feature_and_no_model():
    flags = flags_of("llvm-cpu:znver4")
    assert "--iree-llvmcpu-target-cpu=x86-64" in flags
    assert "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu" in flags
    features = next(flag for flag in flags if "cpu-features" in flag).partition("=")[2]
    assert features.split(",") == [f"+{name}" for name in cpu.cpu("znver4").features]
    assert not any("host" in flag or "znver" in flag for flag in flags_of("llvm-cpu"))


def test_schedule_flags_are_there_once():
    targets = parse_targets("llvm-cpu")
    flags = compile_flags(targets, common_schedule(targets, KernelSpec()))
    assert len(flags) == len(set(flags))
    assert set(targets[0].schedules[0].compile_flags) <= set(flags)


def test_targets_that_disagree_take_the_portable_schedule():
    def chosen(text, spec=None):
        return common_schedule(parse_targets(text), spec or KernelSpec())

    half = KernelSpec(query_dtype="float16")
    assert chosen("llvm-cpu:x86-64-v2") == chosen("llvm-cpu:neoverse-v1") == LINALG_FLOAT32
    assert chosen("llvm-cpu:x86-64-v3") == chosen("llvm-cpu:x86-64-v3", half) == AVX2
    assert chosen("llvm-cpu:x86-64-v4") == chosen("llvm-cpu:znver4", half) == AVX512
    assert chosen("llvm-cpu:znver4") == chosen("llvm-cpu:sapphirerapids", MlaSpec()) == AVX512_BF16
    assert chosen("cuda,vulkan:ada") == LINALG_QUERY
    assert chosen("llvm-cpu:x86-64-v3,cuda") == LINALG_QUERY


def test_unmet_names_what_the_cpu_lacks(monkeypatch):
    v3 = cpu.cpu("x86-64-v3").features
    monkeypatch.setattr(cpu, "host", lambda: cpu.Cpu("x86_64", v3))
    assert Target.parse("llvm-cpu:x86-64-v3").unmet() is None
    assert Target.parse("llvm-cpu:x86-64").unmet() is None
    reason = Target.parse("llvm-cpu:x86-64-v4").unmet()
    assert reason is not None
    assert "avx512bw, avx512cd, avx512dq, avx512f, avx512vl" in reason
    assert "avx2" not in reason
    assert Target.parse("llvm-cpu:neoverse-n1").unmet() == (
        "it is compiled for aarch64, and this machine is x86_64"
    )


def test_host_runs_here():
    assert Target.parse("llvm-cpu").unmet() is None
