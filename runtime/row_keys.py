"""How many keys each query row of `quant_sparse_flash_mla` attends to.

Row s of a batch sees two parts of the cache, the original tokens and the compressed ones. Its diagonal is
t = (original tokens) - (query rows) + s, the last original token that a causal row sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsmla.runtime.attributes import check_integer, refuse, refuse_kind
from qsmla.runtime.lengths import INT32_MAX, as_lengths, check_counts, check_prefix_sums

Lengths: TypeAlias = NDArray[np.int32] | NDArray[np.int64] | list[int] | tuple[int, ...]
"""One number a batch, or prefix sums; values of int32."""
Counts: TypeAlias = NDArray[np.integer[Any]]

_CHUNK: Final = 2**16
"""Rows whose keys are worked out at once: what is needed on the way stays in the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class MlaAttributes:
    """The plain values of a `quant_sparse_flash_mla` call that decide which keys a row attends to.

    Raises:
        TypeError: a field is of the wrong kind; the text names it.
        ValueError: a field holds a value that is not allowed; the text names it.
    """

    num_heads_q: int
    num_heads_kv: int = 1
    head_dim: int = 512
    quant_mode: int = 1
    """1: one scale a tensor, hifloat8 codes."""
    ori_topk: int = 0
    """Selected original tokens a row; 0: not sparse."""
    cmp_topk: int = 0
    cmp_ratio: int = 1
    """Original tokens in one compressed token."""
    ori_mask_mode: int = 0
    """0: none; 3: right-down causal; 4: band."""
    cmp_mask_mode: int = 0
    """0: none; 3: right-down causal."""
    ori_win_left: int = -1
    """How far back the band reaches from the diagonal; -1: unlimited."""
    ori_win_right: int = -1
    layout_q: str = "BSND"
    layout_kv: str = "BSND"
    has_ori_kv: bool = True
    has_cmp_kv: bool = True

    INTEGERS: ClassVar[dict[str, range | tuple[int, ...]]] = {
        "num_heads_q": range(1, 129),
        "num_heads_kv": (1,),
        "head_dim": (512,),
        "quant_mode": (1,),
        "ori_topk": range(INT32_MAX + 1),
        "cmp_topk": range(INT32_MAX + 1),
        "cmp_ratio": range(1, INT32_MAX + 1),
        "ori_mask_mode": (0, 3, 4),
        "cmp_mask_mode": (0, 3),
        "ori_win_left": range(-1, INT32_MAX + 1),
        "ori_win_right": range(-1, INT32_MAX + 1),
    }
    LAYOUTS: ClassVar[dict[str, tuple[str, ...]]] = {
        "layout_q": ("BSND", "TND"),
        "layout_kv": ("BSND", "TND", "PA_BBND"),
    }

    def __post_init__(self) -> None:
        for name, allowed in self.INTEGERS.items():
            # The fingerprint takes the values as they print: NumPy's integers become Python's.
            object.__setattr__(self, name, check_integer(name, getattr(self, name), allowed))
        for name, layouts in self.LAYOUTS.items():
            value = getattr(self, name)
            if not isinstance(value, str):
                refuse_kind(name, value, ", ".join(layouts))
            if value not in layouts:
                refuse(name, value, ", ".join(layouts))
        for name in ("has_ori_kv", "has_cmp_kv"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                refuse_kind(name, value, "True, False")
            object.__setattr__(self, name, bool(value))


@dataclass(frozen=True, kw_only=True, eq=False)
class MlaLengths:
    """The lengths of every batch, once all arguments have had their say; int32 [B] each."""

    query: NDArray[np.int32]
    """Query rows."""
    first_rows: NDArray[np.int32]
    """Where the batch's first row stands in the output."""
    ori: NDArray[np.int32]
    """Original tokens; 0 where that part is absent."""
    cmp: NDArray[np.int32]
    """Compressed tokens; 0 where that part is absent."""
    residual: NDArray[np.int32]
    """What compression left over."""

    @classmethod
    def resolve(
        cls,
        attributes: MlaAttributes,
        *,
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
    ) -> MlaLengths:
        """Checks the length arguments of `quant_sparse_flash_mla_metadata` and settles which of them counts.

        Raises:
            TypeError, ValueError: as `quant_sparse_flash_mla_metadata`.
        """
        batch = _batch_size(seqused_q, cu_seqlens_q, batch_size)
        layout_q, layout_kv = attributes.layout_q, attributes.layout_kv
        query = _sequences("q", layout_q, batch, cu_seqlens_q, seqused_q, max_seqlen_q)
        ori = _sequences("ori_kv", layout_kv, batch, cu_seqlens_ori_kv, seqused_ori_kv, max_seqlen_ori_kv)
        cmp = _sequences("cmp_kv", layout_kv, batch, cu_seqlens_cmp_kv, seqused_cmp_kv, max_seqlen_cmp_kv)
        # In BSND the rows behind a batch's last one still have their place in the output.
        padded = max_seqlen_q if layout_q == "BSND" else 0
        rows = max(int(query.lengths.sum(dtype=np.int64)), batch * padded)
        if rows > INT32_MAX:
            refuse(f"{query.decided_by}: the number of query rows", rows, f"at most {INT32_MAX}")
        first = np.arange(batch) * padded if padded else query.starts
        return cls(
            query=query.lengths,
            first_rows=first.astype(np.int32),
            ori=ori.lengths if attributes.has_ori_kv else np.zeros_like(ori.lengths),
            cmp=cmp.lengths if attributes.has_cmp_kv else np.zeros_like(cmp.lengths),
            residual=_residual(attributes, batch, cmp_residual_kv),
        )


def row_keys(attributes: MlaAttributes, lengths: MlaLengths) -> tuple[Counts, Counts]:
    """The keys that each query row attends to in the original and in the compressed part.

    Returns:
        two arrays of integers [rows], rows in order (batch, row in batch): rows 0..lengths.query[b] - 1 of
        batch b. Their dtype is int32 or int64.
    """
    rows = _Rows(attributes, lengths)
    return _keys(attributes, rows.between(0, rows.count))


def row_blocks(attributes: MlaAttributes, lengths: MlaLengths, key_block: int) -> NDArray[np.int32]:
    """The key blocks of each query row, the original part's first; no block holds keys of both parts.

    Returns:
        int32 [rows], in the order of `row_keys`.
    """
    rows = _Rows(attributes, lengths)
    blocks = np.empty(rows.count, np.int32)
    for begin in range(0, rows.count, _CHUNK):
        end = min(begin + _CHUNK, rows.count)
        ori, cmp = _keys(attributes, rows.between(begin, end))
        for keys in (ori, cmp):
            # Not (keys + key_block - 1): that may overflow.
            keys -= 1
            keys //= key_block
            keys += 1
        np.add(ori, cmp, out=blocks[begin:end])
    return blocks


def _keys(attributes: MlaAttributes, rows: _Stretch) -> tuple[Counts, Counts]:
    """Original and compressed keys of a stretch of rows."""
    query, ori, cmp = rows.query, rows.ori, rows.cmp
    if attributes.ori_mask_mode == 0:
        ori_keys = rows.spread(ori)
    elif attributes.ori_mask_mode == 3:
        ori_keys = rows.diagonal(ori - query + 1)
    else:
        ori_keys = _band(attributes, rows)
    if attributes.cmp_mask_mode == 0:
        cmp_keys = rows.spread(cmp)
    else:
        # Never more than cmp: the last row sees (cmp * ratio + residual) / ratio, and residual < ratio.
        cmp_keys = rows.diagonal(cmp * attributes.cmp_ratio + rows.residual - query + 1)
        cmp_keys //= attributes.cmp_ratio
    for keys, topk in ((ori_keys, attributes.ori_topk), (cmp_keys, attributes.cmp_topk)):
        np.maximum(keys, 0, out=keys)
        if topk:
            np.minimum(keys, topk, out=keys)
    return ori_keys, cmp_keys


class _Rows:
    """All rows of a call, to be taken in stretches."""

    def __init__(self, attributes: MlaAttributes, lengths: MlaLengths) -> None:
        self._lengths = lengths
        self._ends = np.cumsum(lengths.query, dtype=np.int64)
        self.count = int(self._ends[-1]) if len(self._ends) else 0
        query, ori, cmp = (int(part.max(initial=0)) for part in (lengths.query, lengths.ori, lengths.cmp))
        # No number on the way to the keys is larger; a million rows of int32 take half the time of int64.
        largest = self.count + max(2 * (query + ori), query + (cmp + 1) * attributes.cmp_ratio)
        self._dtype: np.dtype[Any] = np.dtype(np.int32 if largest <= INT32_MAX else np.int64)

    def between(self, begin: int, end: int) -> _Stretch:
        """Rows begin..end - 1, as they stand in order."""
        first = int(self._ends.searchsorted(begin, side="right"))
        last = int(self._ends.searchsorted(end, side="left")) + 1
        lengths, ends = self._lengths, self._ends[first:last]
        parts = (lengths.query, lengths.ori, lengths.cmp, lengths.residual)
        query, ori, cmp, residual = (part[first:last].astype(self._dtype) for part in parts)
        starts = ends - query
        counts = np.minimum(ends, end) - np.maximum(starts, begin)
        places = np.arange(begin, end, dtype=self._dtype)
        return _Stretch(query, ori, cmp, residual, starts.astype(self._dtype), counts, places)


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Consecutive rows; arrays over the batches that they belong to, and `places` over the rows."""

    query: Counts
    ori: Counts
    cmp: Counts
    residual: Counts
    starts: Counts
    """Place of each batch's first row among all rows in order."""
    counts: NDArray[np.int64]
    """Rows of each batch that belong to the stretch."""
    places: Counts

    def spread(self, values: Counts) -> Counts:
        """values[b] for each row of batch b."""
        return np.repeat(values, self.counts)

    def diagonal(self, values: Counts) -> Counts:
        """values[b] + s for row s of batch b."""
        spread = self.spread(values - self.starts)
        spread += self.places
        return spread


def _band(attributes: MlaAttributes, rows: _Stretch) -> Counts:
    """Keys in [t - left, t + right + 1), cut to [0, ori); negative where that is empty."""
    # Beyond the longest sequence a window is no wider, and its sums might overflow.
    left = min(attributes.ori_win_left, int(rows.ori.max(initial=0)))
    right = min(attributes.ori_win_right, int(rows.query.max(initial=0)))
    diagonal = rows.ori - rows.query
    end = rows.spread(rows.ori)
    if right >= 0:
        np.minimum(end, rows.diagonal(diagonal + right + 1), out=end)
    if left >= 0:
        first = rows.diagonal(diagonal - left)
        end -= np.maximum(first, 0, out=first)
    return end


@dataclass(frozen=True)
class _Sequences:
    lengths: NDArray[np.int32]
    """[B]."""
    starts: NDArray[np.int64]
    """[B]; where the sequences begin if they lie one behind the other."""
    decided_by: str
    """The argument that said so."""


def _sequences(
    part: str, layout: str, batch: int, sums: Lengths | None, used: Lengths | None, longest: int
) -> _Sequences:
    """The lengths of "q", "ori_kv" or "cmp_kv" out of the three arguments that may say them."""
    sums_name, used_name, longest_name = f"cu_seqlens_{part}", f"seqused_{part}", f"max_seqlen_{part}"
    longest = check_integer(longest_name, longest, range(INT32_MAX + 1))
    decided_by = longest_name
    lengths = np.full(batch, longest, np.int32)
    starts = None
    if sums is not None:
        if layout != "TND":
            refuse(sums_name, sums, f"None with layout {layout}")
        prefix = _prefix_sums(sums_name, sums, batch + 1)
        decided_by, lengths, starts = sums_name, np.diff(prefix), prefix[:-1].astype(np.int64)
    if used is not None:
        counts = as_lengths(used_name, used, batch)
        check_counts(used_name, counts, INT32_MAX, "values of int32")
        if sums is not None and (counts > lengths).any():
            first = int((counts > lengths).argmax())
            refuse(f"{used_name}[{first}]", int(counts[first]), f"0..{lengths[first]}, as {sums_name} says")
        decided_by, lengths = used_name, counts
    if longest and batch and lengths.max() > longest:
        refuse(longest_name, longest, f"0, or at least {lengths.max()}, as {decided_by} says")
    if starts is None:
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return _Sequences(lengths, starts, decided_by)


def _prefix_sums(name: str, value: Lengths, entries: int | None) -> NDArray[np.int32]:
    """Prefix sums from 0; int32 [entries], of any length but 0 where that is None."""
    sums = as_lengths(name, value, entries)
    if not len(sums):
        refuse(f"{name}'s number of values", 0, "B + 1")
    if sums[0] != 0:
        refuse(f"{name}[0]", int(sums[0]), "0")
    check_prefix_sums(name, sums, INT32_MAX, "values of int32")
    return sums


def _batch_size(used: Lengths | None, sums: Lengths | None, batch_size: int) -> int:
    """B, on which the three arguments that say it agree."""
    says = {"batch_size": check_integer("batch_size", batch_size, range(INT32_MAX + 1)) or None}
    says["cu_seqlens_q"] = None if sums is None else len(_prefix_sums("cu_seqlens_q", sums, None)) - 1
    says["seqused_q"] = None if used is None else len(as_lengths("seqused_q", used, None))
    given = {name: batch for name, batch in says.items() if batch is not None}
    if len(set(given.values())) > 1:
        raise ValueError(
            f"{', '.join(given)} say {', '.join(map(str, given.values()))} batches; allowed: one B"
        )
    return max(given.values(), default=0)


def _residual(attributes: MlaAttributes, batch: int, value: Lengths | None) -> NDArray[np.int32]:
    ratio = attributes.cmp_ratio
    if value is None:
        if attributes.has_cmp_kv and attributes.cmp_mask_mode == 3 and ratio != 1:
            refuse(
                "cmp_residual_kv", None, f"int32 [{batch}]; required by cmp_mask_mode 3, cmp_ratio {ratio}"
            )
        return np.zeros(batch, np.int32)
    residual = as_lengths("cmp_residual_kv", value, batch)
    check_counts("cmp_residual_kv", residual, ratio - 1, "less than cmp_ratio")
    return residual
