"""Targets: what a kernel is compiled for, as flags of iree-compile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from qsmla.compiler import cpu, cuda, drivers
from qsmla.compiler.vulkan import PROFILES, VulkanDevice
from qsmla.ir.schedule import AVX2, AVX512, AVX512_BF16, LINALG_FLOAT32, LINALG_QUERY, Schedule
from qsmla.ir.spec import Spec

CUDA_ARCHITECTURES: Final = ("sm_80", "sm_86", "sm_89", "sm_120")
"""Compute capabilities that IREE compiles for; Hopper runs the PTX of sm_80 and sm_89."""

_AVX2_FEATURES: Final = frozenset(("avx2", "fma", "f16c"))
_AVX512_FEATURES: Final = _AVX2_FEATURES | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
_CPU_SCHEDULES: Final = (
    (AVX512_BF16, _AVX512_FEATURES | {"avx512bf16"}),
    (AVX512, _AVX512_FEATURES),
    (AVX2, _AVX2_FEATURES),
)
"""The schedules written for a class of CPU and the features they need, the fastest first."""


@dataclass(frozen=True)
class Target:
    """What a kernel is compiled for; `parse` makes one from its name.

    Attributes:
        kind: "llvm-cpu", "vulkan" or "cuda".
        name: the CPU, the device profile or the compute capability.
        architecture: llvm-cpu only: "x86_64" or "aarch64".
        cpu_features: llvm-cpu only: LLVM's names of all the kernel may use beyond the baseline.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("llvm-cpu", "vulkan", "cuda")

    kind: str
    name: str
    architecture: str = ""
    cpu_features: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target called `text`: a kind, or a kind and a name as in "llvm-cpu:x86-64-v3".

        "llvm-cpu" is this machine's CPU, "cuda" is sm_80, and "vulkan" the profile of the first Vulkan device
        here that has one: a kernel built for another device would compute wrong results.

        Raises:
            TypeError: `text` is not a string.
            ValueError: an unknown kind or name, or "vulkan" where no device says which profile.
        """
        if not isinstance(text, str):
            raise TypeError(f"target is a {type(text).__name__}; allowed: a string or a Target")
        kind, colon, name = text.strip().partition(":")
        if kind not in cls.KINDS:
            raise ValueError(
                f"target is {text!r}; allowed: {', '.join(cls.KINDS)}, each with an optional :name"
            )
        names = {"llvm-cpu": cpu.CPU_NAMES, "vulkan": tuple(PROFILES), "cuda": CUDA_ARCHITECTURES}[kind]
        if not colon:
            name = {"llvm-cpu": "host", "cuda": "sm_80"}.get(kind) or _profile_here()
        if name not in names:
            raise ValueError(
                f"target is {text!r}; allowed: {', '.join(f'{kind}:{known}' for known in names)}"
            )
        if kind != "llvm-cpu":
            return cls(kind, name)
        chosen = cpu.cpu(name)
        return cls(kind, name, chosen.architecture, chosen.features)

    @property
    def label(self) -> str:
        """The text that `parse` makes this target from."""
        return f"{self.kind}:{self.name}"

    @property
    def executable(self) -> str:
        """What the names of this target's executables inside a .vmfb contain."""
        return {"llvm-cpu": "embedded_elf", "vulkan": "vulkan_spirv", "cuda": "cuda_nvptx"}[self.kind]

    @property
    def device(self) -> str:
        """The `!hal.device` attribute that stands for this target in iree-compile's flags."""
        if self.kind == "vulkan":
            config = f"{{iree_codegen.target_info = {PROFILES[self.name].target_info}}}"
            executable = f'#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", {config}>'
            return f'#hal.device.target<"vulkan", [{executable}]> : !hal.device'
        alias = {"llvm-cpu": "local"}.get(self.kind, self.kind)
        return f'#hal.device.alias<"{alias}"> : !hal.device'

    def flags(self) -> tuple[str, ...]:
        """The flags of iree-compile that go with `device` and `files`.

        A CPU is always the architecture's baseline plus the features by name, never LLVM's "host" or a
        model: so the artifact can list exactly what it needs.
        """
        if self.kind == "llvm-cpu":
            baseline = {"x86_64": "x86-64", "aarch64": "generic"}[self.architecture]
            return (
                "--iree-hal-local-target-device-backends=llvm-cpu",
                f"--iree-llvmcpu-target-triple={self.architecture}-unknown-linux-gnu",
                f"--iree-llvmcpu-target-cpu={baseline}",
                f"--iree-llvmcpu-target-cpu-features={','.join('+' + name for name in self.cpu_features)}",
            )
        return cuda.flags(self.name) if self.kind == "cuda" else ()

    @property
    def files(self) -> dict[str, str]:
        """The files, by name, that iree-compile reads because of `flags`."""
        return {cuda.TRANSFORM_FILE: cuda.TRANSFORM} if self.kind == "cuda" else {}

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """How kernels may be arranged for this target when it is compiled alone, the fastest first."""
        if self.kind != "llvm-cpu":
            return (LINALG_QUERY,)
        return (
            *(schedule for schedule, needed in _CPU_SCHEDULES if needed.issubset(self.cpu_features)),
            LINALG_FLOAT32,
        )

    def unmet(self) -> str | None:
        """Why this machine cannot run what was compiled for this target, in one sentence; None if it can."""
        if self.kind != "llvm-cpu":
            found = self.find_device()
            return found if isinstance(found, str) else None
        here = cpu.host()
        if self.architecture != here.architecture:
            return f"it is compiled for {self.architecture}, and this machine is {here.architecture}"
        missing = [name for name in self.cpu_features if name not in here.features]
        if missing:
            return f"it needs the CPU features {', '.join(missing)}, which this CPU ({cpu.host_name()}) lacks"
        return None

    def find_device(self) -> drivers.FoundDevice | str:
        """The first device here that runs what was compiled for this target, or why there is none."""
        found = drivers.find(self.kind)
        reasons = []
        for device in found.devices:
            reason = self.unmet_by(device)
            if reason is None:
                return device
            reasons.append(reason)
        return "; ".join(reasons) or str(found.reason)

    def unmet_by(self, device: drivers.FoundDevice) -> str | None:
        """Why the device cannot run what was compiled for this target; None if it can."""
        if self.kind == "vulkan":
            return VulkanDevice.parse(device.description).unmet(PROFILES[self.name])
        if self.kind == "cuda":
            capability = re.search(r"gpu-compute-capability: (\d+)\.(\d+)", device.description)
            if capability is None:
                return f"the driver does not say which compute capability {device.name} has"
            if int(capability[1] + capability[2]) < int(self.name.removeprefix("sm_")):
                return (
                    f"it is compiled for {self.name}, and {device.name} is sm_{''.join(capability.groups())}"
                )
        return None

    @property
    def largest_buffer(self) -> int | None:
        """Bytes that an array may have on a device of this target; None where memory alone is the limit."""
        return PROFILES[self.name].largest_buffer if self.kind == "vulkan" else None

    def to_dict(self) -> dict[str, Any]:
        """The fields, as plain values that JSON takes."""
        fields: dict[str, Any] = {"kind": self.kind, "name": self.name}
        if self.kind == "llvm-cpu":
            fields |= {"architecture": self.architecture, "cpu_features": list(self.cpu_features)}
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Target:
        """The inverse of `to_dict`.

        Raises:
            KeyError: kind or name is missing.
        """
        return cls(
            fields["kind"],
            fields["name"],
            fields.get("architecture", ""),
            tuple(fields.get("cpu_features", ())),
        )


