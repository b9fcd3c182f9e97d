"""Quantised sparse MLA attention, compiled by IREE for CPU, Vulkan and CUDA."""

from qsmla import reference
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.packing import pack_kv, unpack_kv

__all__ = ["KernelSpec", "aligned_empty", "pack_kv", "reference", "unpack_kv"]
