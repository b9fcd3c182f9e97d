"""What devices IREE's drivers see on this machine, and why there are none."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

DRIVERS: Final = {"llvm-cpu": "local-sync", "vulkan": "vulkan", "cuda": "cuda"}
"""The driver that runs kernels of each kind of target."""

_INSTALL: Final = {
    "vulkan": "install a Vulkan driver (for a CPU: apt-get install libvulkan1 mesa-vulkan-drivers)",
    "cuda": "install NVIDIA's driver, which brings libcuda.so",
}


@dataclass(frozen=True)
class FoundDevice:
    """A device that a driver sees.

    Attributes:
        name: its name.
        number: the driver's number for it.
        description: what the driver tells about it.
    """

    name: str
    number: int
    description: str


@dataclass(frozen=True)
class Found:
    """The devices of one kind of target.

    Attributes:
        devices: those that the driver sees.
        reason: why there are none, and what to install; None if there are some.
    """

    devices: tuple[FoundDevice, ...]
    reason: str | None


@functools.cache
def find(kind: str) -> Found:
    """The devices for targets of `kind`, asked for once a process."""
    import iree.runtime

    name = DRIVERS[kind]
    hint = f"; {_INSTALL[kind]}" if kind in _INSTALL else ""
    if name not in iree.runtime.query_available_drivers():
        return Found((), f"this build of the IREE runtime has no {name} driver")
    try:
        driver = iree.runtime.get_driver(name)
        devices = tuple(_describe(driver, entry) for entry in driver.query_available_devices())
    except (RuntimeError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0]
        return Found((), f"{first_line.rpartition('UNAVAILABLE; ')[2]}{hint}")
    return Found(devices, None if devices else f"the {name} driver sees no device{hint}")


def _describe(driver: Any, entry: dict[str, Any]) -> FoundDevice:
    number = int(entry["device_id"])
    # A driver that has nothing to tell about a device raises.
    try:
        description = str(driver.dump_device_info(number))
    except (RuntimeError, ValueError):
        description = ""
    return FoundDevice(str(entry["name"]), number, description)
