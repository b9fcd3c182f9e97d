"""Arguments of `quant_sparse_flash_mla` to a typed call: all behind this module works on `MlaCall` alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from qsmla.ir.spec import NOPE_DIM, MlaSpec
from qsmla.runtime.attributes import check_integer, refuse, refuse_kind, resolve_scale
from qsmla.runtime.checks import check_out
from qsmla.runtime.form import check_page_size
from qsmla.runtime.kept_lengths import kept_attributes, kept_lengths
from qsmla.runtime.lengths import (
    INT32_MAX,
    as_array,
    as_block_table,
    as_int32,
    as_lengths,
    check_counts,
    check_prefix_sums,
    check_shape,
)
from qsmla.runtime.row_keys import Lengths, MlaAttributes, MlaLengths
from qsmla.runtime.signature import named

OUTPUT_DTYPE: Final = np.dtype(ml_dtypes.bfloat16)
_LOG2_E: Final = 1.4426950408889634


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One part of the cache, as it was given."""

    cache: npt.NDArray[np.uint8]
    """Codes: [rows, 512], or [pages, page size, 512] where the cache is paged."""
    starts: npt.NDArray[np.int64]
    """[B]; cache row of each sequence's token 0; zeros where the cache is paged."""
    descale: float
    """Exact in float32."""
    indices: npt.NDArray[np.int32] | None
    """[rows, topk], token numbers; None where the part is dense."""
    block_table: npt.NDArray[np.int32] | None
    """[B, pages] where the cache is paged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MlaCall:
    """A checked call. Arrays are the caller's own memory wherever dtype and strides allow."""

    spec: MlaSpec
    attributes: MlaAttributes
    lengths: MlaLengths
    query: npt.NDArray[np.uint8]
    """[rows, heads, 512], codes; BSND has B*S1 rows, TND T."""
    parts: Mapping[str, Part]
    """The parts that there are, under "ori" and "cmp", in this order."""
    scale: float
    """q_descale * softmax_scale; exact in float32."""
    sinks: npt.NDArray[np.float32]
    """[heads]; -inf where there is none."""
    return_softmax_lse: bool
    out: npt.NDArray[Any] | None
    output_shape: tuple[int, ...]
    """q's shape."""


