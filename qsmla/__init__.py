"""Quantised sparse MLA attention, compiled by IREE for CPU, Vulkan and CUDA."""

from qsmla import reference
from qsmla.compiler.artifact import Artifact
from qsmla.compiler.build import compile
from qsmla.compiler.errors import ArtifactError, CompileError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import KernelSpec, MlaSpec
from qsmla.runtime.arrays import aligned_empty
from qsmla.runtime.device_array import DeviceArray, to_device
from qsmla.runtime.metadata import quant_sparse_flash_mla_metadata
from qsmla.runtime.mla_operator import quant_sparse_flash_mla
from qsmla.runtime.operator import kv_quant_sparse_flash_attention, load, plan
from qsmla.runtime.packing import pack_kv, unpack_kv
from qsmla.runtime.partition import Partition

__all__ = [
    "Artifact",
    "ArtifactError",
    "CompileError",
    "DeviceArray",
    "KernelSpec",
    "MlaSpec",
    "Partition",
    "Target",
    "aligned_empty",
    "compile",
    "kv_quant_sparse_flash_attention",
    "load",
    "pack_kv",
    "plan",
    "quant_sparse_flash_mla",
    "quant_sparse_flash_mla_metadata",
    "reference",
    "to_device",
    "unpack_kv",
]
