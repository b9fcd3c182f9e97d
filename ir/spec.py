"""The specification of a kernel: everything it is specialised on, and nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Final

NOPE_DIM: Final = 512
"""Columns of a query or key without positional encoding; also the width of a value."""
ROPE_DIM: Final = 64
"""Columns that carry the rotary position."""
TILE_SIZE: Final = 128
"""Nope columns that share one dequantisation scale."""
ROW_BYTES: Final = 656
"""Bytes of one packed cache row: 512 codes, 64 rope values of 16 bits, 4 float32 scales."""

HEAD_COUNTS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 128)
SPARSE_BLOCK_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, kw_only=True)
class KernelSpec:
    """A kernel of `kv_quant_sparse_flash_attention`; equal `label`, equal kernel.

    Batch, query rows, selected blocks per row, cache rows or pages, the page size and the width of the
    block table are dynamic: one kernel serves them all.

    Raises:
        ValueError: a field holds a value that is not among its choices; the text names the field.
    """

    operator: ClassVar[str] = "kv_quant_sparse_flash_attention"

    layout_query: str = "BSND"
    """"BSND" or "TND"."""
    layout_kv: str = "BSND"
    """"BSND", "TND" or "PA_BSND"; without paging the same as layout_query."""
    query_dtype: str = "bfloat16"
    """"bfloat16" or "float16"; also the dtype of the rope values and of the output."""
    kv_dtype: str = "int8"
    """Code format of the cache: "int8", "float8_e4m3" or "hifloat8"."""
    heads: int = 128
    """Query heads; all share the one key/value head."""
    sparse_block_size: int = 1
    """Tokens per selected block."""
    sparse_mode: int = 0
    """0: no mask; 3: right-down causal."""
    byte_order: str = "ascend"
    """Order inside a packed row: "ascend" (nope, rope, scales) or "flashmla" (nope, scales, rope)."""

    CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {
        "layout_query": ("BSND", "TND"),
        "layout_kv": ("BSND", "TND", "PA_BSND"),
        "query_dtype": ("bfloat16", "float16"),
        "kv_dtype": ("int8", "float8_e4m3", "hifloat8"),
        "heads": HEAD_COUNTS,
        "sparse_block_size": SPARSE_BLOCK_SIZES,
        "sparse_mode": (0, 3),
        "byte_order": ("ascend", "flashmla"),
    }

    def __post_init__(self) -> None:
        for name, allowed in self.CHOICES.items():
            value = getattr(self, name)
            if type(value) is not type(allowed[0]) or value not in allowed:
                raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}")
        if self.layout_kv not in (self.layout_query, "PA_BSND"):
            raise ValueError(
                f"layout_kv is {self.layout_kv!r} with layout_query {self.layout_query!r}; "
                f"allowed: {self.layout_query}, PA_BSND"
            )

    @property
    def label(self) -> str:
        """Every field spelt out: a legal MLIR symbol, C identifier and file name."""
        fields = (
            ("layout_q", self.layout_query),
            ("layout_kv", self.layout_kv),
            ("dtype_q", self.query_dtype),
            ("dtype_kv", self.kv_dtype),
            ("heads", self.heads),
            ("sparse_block", self.sparse_block_size),
            ("sparse_mode", self.sparse_mode),
            ("byte_order", self.byte_order),
        )
        return "_".join([self.operator, *(f"{name}_{value}" for name, value in fields)])

    @property
    def paged(self) -> bool:
        """Whether the cache is reached through a block table."""
        return self.layout_kv == "PA_BSND"

    def to_dict(self) -> dict[str, Any]:
        """The fields and the operator, as plain values that JSON takes."""
        return {"operator": self.operator, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> KernelSpec:
        """The inverse of `to_dict`; fields that are left out take their defaults.

        Raises:
            ValueError: an unknown field, an unknown operator, or a value outside its choices.
        """
        rest = dict(fields)
        operator = rest.pop("operator", cls.operator)
        if operator != cls.operator:
            raise ValueError(f"operator is {operator!r}; allowed: {cls.operator}")
        known = [field.name for field in dataclasses.fields(cls)]
        for name in rest:
            if name not in known:
                raise ValueError(f"unknown field {name!r}; allowed: {', '.join(known)}")
        return cls(**rest)
