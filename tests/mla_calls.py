"""Small legal calls of `quant_sparse_flash_mla`, and its specification in plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from tolerance import assert_close

import qsmla
from qsmla.ir.codes import decode_table, encode
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attend

Arguments = dict[str, Any]
Results = tuple[npt.NDArray[Any], npt.NDArray[np.float32]]
NAN_CODE = 0x80
FINITE_CODES = np.flatnonzero(np.isfinite(decode_table("hifloat8"))).astype(np.uint8)
BEHIND_THE_TABLE = 2_147_480_000
"""No page number, and one whose rows overflow int32."""


def random_codes(generator: np.random.Generator, *shape: int) -> npt.NDArray[np.uint8]:
    """Codes of standard normal values, in memory that CPU devices read in place."""
    codes = qsmla.aligned_empty(shape, np.uint8)
    codes[...] = encode(generator.standard_normal(shape, dtype=np.float32), "hifloat8")
    return codes


def mla_arguments(
    layout_q: str = "BSND",
    layout_kv: str = "BSND",
    *,
    query_counts: tuple[int, ...] = (3, 2),
    ori_counts: tuple[int, ...] | None = (40, 33),
    cmp_counts: tuple[int, ...] | None = (30, 9),
    heads: int = 2,
    ori_topk: int = 0,
    cmp_topk: int = 5,
    page_size: int = 16,
    padding: int = 0,
    seed: int = 0,
    **attributes: Any,
) -> Arguments:
    """All arguments that a call needs, by name; `attributes` are handed on.

    BSND pads to the largest count, and `padding` adds to that, or behind each sequence of TND; a paged cache
    has its pages in random order and two spare ones. Ids are random, some of them behind the sequence or -1.
    """
    generator = np.random.default_rng(seed)
    batch = len(query_counts)
    arguments: Arguments = {"layout_q": layout_q, "layout_kv": layout_kv}
    rows = _sequences(arguments, "q", layout_q, query_counts, padding)
    arguments["q"] = random_codes(generator, *rows, heads, 512)
    for part, counts, topk in (("ori", ori_counts, ori_topk), ("cmp", cmp_counts, cmp_topk)):
        if counts is None:
            continue
        if layout_kv == "PA_BBND":
            arguments[f"seqused_{part}_kv"] = np.array(counts, np.int32)
            pages = -(-max(counts) // page_size)
            table = generator.permutation(batch * pages + 2)[: batch * pages]
            arguments[f"{part}_block_table"] = table.reshape(batch, pages).astype(np.int32)
            cache: tuple[int, ...] = (batch * pages + 2, page_size)
        else:
            cache = _sequences(arguments, f"{part}_kv", layout_kv, counts, padding)
        arguments[f"{part}_kv"] = random_codes(generator, *cache, 1, 512)
        arguments[f"{part}_kv_descale"] = np.float32({"ori": 1.25, "cmp": 0.875}[part])
        if topk:
            ids = generator.integers(-1, max(counts) * 9 // 8 + 2, (*rows, 1, topk), dtype=np.int32)
            arguments[f"{part}_sparse_indices"] = ids
    return arguments | {"q_descale": 0.75, "softmax_scale": 0.0625} | attributes


def _sequences(
    arguments: Arguments, name: str, layout: str, counts: tuple[int, ...], padding: int
) -> tuple[int, ...]:
    """Adds the lengths of q, ori_kv or cmp_kv to the arguments; the array's leading dimensions."""
    if padding or layout == "BSND":
        arguments[f"seqused_{name}"] = np.array(counts, np.int32)
    if layout == "TND":
        ends = np.cumsum([0, *(count + padding for count in counts)], dtype=np.int32)
        arguments[f"cu_seqlens_{name}"] = ends
        return (int(ends[-1]) + padding,)
    return len(counts), max(counts) + padding


def run(arguments: Arguments, target: str = "llvm-cpu", **more: Any) -> Results:
    """Output and lse of the operator."""
    output, lse = qsmla.quant_sparse_flash_mla(**arguments | more, target=target, return_softmax_lse=True)
    return output, lse


def check(arguments: Arguments, target: str = "llvm-cpu", **more: Any) -> Results:
    """Output and lse, within the tolerance of the reference."""
    output, lse = run(arguments, target, **more)
    assert_close(output, attend(check_mla_call(**arguments)), lse)
    return output, lse


def metadata_arguments(arguments: Arguments) -> Arguments:
    """The arguments of `quant_sparse_flash_mla_metadata` for a call."""
    names = (
        *(f"{kind}_{part}" for kind in ("cu_seqlens", "seqused") for part in ("q", "ori_kv", "cmp_kv")),
        *("cmp_residual_kv", "cmp_ratio", "ori_mask_mode", "cmp_mask_mode", "ori_win_left", "ori_win_right"),
        *("layout_q", "layout_kv"),
    )
    chosen = {name: arguments[name] for name in names if name in arguments}
    query = arguments["q"]
    if arguments["layout_q"] == "BSND":
        chosen |= {"batch_size": query.shape[0], "max_seqlen_q": query.shape[1]}
    for part in ("ori", "cmp"):
        chosen[f"has_{part}_kv"] = f"{part}_kv" in arguments
        if f"{part}_sparse_indices" in arguments:
            chosen[f"{part}_topk"] = arguments[f"{part}_sparse_indices"].shape[-1]
    return chosen | {"num_heads_q": query.shape[-2]}


