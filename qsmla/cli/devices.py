"""`qsmla devices`: where kernels can run on this machine."""

from __future__ import annotations

import os
from typing import Any

from qsmla.cli.options import JsonOption
from qsmla.cli.report import print_json, print_pairs
from qsmla.compiler import cpu
from qsmla.compiler.toolchain import runtime_version

_KINDS = {"llvm-cpu": "local-sync", "vulkan": "vulkan", "cuda": "cuda"}


def devices(as_json: JsonOption = False) -> None:
    """List the devices of each kind of target, and what this CPU can do."""
    here = cpu.host()
    kinds = {kind: _found(driver) for kind, driver in _KINDS.items()}
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
                "devices": kinds,
            }
        )
        return
    pairs = {
        "IREE runtime": runtime_version(),
        "CPU": f"{cpu.host_name()}, {os.cpu_count()} cores, {here.architecture}",
        "CPU features": ", ".join(here.features) or "none beyond the baseline",
    }
    for kind, found in kinds.items():
        pairs[kind] = ", ".join(found["names"]) or f"none ({found['reason']})"
    print_pairs(pairs)


def _found(driver: str) -> dict[str, Any]:
    """The devices that an IREE driver sees, or why there are none."""
    import iree.runtime

    if driver not in iree.runtime.query_available_drivers():
        return {"names": [], "reason": f"this build of the IREE runtime has no {driver} driver"}
    try:
        found = iree.runtime.get_driver(driver).query_available_devices()
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0].rpartition("; ")[2] if "; " in str(error) else str(error)
        return {"names": [], "reason": reason}
    return {"names": [str(one["name"]) for one in found], "reason": None if found else "no device answers"}
