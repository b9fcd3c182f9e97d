"""Vulkan device profiles: what a kernel may rely on, always written out, and whether a device offers it.

IREE's own default profile has no 8- and 16-bit storage and corrupts such buffers without a word, and a
kernel built for another subgroup size computes wrong reductions instead of failing. So there is no default
profile here, and a device is held against a profile before anything runs on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

REQUIRED_FEATURES: Final = (
    "storageBuffer8BitAccess",
    "storageBuffer16BitAccess",
    "shaderInt8",
    "shaderFloat16",
    "scalarBlockLayout",
)
"""Features, under IREE's names, that every kernel uses: codes of 8 bits, queries and rope values of 16."""

GUARANTEED_BUFFER_BYTES: Final = 1 << 27
"""maxStorageBufferRange that Vulkan guarantees: 128 MiB."""
INDEXED_BYTES: Final = (1 << 31) - 1
"""What signed indices of 32 bits reach, which is what IREE's SPIR-V computes with."""

# The operations of a subgroup that reductions use: basic, arithmetic, shuffle (VkSubgroupFeatureFlagBits).
_SUBGROUP_OPERATIONS: Final = 0x1 | 0x4 | 0x10


@dataclass(frozen=True, kw_only=True)
class VulkanProfile:
    """A class of Vulkan devices.

    Matrix units are left out on purpose: cooperative matrices are an extension that few drivers have.

    Attributes:
        architecture: IREE's name for it, which picks tile sizes.
        vendor_id: PCI or Khronos number of whoever makes the device.
        subgroup_sizes: the sizes that IREE may choose among.
        workgroup_threads: most threads of a workgroup.
        workgroup_bytes: memory of a workgroup.
        int64: whether shaders compute with 64-bit integers.
        buffer_bytes: the largest storage buffer, as far as it is known for the class.
    """

    architecture: str
    vendor_id: int
    subgroup_sizes: tuple[int, ...]
    workgroup_threads: int = 1024
    workgroup_bytes: int = 32768
    int64: bool = True
    buffer_bytes: int = GUARANTEED_BUFFER_BYTES

    @property
    def target_info(self) -> str:
        """The `#iree_gpu.target` attribute: subgroup sizes, storage and arithmetic made explicit."""
        # SPIR-V 1.3 is the newest version without NoSignedWrap. IREE 3.13.0 would write that into modules
        # whose header says 1.0, where it does not exist.
        integers = "int64|int32|int16|int8" if self.int64 else "int32|int16|int8"
        sizes = ", ".join(map(str, self.subgroup_sizes))
        threads = ", ".join([str(self.workgroup_threads)] * 3)
        return (
            f'#iree_gpu.target<arch = "{self.architecture}", features = "spirv:v1.3,cap:Shader", wgp = <'
            f"compute = fp32|fp16|{integers}, storage = b64|b32|b16|b8, "
            "subgroup = shuffle|arithmetic, dot = dp4xi8toi32, mma = [], "
            f"subgroup_size_choices = [{sizes}], max_workgroup_sizes = [{threads}], "
            f"max_thread_count_per_workgroup = {self.workgroup_threads}, "
            f"max_workgroup_memory_bytes = {self.workgroup_bytes}, "
            "max_workgroup_counts = [65535, 65535, 65535]>>"
        )

    @property
    def largest_buffer(self) -> int:
        """Bytes that an array on such a device may have."""
        return min(self.buffer_bytes, INDEXED_BYTES)


_FOUR_GIB: Final = (1 << 32) - 1
_NVIDIA: Final = 0x10DE
_AMD: Final = 0x1002
_ARM: Final = 0x13B5
_QUALCOMM: Final = 0x5143
_MESA: Final = 0x10005