@named("quant_sparse_flash_mla")
def check_mla_call(
    q: npt.NDArray[np.uint8],
    ori_kv: npt.NDArray[np.uint8] | None = None,
    cmp_kv: npt.NDArray[np.uint8] | None = None,
    *,
    q_descale: Any,
    ori_kv_descale: Any = None,
    cmp_kv_descale: Any = None,
    ori_sparse_indices: npt.NDArray[Any] | None = None,
    cmp_sparse_indices: npt.NDArray[Any] | None = None,
    ori_block_table: npt.NDArray[Any] | None = None,
    cmp_block_table: npt.NDArray[Any] | None = None,
    sinks: npt.NDArray[np.float32] | None = None,
    softmax_scale: float,
    return_softmax_lse: bool = False,
    cu_seqlens_q: Lengths | None = None,
    cu_seqlens_ori_kv: Lengths | None = None,
    cu_seqlens_cmp_kv: Lengths | None = None,
    seqused_q: Lengths | None = None,
    seqused_ori_kv: Lengths | None = None,
    seqused_cmp_kv: Lengths | None = None,
    cmp_residual_kv: Lengths | None = None,
    batch_size: int = 0,
    max_seqlen_q: int = 0,
    max_seqlen_ori_kv: int = 0,
    max_seqlen_cmp_kv: int = 0,
    cmp_ratio: int = 1,
    ori_mask_mode: int = 0,
    cmp_mask_mode: int = 0,
    ori_win_left: int = -1,
    ori_win_right: int = -1,
    layout_q: str = "BSND",
    layout_kv: str = "BSND",
    out: npt.NDArray[Any] | None = None,
) -> MlaCall:
    """Check every argument of `quant_sparse_flash_mla`; see there for their meaning.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument has a value or shape that is not allowed; the text names it.
    """
    query = _check_query(q, layout_q)
    ori = _GivenPart(
        "ori",
        ori_kv,
        ori_kv_descale,
        ori_sparse_indices,
        ori_block_table,
        cu_seqlens_ori_kv,
        seqused_ori_kv,
        max_seqlen_ori_kv,
    )
    cmp = _GivenPart(
        "cmp",
        cmp_kv,
        cmp_kv_descale,
        cmp_sparse_indices,
        cmp_block_table,
        cu_seqlens_cmp_kv,
        seqused_cmp_kv,
        max_seqlen_cmp_kv,
    )
    if ori.cache is None and cmp.cache is None:
        refuse("ori_kv", None, "an array where cmp_kv is None too")
    ori_indices, cmp_indices = (part.check_indices(query.shape[:-2]) for part in (ori, cmp))
    attributes = kept_attributes(
        num_heads_q=query.shape[-2],
        ori_topk=0 if ori_indices is None else ori_indices.shape[1],
        cmp_topk=0 if cmp_indices is None else cmp_indices.shape[1],
        cmp_ratio=cmp_ratio,
        ori_mask_mode=ori_mask_mode,
        cmp_mask_mode=cmp_mask_mode,
        ori_win_left=ori_win_left,
        ori_win_right=ori_win_right,
        layout_q=layout_q,
        layout_kv=layout_kv,
        has_ori_kv=ori.cache is not None,
        has_cmp_kv=cmp.cache is not None,
    )
    if type(return_softmax_lse) is not bool and not isinstance(return_softmax_lse, np.bool_):
        refuse_kind("return_softmax_lse", return_softmax_lse, "True, False")
    batch, longest_query = _query_batch(attributes, query, cu_seqlens_q, seqused_q, batch_size, max_seqlen_q)
    lengths = kept_lengths(
        attributes,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_ori_kv=cu_seqlens_ori_kv,
        cu_seqlens_cmp_kv=cu_seqlens_cmp_kv,
        seqused_q=seqused_q,
        seqused_ori_kv=seqused_ori_kv,
        seqused_cmp_kv=seqused_cmp_kv,
        cmp_residual_kv=cmp_residual_kv,
        batch_size=batch,
        max_seqlen_q=longest_query,
        max_seqlen_ori_kv=ori.check_cache(layout_kv, batch),
        max_seqlen_cmp_kv=cmp.check_cache(layout_kv, batch),
    )
    if layout_q == "TND":
        _check_end("cu_seqlens_q", cu_seqlens_q, query.shape[0], "q's T")
    scale = _product({"q_descale": _descale("q_descale", q_descale), "softmax_scale": softmax_scale})
    parts = {}
    for given, indices, counts in ((ori, ori_indices, lengths.ori), (cmp, cmp_indices, lengths.cmp)):
        if given.cache is not None:
            parts[given.part] = given.resolve(layout_kv, indices, counts, scale)
    inputs = (q, ori_kv, cmp_kv, ori_sparse_indices, cmp_sparse_indices, ori_block_table, cmp_block_table)
    if out is not None:
        check_out(out, query.shape, OUTPUT_DTYPE, (*inputs, sinks), why="")
    return MlaCall(
        spec=_spec(attributes),
        attributes=attributes,
        lengths=lengths,
        query=query.reshape(-1, *query.shape[-2:]),
        parts=parts,
        scale=scale,
        sinks=_check_sinks(sinks, query.shape[-2]),
        return_softmax_lse=bool(return_softmax_lse),
        out=out,
        output_shape=query.shape,
    )


