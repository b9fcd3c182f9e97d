"""Quantised sparse MLA attention, compiled by IREE for CPU, Vulkan and CUDA."""

from qsmla.ir.spec import KernelSpec

__all__ = ["KernelSpec"]
