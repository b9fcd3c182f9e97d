"""The specification of a kernel: everything it is specialised on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

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


class Spec:
    """What the specifications of all operators share: frozen dataclasses; equal `label`, equal kernel.

    Raises:
        ValueError: a field holds a value that is not among its choices; the text names the field.
    """

    operator: ClassVar[str]
    """Name of the operator, and of its template."""
    CHOICES: ClassVar[Mapping[str, Sequence[Any]]]
    """The values each field may have."""
    LABEL_NAMES: ClassVar[Mapping[str, str]] = {}
    """How the label spells a field where it shortens the name."""
    heads: int
    """Query heads; all share the one key/value head."""
    query_dim: ClassVar[int]
    """Columns of a query and a key."""
    has_sinks: ClassVar[bool] = False
    """Whether the softmax has one more logit a head."""

    @property
    def query_dtype(self) -> str:
        """The dtype that the operands of both matmuls and the output are rounded to."""
        raise NotImplementedError

    @property
    def kv_dtype(self) -> str:
        """Code format of the cache."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for name, allowed in self.CHOICES.items():
            value = getattr(self, name)
            if type(value) is not type(allowed[0]) or value not in allowed:
                raise ValueError(f"{name} is {value!r}; allowed: {choices_text(allowed)}")

    @property
    def label(self) -> str:
        """Every field spelt out: a legal MLIR symbol, C identifier and file name."""
        fields = ((self.LABEL_NAMES.get(name, name), getattr(self, name)) for name in self.CHOICES)
        return "_".join([self.operator, *(f"{name}_{value}" for name, value in fields)])

    def to_dict(self) -> dict[str, Any]:
        """The fields and the operator, as plain values that JSON takes."""
        return {"operator": self.operator, **{name: getattr(self, name) for name in self.CHOICES}}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; fields that are left out take their defaults.

        `Spec.from_dict` gives the specification of the operator that the fields name; that of an operator's
        own class takes no other.

        Raises:
            ValueError: an unknown field, an unknown operator, or a value outside its choices.
        """
        classes = {known.operator: known for known in cls.__subclasses__() or [cls]}
        rest = dict(fields)
        operator = rest.pop("operator", next(iter(classes)))
        if operator not in classes:
            raise ValueError(f"operator is {operator!r}; allowed: {', '.join(classes)}")
        chosen = classes[operator]
        for name in rest:
            if name not in chosen.CHOICES:
                raise ValueError(f"unknown field {name!r}; allowed: {', '.join(chosen.CHOICES)}")
        return chosen(**rest)


def choices_text(allowed: Sequence[Any]) -> str:
    """Choices as an error message or a help text names them."""
    return f"{allowed[0]}..{allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))


@dataclass(frozen=True, kw_only=True)
class KernelSpec(Spec):
    """A kernel of `kv_quant_sparse_flash_attention`; equal `label`, equal kernel.

    Batch, query rows, selected blocks per row, cache rows or pages, the page size and the width of the
    block table are dynamic: one kernel serves them all.

    Raises:
        ValueError: a field holds a value that is not among its choices; the text names the field.
    """

    operator: ClassVar[str] = "kv_quant_sparse_flash_attention"
    query_dim: ClassVar[int] = NOPE_DIM + ROPE_DIM

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
    sparse_mode: int = 3
    """0: no mask; 3: right-down causal."""
    byte_order: str = "ascend"
    """Order inside a packed row: "ascend" (nope, rope, scales) or "flashmla" (nope, scales, rope)."""

    CHOICES: ClassVar[Mapping[str, Sequence[Any]]] = {
        "layout_query": ("BSND", "TND"),
        "layout_kv": ("BSND", "TND", "PA_BSND"),
        "query_dtype": ("bfloat16", "float16"),
        "kv_dtype": ("int8", "float8_e4m3", "hifloat8"),
        "heads": HEAD_COUNTS,
        "sparse_block_size": SPARSE_BLOCK_SIZES,
        "sparse_mode": (0, 3),
        "byte_order": ("ascend", "flashmla"),
    }

    LABEL_NAMES: ClassVar[Mapping[str, str]] = {
        "layout_query": "layout_q",
        "query_dtype": "dtype_q",
        "kv_dtype": "dtype_kv",
        "sparse_block_size": "sparse_block",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layout_kv not in (self.layout_query, "PA_BSND"):
            raise ValueError(
                f"layout_kv is {self.layout_kv!r} with layout_query {self.layout_query!r}; "
                f"allowed: {self.layout_query}, PA_BSND"
            )

    @property
    def paged(self) -> bool:
        """Whether the cache is reached through a block table."""
        return self.layout_kv == "PA_BSND"


PARTS: Final = ("none", "dense", "sparse")
"""A part of the cache: not there, attended to without a list, or through a list of token numbers."""


@dataclass(frozen=True, kw_only=True)
class MlaSpec(Spec):
    """A kernel of `quant_sparse_flash_mla`; equal `label`, equal kernel.

    Query layouts, the layouts of a cache without pages, lengths, masks, windows, ratios and the selected
    tokens per row are dynamic: a kernel sees rows, each with the range of tokens that its masks leave.
    """

    operator: ClassVar[str] = "quant_sparse_flash_mla"
    query_dim: ClassVar[int] = NOPE_DIM
    has_sinks: ClassVar[bool] = True
    query_dtype: ClassVar[str] = "bfloat16"
    kv_dtype: ClassVar[str] = "hifloat8"
    """Code format of the query and of both parts of the cache."""

    ori: str = "dense"
    """The original tokens: "none", "dense" or "sparse"."""
    cmp: str = "sparse"
    """The compressed tokens, likewise; not both parts are "none"."""
    kv_cache: str = "contiguous"
    """"contiguous": a sequence's rows lie one behind the other; "paged": a block table leads to its pages."""
    heads: int = 128
    """Query heads; all share the one key/value head."""

    CHOICES: ClassVar[Mapping[str, Sequence[Any]]] = {
        "ori": PARTS,
        "cmp": PARTS,
        "kv_cache": ("contiguous", "paged"),
        "heads": range(1, 129),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.parts:
            raise ValueError("ori and cmp are both 'none'; allowed: one of them")

    @property
    def paged(self) -> bool:
        """Whether the cache is reached through block tables."""
        return self.kv_cache == "paged"

    @property
    def parts(self) -> dict[str, str]:
        """The parts that there are, in order: "dense" or "sparse" under "ori" and "cmp"."""
        both = {"ori": self.ori, "cmp": self.cmp}
        return {name: kind for name, kind in both.items() if kind != "none"}


SPECS: Final[dict[str, type[Spec]]] = {spec.operator: spec for spec in (KernelSpec, MlaSpec)}
"""The specification of each operator, by its name."""
