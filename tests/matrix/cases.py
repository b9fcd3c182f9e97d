"""The matrix: kernels that cover every pair of field values, times calls of different shapes.

Nothing here depends on a target: a target's test module runs the same cases with its own name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from calls import LAYOUTS
from compiled import arguments_of, poisoned
from plain import Arguments

from qsmla.ir.spec import HEAD_COUNTS, SPARSE_BLOCK_SIZES, KernelSpec

INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Shape:
    """Lengths and selection of a call, for any kernel."""

    query_counts: tuple[int, ...]
    kv_counts: tuple[int, ...]
    selected: int
    """Ids a row; less where sparse blocks are so large that fewer make up `most_keys`."""
    most_keys: int = 400
    zero_mean: bool = False
    """Whether a column's values have both signs: not for rows of few keys, see `arguments_of`."""
    odd_ids: bool = False
    """Whether ids that are no block of any sequence stand among the others, and duplicates."""


SHAPES = {
    "decode": Shape((1, 1, 1, 1), (300, 1, 129, 258), selected=300, zero_mean=True),
    "ragged": Shape((0, 5, 0), (9, 5, 0), selected=3),
    "prefill": Shape((5, 2), (37, 200), selected=63),
    "more_queries_than_keys": Shape((6, 2), (3, 70), selected=65),
    "more_ids_than_keys": Shape((1, 2), (33, 16), selected=100, zero_mean=True),
    "one_id": Shape((2, 3, 1), (150, 40, 129), selected=1),
    "odd_ids": Shape((3, 1), (260, 45), selected=40, odd_ids=True),
}


@dataclass(frozen=True)
class Case:
    """A call of one kernel, reproducible from its name."""

    spec: KernelSpec
    shape: str
    seed: int

    @property
    def name(self) -> str:
        """Every field of the kernel, and the shape."""
        return "-".join(str(value) for value in [*self.spec.to_dict().values()][1:]) + f"-{self.shape}"

    def arguments(self) -> Arguments:
        """The operator's arguments; what they do not select is NaN."""
        shape, block = SHAPES[self.shape], self.spec.sparse_block_size
        arguments = arguments_of(
            self.spec,
            query_counts=shape.query_counts,
            kv_counts=shape.kv_counts,
            selected=min(shape.selected, -(-shape.most_keys // block)),
            page_size=max(16, block) * (1 + self.seed % 3),
            seed=self.seed,
            zero_mean=shape.zero_mean,
        )
        if shape.odd_ids:
            ids = arguments["sparse_indices"]
            odd = [-1, INT32.min, INT32.max, 0x7FC00000, -(-shape.kv_counts[0] // block)]
            ids[..., : -ids.shape[-1] // 2 : -2] = np.resize(odd, ids[..., : -ids.shape[-1] // 2 : -2].shape)
            ids[..., 0] = ids[..., -1] = 0
        return poisoned(arguments)


def specs() -> list[KernelSpec]:
    """72 kernels: every sparse block size with every number of heads, the other fields dealt round.

    Every pair of values of two fields occurs, and so does every layout with every mode, sparse block size
    and number of heads.
    """
    return [
        KernelSpec(
            layout_query=LAYOUTS[(i + j) % 4][0],
            layout_kv=LAYOUTS[(i + j) % 4][1],
            sparse_mode=(0, 3)[(i + j) % 8 // 4],
            kv_dtype=("int8", "float8_e4m3", "hifloat8")[(5 * i + 7 * j) % 3],
            query_dtype=("bfloat16", "float16")[(5 * i + 7 * j) % 6 // 3],
            byte_order=("ascend", "flashmla")[(5 * i + 7 * j) % 12 // 6],
            sparse_block_size=block,
            heads=heads,
        )
        for i, block in enumerate(SPARSE_BLOCK_SIZES)
        for j, heads in enumerate(HEAD_COUNTS)
    ]


def some_specs() -> list[KernelSpec]:
    """A part of the kernels in which every value of every field occurs, and every pair of the short ones.

    For targets on which each kernel takes seconds: picked greedily, those that bring most first, and of
    equals the one with the fewest heads.
    """

    def brings(spec: KernelSpec) -> set[tuple[object, ...]]:
        short = [(spec.layout_query, spec.layout_kv), spec.sparse_mode, spec.kv_dtype, spec.query_dtype]
        values = list(enumerate([*short, spec.byte_order]))
        return {*itertools.combinations(values, 2), ("heads", spec.heads), ("block", spec.sparse_block_size)}

    left, chosen = set().union(*map(brings, specs())), []
    while left:
        chosen.append(max(specs(), key=lambda spec: (len(brings(spec) & left), -spec.heads)))
        left -= brings(chosen[-1])
    return chosen


def find(**fields: object) -> KernelSpec:
    """The kernel of the matrix with these field values and the fewest heads: tests share what it compiles."""
    found = [spec for spec in specs() if fields.items() <= spec.to_dict().items()]
    if not found:
        raise LookupError(f"the matrix has no kernel with {fields}")
    return min(found, key=lambda spec: spec.heads)


def cases(which: str = "all") -> Iterator[Case]:
    """Every kernel with every shape; or, of "some" kernels, each with a few shapes, so that all shapes occur.

    Kernels of 48 heads and more get one: in software each of their calls takes seconds.
    """
    few = {spec: number for number, spec in enumerate(some_specs())}
    for i, spec in enumerate(specs()):
        for j, shape in enumerate(SHAPES):
            turn = (j - 2 * few.get(spec, 0)) % len(SHAPES)
            if which == "all" or (spec in few and turn < (3 if spec.heads < 48 else 1)):
                yield Case(spec, shape, len(SHAPES) * i + j)
