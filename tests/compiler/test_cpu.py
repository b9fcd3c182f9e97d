"""CPU features: what a named CPU has, and what /proc/cpuinfo says."""

from __future__ import annotations

import pytest

from qsmla.compiler import cpu

ZEN4 = (
    "flags\t\t: fpu sse sse2 pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes avx f16c abm bmi1 avx2 bmi2 "
    "avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512_bf16 avx512vbmi avx512_vbmi2 gfni "
    "avx512_vnni avx512_bitalg avx512_vpopcntdq\n"
)
GRAVITON3 = "Features\t: fp asimd fphp asimdhp asimddp sve i8mm bf16\n"


def test_features_come_under_llvm_names():
    assert cpu.features_of_cpuinfo(ZEN4, "x86_64") == cpu.cpu("znver4").features
    assert cpu.features_of_cpuinfo(GRAVITON3, "aarch64") == ("bf16", "dotprod", "fullfp16", "i8mm")


def test_only_features_of_every_core_count():
    text = ZEN4 + ZEN4.replace("avx512_bf16 ", "").replace("gfni ", "")
    assert set(cpu.cpu("znver4").features) - set(cpu.features_of_cpuinfo(text, "x86_64")) == {
        "avx512bf16",
        "gfni",
    }


def test_no_cpuinfo_means_the_baseline():
    assert cpu.features_of_cpuinfo("", "x86_64") == ()
    assert cpu.features_of_cpuinfo("", "aarch64") == ()


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("x86-64", "x86-64-v2"),
        ("x86-64-v2", "x86-64-v3"),
        ("x86-64-v3", "x86-64-v4"),
        ("x86-64-v3", "znver3"),
        ("x86-64-v4", "icelake-server"),
        ("icelake-server", "znver4"),
        ("znver4", "znver5"),
        ("icelake-server", "sapphirerapids"),
        ("aarch64", "neoverse-n1"),
        ("neoverse-n1", "neoverse-v1"),
    ],
)
def test_named_cpus_nest(smaller, larger):
    assert cpu.cpu(smaller).architecture == cpu.cpu(larger).architecture
    assert set(cpu.cpu(smaller).features) <= set(cpu.cpu(larger).features)


def test_v3_is_what_the_psabi_says():
    expected = "cx16 popcnt sse3 sse4.1 sse4.2 ssse3 avx avx2 bmi bmi2 f16c fma lzcnt movbe"
    assert set(cpu.cpu("x86-64-v3").features) == set(expected.split())


def test_host_and_generic_share_an_architecture():
    assert cpu.cpu("generic") == cpu.Cpu(cpu.host().architecture, ())
    assert cpu.cpu("host") == cpu.host()
    assert cpu.host_name()


def test_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="CPU is 'z80'; allowed: host, generic, x86-64"):
        cpu.cpu("z80")


def test_other_architectures_are_an_error(monkeypatch):
    monkeypatch.setattr(cpu.platform, "machine", lambda: "riscv64")
    cpu.host.cache_clear()
    try:
        with pytest.raises(ValueError, match="x86-64 and AArch64, and this machine is 'riscv64'"):
            cpu.host()
    finally:
        cpu.host.cache_clear()