def _profile_here() -> str:
    """The profile of the first Vulkan device of this machine that has one."""
    found = drivers.find("vulkan")
    devices = [VulkanDevice.parse(device.description) for device in found.devices]
    for device in devices:
        if profile := device.profile():
            return profile
    here = ", ".join(device.name for device in devices) or f"no Vulkan device ({found.reason})"
    raise ValueError(
        f"target is 'vulkan', and here is {here}, which no profile fits; allowed: a profile by name, "
        f"{', '.join(f'vulkan:{name}' for name in PROFILES)}"
    )


def parse_targets(target: str | Target | Iterable[str | Target]) -> tuple[Target, ...]:
    """The targets of one artifact, at most one of each kind.

    Args:
        target: a target, its name, several names joined by commas, or a sequence of those.

    Raises:
        TypeError: neither a string nor a Target.
        ValueError: an unknown target, none at all, or two of one kind.
    """
    if isinstance(target, str):
        items: list[str | Target] = [part for part in target.split(",") if part.strip()]
    elif isinstance(target, Target):
        items = [target]
    elif isinstance(target, Iterable):
        items = list(target)
    else:
        raise TypeError(
            f"target is a {type(target).__name__}; allowed: a string, a Target or several of them"
        )
    targets = tuple(item if isinstance(item, Target) else Target.parse(item) for item in items)
    if not targets:
        raise ValueError(f"target is {target!r}, which names none; allowed: {', '.join(Target.KINDS)}")
    kinds = [one.kind for one in targets]
    for kind in kinds:
        if kinds.count(kind) > 1:
            labels = ", ".join(one.label for one in targets if one.kind == kind)
            raise ValueError(f"target names {labels}: an artifact holds one target of each kind")
    return targets


def common_schedule(targets: Sequence[Target], spec: Spec) -> Schedule:
    """The schedule of a kernel's artifact for all of `targets`: their own if they agree, else portable."""
    own = {next(one for one in target.schedules if one.serves(spec)) for target in targets}
    return own.pop() if len(own) == 1 else LINALG_QUERY


def compile_flags(targets: Sequence[Target], schedule: Schedule) -> tuple[str, ...]:
    """All of iree-compile's flags for one artifact that holds `targets` in `schedule`."""
    devices = [target.device for target in targets]
    device = devices[0] if len(devices) == 1 else f"#hal.device.select<[{', '.join(devices)}]> : !hal.device"
    flags = [f"--iree-hal-target-device={device}"]
    if len(devices) > 1:
        # IREE 3.13.0's linker keeps the dispatches of one target and drops the others' without a word.
        flags.append("--iree-hal-link-executables=false")
    flags += [flag for target in targets for flag in target.flags()]
    return tuple(dict.fromkeys((*flags, *schedule.compile_flags)))
