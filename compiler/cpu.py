"""CPU features under LLVM's names: what a named CPU has, and what this machine has."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Linux's name in /proc/cpuinfo -> LLVM's. Only what a compiler may use without asking the operating system:
# AMX is absent because a process has to request its tile registers first, SVE because its vector length is
# not part of the name.
_X86_FEATURES: Final = {
    "cx16": "cx16",
    "pni": "sse3",
    "ssse3": "ssse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "popcnt": "popcnt",
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "bmi1": "bmi",
    "bmi2": "bmi2",
    "abm": "lzcnt",
    "movbe": "movbe",
    "gfni": "gfni",
    "avx_vnni": "avxvnni",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512ifma": "avx512ifma",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
}
_ARM_FEATURES: Final = {"asimdhp": "fullfp16", "asimddp": "dotprod", "bf16": "bf16", "i8mm": "i8mm"}

_V2: Final = ("cx16", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3: Final = (*_V2, "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
_V4: Final = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_ICE_LAKE: Final = (
    *_V4,
    "avx512vbmi",
    "avx512vbmi2",
    "avx512ifma",
    "avx512vnni",
    "avx512bitalg",
    "avx512vpopcntdq",
    "gfni",
)


@dataclass(frozen=True)
class Cpu:
    """A CPU a kernel is compiled for.

    Attributes:
        architecture: "x86_64" or "aarch64".
        features: LLVM's names of the features beyond the architecture's baseline, sorted.
    """

    architecture: str
    features: tuple[str, ...]


_NAMED: Final = {
    "x86-64": ("x86_64", ()),
    "x86-64-v2": ("x86_64", _V2),
    "x86-64-v3": ("x86_64", _V3),
    "x86-64-v4": ("x86_64", _V4),
    "haswell": ("x86_64", _V3),
    "skylake-avx512": ("x86_64", _V4),
    "icelake-server": ("x86_64", _ICE_LAKE),
    "sapphirerapids": ("x86_64", (*_ICE_LAKE, "avx512bf16", "avx512fp16", "avxvnni")),
    "znver3": ("x86_64", _V3),
    "znver4": ("x86_64", (*_ICE_LAKE, "avx512bf16")),
    "znver5": ("x86_64", (*_ICE_LAKE, "avx512bf16", "avxvnni")),
    "aarch64": ("aarch64", ()),
    "neoverse-n1": ("aarch64", ("fullfp16", "dotprod")),
    "neoverse-v1": ("aarch64", ("fullfp16", "dotprod", "bf16", "i8mm")),
}
CPU_NAMES: Final = ("host", "generic", *_NAMED)
"""What may stand behind "llvm-cpu:": this machine, the baseline of its architecture, or a named CPU."""


def cpu(name: str) -> Cpu:
    """The CPU called `name`, one of `CPU_NAMES`.

    Raises:
        ValueError: an unknown name, or "host" or "generic" on an architecture other than x86-64 and AArch64.
    """
    if name in _NAMED:
        architecture, features = _NAMED[name]
        return Cpu(architecture, tuple(sorted(features)))
    if name == "host":
        return host()
    if name == "generic":
        return Cpu(host().architecture, ())
    raise ValueError(f"CPU is {name!r}; allowed: {', '.join(CPU_NAMES)}")


@functools.cache
def host() -> Cpu:
    """This machine. Where the operating system does not list features (not Linux), only the baseline counts.

    Raises:
        ValueError: an architecture other than x86-64 and AArch64.
    """
    machine = platform.machine().lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if architecture not in ("x86_64", "aarch64"):
        raise ValueError(f"kernels run on x86-64 and AArch64, and this machine is {machine!r}")
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    return Cpu(architecture, features_of_cpuinfo(text, architecture))


def features_of_cpuinfo(text: str, architecture: str) -> tuple[str, ...]:
    """The features that every core listed in `text`, a /proc/cpuinfo, has."""
    field, names = ("flags", _X86_FEATURES) if architecture == "x86_64" else ("Features", _ARM_FEATURES)
    cores = []
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == field:
            cores.append(frozenset(value.split()))
    common = frozenset.intersection(*cores) if cores else frozenset()
    return tuple(sorted(llvm for linux, llvm in names.items() if linux in common))


def host_name() -> str:
    """What this machine calls its CPU, for people to read."""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
