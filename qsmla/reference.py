"""The NumPy references: the operators' signatures, float64 inside, no compiler and no device."""

from qsmla.runtime.mla_reference import quant_sparse_flash_mla
from qsmla.runtime.reference import kv_quant_sparse_flash_attention

__all__ = ["kv_quant_sparse_flash_attention", "quant_sparse_flash_mla"]
