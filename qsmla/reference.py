"""The NumPy reference: the operator's signature, float64 inside, no compiler and no device."""

from qsmla.runtime.reference import kv_quant_sparse_flash_attention

__all__ = ["kv_quant_sparse_flash_attention"]
