"""The shapes of the bench, and their inputs.

A selection never repeats soon: the cache is several times a large last-level cache, and the index sets of a
shape are cuts of one random order of all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

import qsmla
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES, KernelSpec
from qsmla.runtime import reference
from qsmla.runtime.checks import check_call
from qsmla.tools.bench_measure import Expected

CACHE_ROWS: Final = 400_000
"""262 MB."""
SCALE: Final = (128 + 64) ** -0.5
PAGE_SIZE: Final = 64
MOST_SETS: Final = 256
CAUSAL_SETS: Final = 16
RAGGED_SETS: Final = 8
_DISTINCT_ROWS: Final = 16_384
"""Rows that are quantised; the cache repeats them, in memory of their own."""
_COMPARED_ROWS: Final = 64

Kind = Literal["decode", "causal", "ragged"]


@dataclass(frozen=True)
class Shape:
    """What a call looks like.

    Attributes:
        rows: query rows in all.
        heads: query heads.
        selected: blocks that a row selects; of a ragged request as many as it has tokens, at most.
        block: tokens of a block.
        kind: "decode": rows of one request that select from the whole cache. "causal": a request as long as
            it has rows, each of which lists all tokens and sees those up to its own. "ragged": requests of
            one row, of `shortest` to `longest` cached tokens in geometric steps, in a paged cache.
    """

    rows: int
    heads: int
    selected: int
    block: int = 1
    kind: Kind = "decode"
    shortest: int = 64
    longest: int = 32_768

    @property
    def name(self) -> str:
        """As `--shape` takes it: 4x64x512, 4x64x128b16, causal-512x16x512, ragged-32x16x2048."""
        text = f"{self.rows}x{self.heads}x{self.selected}"
        text += f"b{self.block}" if self.block > 1 else ""
        return text if self.kind == "decode" else f"{self.kind}-{text}"

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Cached tokens of the ragged requests."""
        return np.geomspace(self.shortest, self.longest, self.rows).round().astype(np.int64)


SHAPES: Final = (
    Shape(1, 128, 2048),
    Shape(4, 128, 2048),
    Shape(1, 64, 2048),
    Shape(4, 64, 512),
    Shape(1, 16, 2048),
    Shape(8, 16, 2048),
    Shape(16, 1, 2048),
    Shape(64, 8, 512),
    Shape(4, 64, 128, block=16),
    Shape(512, 16, 512, kind="causal"),
    Shape(32, 16, 2048, kind="ragged"),
)


