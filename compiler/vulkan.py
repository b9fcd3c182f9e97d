"""Vulkan device profiles: what a kernel may rely on, always written out.

IREE's own default profile has no 8- and 16-bit storage and corrupts such buffers without a word, and a
kernel built for another subgroup size computes wrong reductions instead of failing. So there is no default
here, and each profile carries the subgroup sizes that a device must offer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class VulkanProfile:
    """A class of Vulkan devices.

    Attributes:
        iree_target: IREE's name for it (--iree-vulkan-target), or "" where IREE has none.
        target_info: the `#iree_gpu.target` attribute, for those IREE has no name for.
        subgroup_sizes: the sizes that IREE may choose among for this profile.
    """

    iree_target: str
    subgroup_sizes: tuple[int, ...]
    target_info: str = ""


# Mesa's software rasteriser, the Vulkan device of machines without a GPU.
_LAVAPIPE: Final = (
    '#iree_gpu.target<arch = "lavapipe", features = "spirv:v1.6,cap:Shader", wgp = <'
    "compute = fp32|fp16|int64|int32|int16|int8, storage = b64|b32|b16|b8, "
    "subgroup = shuffle|arithmetic, dot = dp4xi8toi32, mma = [], subgroup_size_choices = [8], "
    "max_workgroup_sizes = [1024, 1024, 1024], max_thread_count_per_workgroup = 1024, "
    "max_workgroup_memory_bytes = 32768, max_workgroup_counts = [65535, 65535, 65535]>>"
)

PROFILES: Final = {
    "lavapipe": VulkanProfile("", (8,), _LAVAPIPE),
    "ampere": VulkanProfile("ampere", (32,)),
    "ada": VulkanProfile("ada", (32,)),
    "rdna2": VulkanProfile("rdna2", (32, 64)),
    "rdna3": VulkanProfile("rdna3", (32, 64)),
    "rdna4": VulkanProfile("rdna4", (32, 64)),
    "valhall4": VulkanProfile("valhall4", (16,)),
    "adreno": VulkanProfile("adreno", (64,)),
}
