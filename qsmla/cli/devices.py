"""`qsmla devices`: where kernels can run on this machine."""

from __future__ import annotations

import os
from typing import Any

from qsmla.cli.options import JsonOption
from qsmla.cli.report import print_json, print_pairs
from qsmla.compiler import cpu, drivers
from qsmla.compiler.targets import CUDA_ARCHITECTURES, Target
from qsmla.compiler.toolchain import runtime_version
from qsmla.compiler.vulkan import PROFILES


def devices(as_json: JsonOption = False) -> None:
    """List the devices of each kind of target, and what this CPU can do."""
    here = cpu.host()
    kinds = {kind: drivers.find(kind) for kind in Target.KINDS}
    if as_json:
        print_json(
            {
                "iree": runtime_version(),
                "cpu": {
                    "name": cpu.host_name(),
                    "architecture": here.architecture,
                    "features": list(here.features),
                    "cores": os.cpu_count(),
                },
                "devices": {kind: _as_dict(kind, found) for kind, found in kinds.items()},
            }
        )
        return
    pairs = {
        "IREE runtime": runtime_version(),
        "CPU": f"{cpu.host_name()}, {os.cpu_count()} cores, {here.architecture}",
        "CPU features": ", ".join(here.features) or "none beyond the baseline",
    }
    for kind, found in kinds.items():
        names = [f"{device.name} ({', '.join(_runs(kind, device))})" for device in found.devices]
        pairs[kind] = ", ".join(names) or f"none: {found.reason}"
    print_pairs(pairs)


def _as_dict(kind: str, found: drivers.Found) -> dict[str, Any]:
    """The devices of a kind by name, the targets that each runs, and why there is none."""
    return {
        "names": [device.name for device in found.devices],
        "targets": [_runs(kind, device) for device in found.devices],
        "reason": found.reason,
    }


def _runs(kind: str, device: drivers.FoundDevice) -> list[str]:
    """The targets that a device runs, as far as they have names."""
    names = {"llvm-cpu": ("host",), "vulkan": tuple(PROFILES), "cuda": CUDA_ARCHITECTURES}[kind]
    targets = [Target.parse(f"{kind}:{name}") for name in names]
    return [target.label for target in targets if target.unmet_by(device) is None]
