"""Targets: what a kernel is compiled for, as flags of iree-compile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from qsmla.compiler import cpu
from qsmla.compiler.vulkan import PROFILES
from qsmla.ir.schedule import LINALG_FLOAT32, LINALG_QUERY, Schedule

CUDA_ARCHITECTURES: Final = ("sm_80", "sm_86", "sm_89", "sm_120")
"""Compute capabilities that IREE compiles for; Hopper runs the PTX of sm_80 and sm_89."""


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

        "llvm-cpu" is this machine's CPU and "cuda" is sm_80; "vulkan" has no default, because a kernel
        built for another device computes wrong results on this one.

        Raises:
            TypeError: `text` is not a string.
            ValueError: an unknown kind or name.
        """
        if not isinstance(text, str):
            raise TypeError(f"target is a {type(text).__name__}; allowed: a string or a Target")
        kind, colon, name = text.strip().partition(":")
        if kind not in cls.KINDS:
            raise ValueError(
                f"target is {text!r}; allowed: {', '.join(cls.KINDS)}, each with an optional :name"
            )
        default = {"llvm-cpu": "host", "cuda": "sm_80"}.get(kind, "")
        names = {"llvm-cpu": cpu.CPU_NAMES, "vulkan": tuple(PROFILES), "cuda": CUDA_ARCHITECTURES}[kind]
        name = name if colon else default
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
        if self.kind == "vulkan" and (info := PROFILES[self.name].target_info):
            config = f"{{iree_codegen.target_info = {info}}}"
            executable = f'#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", {config}>'
            return f'#hal.device.target<"vulkan", [{executable}]> : !hal.device'
        alias = {"llvm-cpu": "local"}.get(self.kind, self.kind)
        return f'#hal.device.alias<"{alias}"> : !hal.device'

    def flags(self) -> tuple[str, ...]:
        """The flags of iree-compile that go with `device`.

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
        if self.kind == "cuda":
            return (f"--iree-cuda-target={self.name}",)
        iree_target = PROFILES[self.name].iree_target
        return (f"--iree-vulkan-target={iree_target}",) if iree_target else ()

    @property
    def schedule(self) -> Schedule:
        """How kernels are arranged for this target when it is compiled alone."""
        return LINALG_FLOAT32 if self.kind == "llvm-cpu" else LINALG_QUERY

    def unmet(self) -> str | None:
        """Why this machine cannot run what was compiled for this target, in one sentence; None if it can."""
        if self.kind != "llvm-cpu":
            return f"this version compiles for {self.kind} and does not run it"
        here = cpu.host()
        if self.architecture != here.architecture:
            return f"it is compiled for {self.architecture}, and this machine is {here.architecture}"
        missing = [name for name in self.cpu_features if name not in here.features]
        if missing:
            return f"it needs the CPU features {', '.join(missing)}, which this CPU ({cpu.host_name()}) lacks"
        return None

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


def common_schedule(targets: Sequence[Target]) -> Schedule:
    """The schedule of an artifact for all of `targets`: their own if they agree, else the portable one."""
    own = {target.schedule for target in targets}
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