def counts_of(arguments: Arguments, name: str) -> list[int]:
    """Tokens of each batch of "q", "ori" or "cmp"."""
    if name != "q":
        if f"{name}_kv" not in arguments:
            return [0] * len(counts_of(arguments, "q"))
        name = f"{name}_kv"
    if f"seqused_{name}" in arguments:
        return [int(count) for count in arguments[f"seqused_{name}"]]
    return [int(count) for count in np.diff(arguments[f"cu_seqlens_{name}"])]


def rows_of(arguments: Arguments) -> list[tuple[tuple[int, ...], int, int]]:
    """Index of each query row that belongs to a batch, the batch, and the row's place in it."""
    ragged = arguments["layout_q"] == "TND"
    return [
        ((int(arguments["cu_seqlens_q"][b]) + s,) if ragged else (b, s), b, s)
        for b, count in enumerate(counts_of(arguments, "q"))
        for s in range(count)
    ]


def plain_tokens(arguments: Arguments, part: str, row: tuple[int, ...], b: int, s: int) -> list[int]:
    """The tokens of a part that a row attends to, as the specification has it."""
    if f"{part}_kv" not in arguments:
        return []
    q_len, length = counts_of(arguments, "q")[b], counts_of(arguments, part)[b]
    first, end = 0, length
    mask = arguments.get(f"{part}_mask_mode", 0)
    if part == "ori":
        t = length - q_len + s
        left, right = arguments.get("ori_win_left", -1), arguments.get("ori_win_right", -1)
        if mask == 3:
            end = t + 1
        elif mask == 4:
            first = 0 if left == -1 else t - left
            end = length if right == -1 else t + right + 1
    elif mask == 3:
        ratio = arguments.get("cmp_ratio", 1)
        residual = arguments.get("cmp_residual_kv", [0] * (b + 1))[b]
        end = math.floor((length * ratio + residual - q_len + s + 1) / ratio)
    allowed = range(max(first, 0), min(end, length))
    if f"{part}_sparse_indices" not in arguments:
        return list(allowed)
    return [i for i in arguments[f"{part}_sparse_indices"][row][0].tolist() if i in allowed]


def cache_index(arguments: Arguments, part: str, b: int, token: int) -> tuple[int, ...]:
    """Where a batch's token lies in the part's cache."""
    if arguments["layout_kv"] == "BSND":
        return b, token
    if arguments["layout_kv"] == "TND":
        return (int(arguments[f"cu_seqlens_{part}_kv"][b]) + token,)
    page_size = arguments[f"{part}_kv"].shape[1]
    return int(arguments[f"{part}_block_table"][b, token // page_size]), token % page_size


def plain_mla(arguments: Arguments) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Output and lse: one score, one weight, one sum at a time. For finite codes and sinks."""
    query, table = arguments["q"], decode_table("hifloat8").astype(np.float64)
    output = np.zeros(query.shape)
    lse = np.full(query.shape[:-1], -np.inf)
    for row, b, s in rows_of(arguments):
        keys, values = [], []
        for part in ("ori", "cmp"):
            for token in plain_tokens(arguments, part, row, b, s):
                codes = arguments[f"{part}_kv"][cache_index(arguments, part, b, token)][0]
                keys.append(table[codes] * float(arguments["q_descale"]) * arguments["softmax_scale"])
                values.append(table[codes] * float(arguments[f"{part}_kv_descale"]))
                keys[-1] *= float(arguments[f"{part}_kv_descale"])
        for head in range(query.shape[-2]):
            scores = [math.fsum(table[query[row][head]] * key) for key in keys]
            sink = -math.inf if arguments.get("sinks") is None else float(arguments["sinks"][head])
            if not scores:
                lse[(*row, head)] = sink
                continue
            largest = max([*scores, sink])
            weights = [math.exp(score - largest) for score in scores]
            total = math.fsum([*weights, math.exp(sink - largest)])
            output[(*row, head)] = sum(w * v for w, v in zip(weights, values, strict=True)) / total
            lse[(*row, head)] = largest + math.log(total)
    return output, lse


def poisoned(arguments: Arguments) -> Arguments:
    """The same call, with NaN in every cache row that no query row attends to, and in tables no page."""
    changes: Arguments = {}
    for part in ("ori", "cmp"):
        if f"{part}_kv" not in arguments:
            continue
        used = {
            cache_index(arguments, part, b, token)
            for row, b, s in rows_of(arguments)
            for token in plain_tokens(arguments, part, row, b, s)
        }
        cache = qsmla.aligned_empty(arguments[f"{part}_kv"].shape, np.uint8)
        cache[...] = arguments[f"{part}_kv"]
        for place in np.ndindex(*cache.shape[:-2]):
            if place not in used:
                cache[place] = NAN_CODE
        changes[f"{part}_kv"] = cache
        if f"{part}_block_table" in arguments:
            table = arguments[f"{part}_block_table"].copy()
            pages = -(-np.array(counts_of(arguments, part)) // cache.shape[1])
            table[np.arange(table.shape[1]) >= pages[:, None]] = BEHIND_THE_TABLE
            changes[f"{part}_block_table"] = table
    return arguments | changes