def parse_shape(text: str) -> Shape:
    """A shape from its name.

    Raises:
        ValueError: not of that form, or a number that is not allowed.
    """
    match = re.fullmatch(r"(?:(causal|ragged)-)?(\d{1,9})x(\d{1,9})x(\d{1,9})(?:b(\d{1,9}))?", text, re.ASCII)
    if match is None:
        raise ValueError(
            f"shape is {text!r}; allowed: ROWSxHEADSxSELECTED, with bBLOCK behind it or causal- or ragged- "
            f"before it, such as {', '.join(shape.name for shape in SHAPES)}"
        )
    kind, *numbers = match.groups()
    rows, heads, selected, block = (int(number or 1) for number in numbers)
    KernelSpec(heads=heads, sparse_block_size=block)  # says what is allowed
    if not rows or not selected:
        raise ValueError(f"shape is {text!r}; allowed: at least one row and one selected block")
    if kind is None:
        return Shape(rows, heads, selected, block)
    if block > 1 or (kind == "causal" and rows != selected):
        raise ValueError(
            f"shape is {text!r}; allowed: blocks of one token, and as many rows as tokens if causal"
        )
    return Shape(rows, heads, selected, kind=kind)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """A shape's inputs, and what its work is counted by.

    Attributes:
        name: of the shape.
        kv_dtype: code format of the keys.
        rows, heads: of the query.
        keys: the most that a row lists.
        attended: keys that all rows together attend to.
        columns: of a key and a value together, as the two matmuls have them.
        row_bytes: of a cached key.
        operator: the operator of qsmla, called with keyword arguments.
        arguments: those of each index set.
        expected: what index set 0 gives.
    """

    name: str
    kv_dtype: str
    rows: int
    heads: int
    keys: int
    attended: int
    columns: int = 2 * NOPE_DIM + ROPE_DIM
    row_bytes: int = ROW_BYTES
    operator: Callable[..., Any] = field(default=qsmla.kv_quant_sparse_flash_attention)
    arguments: list[dict[str, Any]]
    expected: Expected

    @property
    def sets(self) -> int:
        """How many index sets there are."""
        return len(self.arguments)

    @property
    def flops(self) -> int:
        """Of the two matmuls, keys that are attended to alone."""
        return 2 * self.heads * self.attended * self.columns

    @property
    def gathered_bytes(self) -> int:
        """Of the cached rows that are attended to."""
        return self.attended * self.row_bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionCase(Case):
    """A case of kv_quant_sparse_flash_attention.

    Attributes:
        query: bfloat16 [rows, heads, 576].
        cache: uint8 [cached tokens, 656].
        slots: the index sets as rows of the cache, pages and blocks resolved, each [rows, keys] int64; -1 is
            what a row does not attend to.
    """

    query: npt.NDArray[Any]
    cache: npt.NDArray[np.uint8]
    slots: list[npt.NDArray[np.int64]]