PROFILES: Final = {
    # Mesa's software rasteriser, the Vulkan device of machines without a GPU.
    "lavapipe": VulkanProfile(architecture="lavapipe", vendor_id=_MESA, subgroup_sizes=(8,)),
    # The 48 KiB are what NVIDIA's Vulkan driver gives a workgroup, less than the chip has.
    "ampere": VulkanProfile(
        architecture="sm_80",
        vendor_id=_NVIDIA,
        subgroup_sizes=(32,),
        workgroup_bytes=49152,
        buffer_bytes=_FOUR_GIB,
    ),
    "ada": VulkanProfile(
        architecture="sm_89",
        vendor_id=_NVIDIA,
        subgroup_sizes=(32,),
        workgroup_bytes=49152,
        buffer_bytes=_FOUR_GIB,
    ),
    **{
        name: VulkanProfile(
            architecture=name, vendor_id=_AMD, subgroup_sizes=(32, 64), buffer_bytes=_FOUR_GIB
        )
        for name in ("rdna2", "rdna3", "rdna4")
    },
    "valhall4": VulkanProfile(
        architecture="valhall4", vendor_id=_ARM, subgroup_sizes=(16,), workgroup_threads=512, int64=False
    ),
    "adreno": VulkanProfile(architecture="adreno", vendor_id=_QUALCOMM, subgroup_sizes=(64,), int64=False),
}


@dataclass(frozen=True)
class VulkanDevice:
    """What IREE's driver says about a device.

    Attributes:
        name: the device's name.
        vendor_id: PCI or Khronos number of whoever makes it.
        features: those it has, under IREE's names.
        subgroup_size: the size of a subgroup where a shader asks for none.
        subgroup_range: smallest and largest size that a shader can ask for.
        subgroup_operations: bits of VkSubgroupFeatureFlagBits.
    """

    name: str
    vendor_id: int
    features: frozenset[str]
    subgroup_size: int
    subgroup_range: tuple[int, int]
    subgroup_operations: int

    @classmethod
    def parse(cls, text: str) -> VulkanDevice:
        """The device that `text`, from the driver's `dump_device_info`, describes.

        Raises:
            ValueError: a line is missing; the text names it.
        """

        def number(pattern: str, base: int = 10) -> int:
            return int(_found(rf"{pattern}([0-9a-fA-Fx]+)", text), base)

        pairs = re.findall(r"(\w+)=(yes|no)", _found(r"^features: (.*)$", text))
        return cls(
            name=_found(r"^name: (.*)$", text).strip(),
            vendor_id=number("^vendor_id: ", 16),
            features=frozenset(name for name, has in pairs if has == "yes"),
            subgroup_size=number("^subgroup: size="),
            subgroup_range=(number("minSubgroupSize="), number("maxSubgroupSize=")),
            subgroup_operations=number("^subgroup: .*operations=", 16),
        )

    def unmet(self, profile: VulkanProfile) -> str | None:
        """Why kernels of `profile` would not be right here, in one sentence; None if they are."""
        missing = [name for name in REQUIRED_FEATURES if name not in self.features]
        if missing:
            return f"{self.name} lacks the features {', '.join(missing)}"
        if self.subgroup_operations & _SUBGROUP_OPERATIONS != _SUBGROUP_OPERATIONS:
            return f"{self.name} lacks arithmetic or shuffles in subgroups"
        smallest, largest = self.subgroup_range
        controlled = "subgroupSizeControl" in self.features
        for size in profile.subgroup_sizes:
            if size != self.subgroup_size and not (controlled and smallest <= size <= largest):
                has = f"{smallest} to {largest}" if smallest != largest and controlled else self.subgroup_size
                return f"it is compiled for subgroups of {size}, and those of {self.name} are {has}"
        return None

    def profile(self) -> str | None:
        """The name of the profile for this device: of its maker, and met; None if there is none."""
        for name, profile in PROFILES.items():
            if profile.vendor_id == self.vendor_id and self.unmet(profile) is None:
                return name
        return None


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"the driver's description of a Vulkan device has no {pattern!r}: {text[:200]!r}")
    return match[1]
