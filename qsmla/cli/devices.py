"""`qsmla devices`: where kernels can run on this machine."""

from __future__ import annotations

import os
from typing import Any

from qsmla.cli.options import JsonOption
from qsmla.cli.report import print_json, print_pairs
from qsmla.compiler import cpu, drivers
from qsmla.compiler.targets import Target
from qsmla.compiler.toolchain import runtime_version


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
                "devices": {kind: _as_dict(found) for kind, found in kinds.items()},
            }
        )
        return
    pairs = {
        "IREE runtime": runtime_version(),
        "CPU": f"{cpu.host_name()}, {os.cpu_count()} cores, {here.architecture}",
        "CPU features": ", ".join(here.features) or "none beyond the baseline",
    }
    for kind, found in kinds.items():
        pairs[kind] = ", ".join(device.name for device in found.devices) or f"none: {found.reason}"
    print_pairs(pairs)


def _as_dict(found: drivers.Found) -> dict[str, Any]:
    return {"names": [device.name for device in found.devices], "reason": found.reason}