def build_cache(rows: int, kv_dtype: str, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A packed cache of normal values, uint8 [rows, 656], on a 64-byte boundary."""
    distinct = min(rows, _DISTINCT_ROWS)
    nope = random.standard_normal((distinct, NOPE_DIM), np.float32)
    rope = random.standard_normal((distinct, ROPE_DIM), np.float32).astype(ml_dtypes.bfloat16)
    packed = qsmla.pack_kv(nope, rope, kv_dtype).view(np.uint8)
    cache = qsmla.aligned_empty((rows, ROW_BYTES), np.uint8)
    for start in range(0, rows, distinct):
        cache[start : start + distinct] = packed[: rows - start]
    return cache


def build_case(
    shape: Shape, cache: npt.NDArray[np.uint8], kv_dtype: str, random: np.random.Generator
) -> AttentionCase:
    """A shape's inputs on a cache.

    Raises:
        ValueError: the cache is too small for the shape.
    """
    query = random.standard_normal((shape.rows, shape.heads, NOPE_DIM + ROPE_DIM), np.float32)
    query = query.astype(ml_dtypes.bfloat16)
    build = {"decode": _decode, "causal": _causal, "ragged": _ragged}[shape.kind]
    slots, arguments = build(shape, cache, random)
    common = {"value": None, "scale_value": SCALE, "kv_dtype": kv_dtype}
    grouped = query[:, None] if shape.kind == "ragged" else query[None]
    arguments = [common | {"query": grouped} | each for each in arguments]
    return AttentionCase(
        name=shape.name,
        kv_dtype=kv_dtype,
        rows=shape.rows,
        heads=shape.heads,
        keys=slots[0].shape[1],
        attended=int(np.count_nonzero(slots[0] >= 0)),
        arguments=arguments,
        expected=_expected(arguments[0]),
        query=query,
        cache=cache,
        slots=slots,
    )


_Inputs = tuple[list[npt.NDArray[np.int64]], list[dict[str, Any]]]
"""Slots and the operator's own arguments, an index set each."""


def _decode(shape: Shape, cache: npt.NDArray[np.uint8], random: np.random.Generator) -> _Inputs:
    wanted = shape.rows * shape.selected
    blocks = len(cache) // shape.block
    if shape.selected > blocks:
        _refuse(cache, shape, shape.selected * shape.block)
    # Rows of one set may share keys where the cache is small, a row's own keys never.
    order = random.permutation(blocks)
    sets = min(max(1, blocks // wanted), MOST_SETS)
    starts = np.arange(sets * shape.rows) * shape.selected
    places = (starts[:, None] + np.arange(shape.selected)) % blocks
    ids = order[places].reshape(sets, shape.rows, shape.selected)
    tokens = (ids[..., None] * shape.block + np.arange(shape.block)).reshape(sets, shape.rows, -1)
    own = {"key": cache[None, :, None], "sparse_mode": 0, "sparse_block_size": shape.block}
    return list(tokens), [own | {"sparse_indices": _as_ids(each[None])} for each in ids]


def _causal(shape: Shape, cache: npt.NDArray[np.uint8], random: np.random.Generator) -> _Inputs:
    """Requests one behind the other; a kernel reads a request in place where it begins on 64 bytes."""
    tokens = shape.rows
    stride = -(-tokens // 4) * 4
    sets = min(len(cache) // stride, CAUSAL_SETS)
    if not sets:
        _refuse(cache, shape, stride)
    lists = random.permuted(np.tile(np.arange(tokens), (tokens, 1)), axis=1)
    seen = lists <= np.arange(tokens)[:, None]
    slots, arguments = [], []
    for first in np.arange(sets) * stride:
        slots.append(np.where(seen, lists + first, -1))
        key = cache[first : first + tokens][None, :, None]
        arguments.append({"key": key, "sparse_mode": 3, "sparse_indices": _as_ids(lists[None])})
    return slots, arguments


def _ragged(shape: Shape, cache: npt.NDArray[np.uint8], random: np.random.Generator) -> _Inputs:
    lengths = shape.lengths
    pages = -(-lengths // PAGE_SIZE)
    every = random.permutation(len(cache) // PAGE_SIZE)
    if pages.sum() > len(every):
        _refuse(cache, shape, int(pages.sum()) * PAGE_SIZE)
    paged = cache[: len(every) * PAGE_SIZE].reshape(-1, PAGE_SIZE, 1, ROW_BYTES)
    most = int(min(shape.selected, lengths.max()))
    slots, arguments = [], []
    for number in range(RAGGED_SETS):
        # As many tables as the cache holds, in turn.
        first = number % (len(every) // int(pages.sum())) * int(pages.sum())
        table = np.zeros((shape.rows, pages.max()), np.int64)
        table[np.arange(pages.max()) < pages[:, None]] = every[first : first + pages.sum()]
        ids = np.full((shape.rows, most), -1, np.int64)
        for row, length in enumerate(lengths):
            chosen = random.permutation(length)[:most]
            ids[row, : len(chosen)] = chosen
        page = np.take_along_axis(table, np.maximum(ids, 0) // PAGE_SIZE, axis=1)
        slots.append(np.where(ids >= 0, page * PAGE_SIZE + ids % PAGE_SIZE, -1))
        arguments.append(
            {
                "key": paged,
                "layout_kv": "PA_BSND",
                "block_table": table.astype(np.int32),
                "actual_seq_lengths_kv": lengths.astype(np.int32),
                "sparse_mode": 0,
                "sparse_indices": _as_ids(ids[:, None]),
            }
        )
    return slots, arguments


def _as_ids(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """[B, S1, K] to [B, S1, 1, K]."""
    array = qsmla.aligned_empty((*ids.shape[:2], 1, ids.shape[2]), np.int32)
    array[:, :, 0] = ids
    return array


def _expected(arguments: dict[str, Any]) -> Expected:
    call = check_call(**arguments)
    count = min(len(call.query), _COMPARED_ROWS)
    rows = np.linspace(0, len(call.query) - 1, count).round().astype(np.int64)
    return Expected(rows, reference.attend(call, rows.tolist()).output)


def _refuse(cache: npt.NDArray[np.uint8], shape: Shape, least: int) -> None:
    raise ValueError(f"cache_rows is {len(cache)}; shape {shape.name} needs at least {least}")