@functools.lru_cache(maxsize=1024)
def _spec(attributes: MlaAttributes) -> MlaSpec:
    """The kernel for a call with these attributes."""

    def kind(present: bool, topk: int) -> str:
        return ("sparse" if topk else "dense") if present else "none"

    return MlaSpec(
        ori=kind(attributes.has_ori_kv, attributes.ori_topk),
        cmp=kind(attributes.has_cmp_kv, attributes.cmp_topk),
        kv_cache="paged" if attributes.layout_kv == "PA_BBND" else "contiguous",
        heads=attributes.num_heads_q,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _GivenPart:
    """A part's arguments, as they came."""

    part: str
    cache: Any
    descale: Any
    indices: Any
    block_table: Any
    sums: Any
    used: Any
    longest: Any

    @property
    def cache_name(self) -> str:
        return f"{self.part}_kv"

    def check_indices(self, leading: tuple[int, ...]) -> npt.NDArray[np.int32] | None:
        """The selected tokens as [rows, topk], None where the part is not sparse."""
        name = f"{self.part}_sparse_indices"
        if self.indices is None:
            return None
        if self.cache is None:
            refuse(name, self.indices, f"None without {self.cache_name}")
        indices = as_int32(name, self.indices)
        check_shape(name, indices.shape, (*leading, 1, "topk"))
        if not indices.shape[-1]:
            refuse(f"{name}'s last dimension topk", 0, "1 or more")
        return indices.reshape(-1, indices.shape[-1])

    def check_cache(self, layout: str, batch: int) -> int:
        """Check the cache's shape and that it holds the lengths; the longest sequence, 0 if arrays say it."""
        if self.cache is None:
            if self.block_table is not None:
                refuse(f"{self.part}_block_table", self.block_table, f"None without {self.cache_name}")
            return int(self.longest)
        name, codes = self.cache_name, _codes(self.cache_name, self.cache)
        shapes: dict[str, tuple[int | str, ...]] = {
            "BSND": (batch, "S2", 1, NOPE_DIM),
            "TND": ("T2", 1, NOPE_DIM),
            "PA_BBND": ("block_num", "block_size", 1, NOPE_DIM),
        }
        check_shape(name, codes.shape, shapes[layout])
        if codes.size // NOPE_DIM > INT32_MAX:
            refuse(f"{name}'s number of rows", codes.size // NOPE_DIM, f"at most {INT32_MAX}")
        longest = check_integer(f"max_seqlen_{name}", self.longest, range(INT32_MAX + 1))
        if layout == "BSND":
            tokens = codes.shape[1]
            if longest > tokens:
                refuse(f"max_seqlen_{name}", longest, f"0..{tokens}, {name}'s S2")
            if self.used is not None:
                counts = as_lengths(f"seqused_{name}", self.used, batch)
                check_counts(f"seqused_{name}", counts, tokens, f"{name}'s S2")
            return longest or tokens
        if layout == "TND":
            if self.sums is None:
                refuse(f"cu_seqlens_{name}", None, "prefix sums, int32 [B + 1]; required by layout_kv TND")
            return longest
        check_page_size(name, codes.shape[1])
        if self.used is None and not longest:
            refuse(f"seqused_{name}", None, f"int32 [B], or max_seqlen_{name}; required by layout_kv PA_BBND")
        return longest

    def resolve(
        self, layout: str, indices: npt.NDArray[np.int32] | None, lengths: npt.NDArray[np.int32], scale: float
    ) -> Part:
        """The part of the checked call; `scale` is what its scores are multiplied by beside its descale."""
        name, batch = self.cache_name, len(lengths)
        cache = self.cache[..., 0, :]
        starts = np.zeros(batch, np.int64)
        table = None
        if layout == "PA_BBND":
            if self.block_table is None:
                refuse(f"{self.part}_block_table", None, "int32 [B, pages]; required by layout_kv PA_BBND")
            table = as_block_table(
                self.block_table,
                lengths,
                page_size=cache.shape[1],
                pages=cache.shape[0],
                name=f"{self.part}_block_table",
                lengths_name=f"seqused_{name}",
                cache_name=name,
            )
        elif self.block_table is not None:
            refuse(f"{self.part}_block_table", self.block_table, f"None with layout_kv {layout}")
        elif layout == "TND":
            _check_end(f"cu_seqlens_{name}", self.sums, cache.shape[0], f"{name}'s T2")
            starts = np.asarray(self.sums[:-1], np.int64)
        else:
            starts = np.arange(batch) * cache.shape[1]
            cache = cache.reshape(-1, NOPE_DIM)
        descale = _descale(f"{name}_descale", self.descale)
        _product({"q_descale * softmax_scale": scale, f"{name}_descale": descale, "log2(e)": _LOG2_E})
        return Part(cache=cache, starts=starts, descale=descale, indices=indices, block_table=table)


def _codes(name: str, value: Any) -> npt.NDArray[np.uint8]:
    codes = as_array(name, value)
    if codes.dtype != np.uint8:
        raise TypeError(f"{name} is dtype {codes.dtype}; allowed: uint8, hifloat8 codes")
    return codes


def _check_query(q: Any, layout: Any) -> npt.NDArray[np.uint8]:
    query = _codes("q", q)
    shapes: dict[Any, tuple[int | str, ...]] = {
        "BSND": ("B", "S1", "N", NOPE_DIM),
        "TND": ("T", "N", NOPE_DIM),
    }
    if query.ndim not in (3, 4):
        refuse("q's shape", query.shape, "[B, S1, N, 512] in BSND, [T, N, 512] in TND")
    if isinstance(layout, str) and layout in shapes:
        check_shape("q", query.shape, shapes[layout])
    if not 1 <= query.shape[-2] <= 128:
        refuse("q's number of heads", query.shape[-2], "1..128")
    return query


def _query_batch(
    attributes: MlaAttributes,
    query: npt.NDArray[np.uint8],
    sums: Any,
    used: Any,
    batch_size: Any,
    longest: Any,
) -> tuple[int, int]:
    """The number of batches, and the rows of a batch where no array says."""
    batch_size = check_integer("batch_size", batch_size, range(INT32_MAX + 1))
    longest = check_integer("max_seqlen_q", longest, range(INT32_MAX + 1))
    if attributes.layout_q == "TND":
        if sums is None:
            refuse("cu_seqlens_q", None, "prefix sums, int32 [B + 1]; required by layout_q TND")
        batch = len(as_lengths("cu_seqlens_q", sums, None)) - 1
    else:
        batch, tokens = query.shape[:2]
        if longest not in (0, tokens):
            refuse("max_seqlen_q", longest, f"0, or {tokens}, q's S1")
        longest = tokens
        if used is not None:
            check_counts("seqused_q", as_lengths("seqused_q", used, batch), tokens, "q's S1")
    if batch_size not in (0, max(batch, 0)):
        refuse("batch_size", batch_size, f"0, or {batch}, as q or cu_seqlens_q says")
    return max(batch, 0), longest


def _check_end(name: str, sums: Any, upper: int, meaning: str) -> None:
    """Check that prefix sums end inside an array."""
    check_prefix_sums(name, as_lengths(name, sums, None), upper, meaning)


def _descale(name: str, value: Any) -> float:
    """A scale of one tensor: a number, or a float32 array of one value."""
    if isinstance(value, np.ndarray):
        array = as_array(name, value)
        if array.dtype != np.float32:
            raise TypeError(f"{name} is dtype {array.dtype}; allowed: float32")
        if array.size != 1:
            refuse(f"{name}'s shape", array.shape, "one value")
        value = array.reshape(())[()]
    if value is None:
        refuse(name, None, "a float32 number")
    return resolve_scale(value, name)


def _product(factors: Mapping[str, Any]) -> float:
    """The factors' product, which kernels compute in float32, if it is finite there."""
    product = 1.0
    for name, factor in factors.items():
        product *= resolve_scale(factor, name)
    return resolve_scale(product, " * ".join(factors))


def _check_sinks(sinks: Any, heads: int) -> npt.NDArray[np.float32]:
    if sinks is None:
        return np.full(heads, -np.inf, np.float32)
    array = as_array("sinks", sinks)
    if array.dtype != np.float32:
        raise TypeError(f"sinks is dtype {array.dtype}; allowed: float32")
    check_shape("sinks", array.shape, (heads,))
    return array
