"""The matrix of `quant_sparse_flash_mla`: every kind of parts and cache, times calls of all other kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mla_calls import FINITE_CODES, NAN_CODE, Arguments, mla_arguments, poisoned

from qsmla.ir.codes import decode_table
from qsmla.ir.spec import PARTS, MlaSpec

INT32 = np.iinfo(np.int32)
HEADS = (1, 3, 16, 64, 7, 128, 8, 33, 2, 80, 5, 32, 48, 20, 4, 100)
"""One for each kernel."""


def band(left: int, right: int) -> Arguments:
    return {"ori_mask_mode": 4, "ori_win_left": left, "ori_win_right": right}


def compressed(ratio: int, *residual: int) -> Arguments:
    return {"cmp_mask_mode": 3, "cmp_ratio": ratio, "cmp_residual_kv": np.array(residual, np.int32)}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Lengths, masks, selection and sinks of a call, for any kernel."""

    query: tuple[int, ...] = (2, 1)
    ori: tuple[int, ...] = (150, 70)
    cmp: tuple[int, ...] = (90, 37)
    ori_topk: int = 60
    cmp_topk: int = 64
    padding: int = 0
    attributes: Arguments = field(default_factory=dict)
    sinks: tuple[float, ...] | None = None
    """Dealt round the heads."""
    change: Callable[[Arguments, np.random.Generator], None] | None = None
    """What else is peculiar."""
    salt: int = 0
    """Picks the random values. Where a row attends to few keys, rounding the weights to bfloat16 by itself
    puts one element in a million outside the tolerance; of these values none is."""


def _odd_ids(arguments: Arguments, generator: np.random.Generator) -> None:
    """Ids that are no token of any sequence among the others, valid ones not in front, and duplicates."""
    for name in ("ori_sparse_indices", "cmp_sparse_indices"):
        if name in arguments:
            ids = arguments[name]
            ids[..., ::3] = np.resize([-1, INT32.min, INT32.max, 0x7FC00000, -150], ids[..., ::3].shape)
            ids[..., 1] = ids[..., -1] = 0


def _duplicates(arguments: Arguments, generator: np.random.Generator) -> None:
    """More valid ids than there are tokens: each counts every time, although no plan can know."""
    for part, tokens in (("ori", 5), ("cmp", 3)):
        if f"{part}_sparse_indices" in arguments:
            ids = arguments[f"{part}_sparse_indices"]
            ids[...] = generator.integers(0, tokens, ids.shape)


def _all_codes(arguments: Arguments, generator: np.random.Generator) -> None:
    """Every finite code in query and caches; a scale that brings the scores to about 10."""
    for name in ("q", "ori_kv", "cmp_kv"):
        if name in arguments:
            flat = arguments[name].reshape(-1)
            flat[:] = generator.permutation(np.resize(FINITE_CODES, flat.shape))
    table = decode_table("hifloat8").astype(np.float64)
    queries, keys = (
        table[arguments[name].reshape(-1, 512)]
        for name in ("q", "ori_kv" if "ori_kv" in arguments else "cmp_kv")
    )
    arguments["softmax_scale"] = 10 / np.abs(queries @ keys[:200].T).max()


def _nan_codes(arguments: Arguments, generator: np.random.Generator) -> None:
    """A NaN in one query head and in a few cached tokens."""
    arguments["q"].reshape(-1, *arguments["q"].shape[-2:])[0, -1, 17] = NAN_CODE
    for name in ("ori_kv", "cmp_kv"):
        if name in arguments:
            rows = arguments[name].reshape(-1, 512)
            rows[generator.integers(0, len(rows), 6), generator.integers(0, 512, 6)] = NAN_CODE


def _descales(arguments: Arguments, generator: np.random.Generator) -> None:
    """Factors far from 1, one of them negative, as arrays; softmax close to a maximum."""
    arguments["q_descale"] = np.array([2.0**-12], np.float32)
    for name, factor in (("ori_kv_descale", 3e-4), ("cmp_kv_descale", -1e-3)):
        if name in arguments:
            arguments[name] = np.array([factor], np.float32)
    arguments["softmax_scale"] = 3e6


NO_SINK = float("-inf")
SCENARIOS = {
    "window_128_ratio_4_top_512": Scenario(
        query=(1, 1),
        ori=(300, 150),
        cmp=(700, 37),
        cmp_topk=512,
        attributes=band(127, 0) | compressed(4, 0, 3),
        sinks=(0.5, -2.0, 3.0),
    ),
    "window_128_ratio_128_top_1024": Scenario(
        query=(1, 2),
        ori=(200, 129),
        cmp=(1100, 3),
        ori_topk=300,
        cmp_topk=1024,
        attributes=band(127, 0) | compressed(128, 127, 0),
    ),
    "prefill": Scenario(query=(5, 2), attributes={"ori_mask_mode": 3} | compressed(4, 1, 3), padding=2),
    "no_masks": Scenario(query=(2, 3), sinks=(1.0,)),
    "shorter_than_the_window": Scenario(ori=(5, 60), attributes=band(127, 0), cmp_topk=1),
    "window_and_residual_of_a_ratio_of_3": Scenario(
        query=(4, 1), attributes=band(30, 2) | compressed(3, 2, 1), padding=1
    ),
    "empty_sequences": Scenario(
        query=(0, 3, 0, 2), ori=(9, 0, 4, 0), cmp=(0, 0, 3, 7), sinks=(0.25, NO_SINK), attributes=band(3, 0)
    ),
    "more_queries_than_keys": Scenario(
        query=(6, 3),
        ori=(3, 1),
        cmp=(2, 0),
        attributes={"ori_mask_mode": 3} | compressed(2, 1, 0),
        sinks=(NO_SINK, 2.0),
        salt=14,
    ),
    "more_ids_than_keys": Scenario(ori=(20, 33), cmp=(7, 12), ori_topk=100, cmp_topk=100, salt=3),
    "window_without_left": Scenario(query=(3, 1), attributes=band(-1, 1)),
    "window_without_right": Scenario(query=(3, 1), attributes=band(9, -1), ori_topk=7),
    "window_of_one": Scenario(query=(2, 4), attributes=band(0, 0) | compressed(1, 0, 0)),
    "no_sink_at_all": Scenario(sinks=(NO_SINK,), attributes={"cmp_ratio": 4}),
    "sinks_of_infinity": Scenario(sinks=(float("inf"), 1.0, NO_SINK)),
    "large_sinks": Scenario(sinks=(30.0, -90.0, 700.0), padding=3),
    "odd_ids": Scenario(change=_odd_ids, attributes=band(40, 5)),
    "duplicates": Scenario(
        query=(2, 1), ori=(5, 6), cmp=(3, 9), ori_topk=300, cmp_topk=600, change=_duplicates, salt=26
    ),
    "all_codes": Scenario(change=_all_codes),
    "nan_codes": Scenario(change=_nan_codes, sinks=(0.5, float("inf"))),
    "descales": Scenario(change=_descales, attributes={"ori_mask_mode": 3}, salt=1),
}


@dataclass(frozen=True)
class MlaCase:
    """A call of one kernel, reproducible from its name."""

    spec: MlaSpec
    scenario: str
    seed: int

    @property
    def name(self) -> str:
        """Every field of the kernel, and the scenario."""
        return "-".join(str(value) for value in [*self.spec.to_dict().values()][1:]) + f"-{self.scenario}"

    def arguments(self) -> Arguments:
        """The operator's arguments; what they do not attend to is NaN."""
        scenario, spec = SCENARIOS[self.scenario], self.spec
        heads: dict[str, Any] = {}
        if scenario.sinks is not None:
            heads["sinks"] = np.resize(np.array(scenario.sinks, np.float32), spec.heads)
        arguments = mla_arguments(
            ("BSND", "TND")[self.seed % 2],
            "PA_BBND" if spec.paged else ("BSND", "TND")[self.seed // 2 % 2],
            query_counts=scenario.query,
            ori_counts=None if spec.ori == "none" else scenario.ori,
            cmp_counts=None if spec.cmp == "none" else scenario.cmp,
            heads=spec.heads,
            ori_topk=scenario.ori_topk if spec.ori == "sparse" else 0,
            cmp_topk=scenario.cmp_topk if spec.cmp == "sparse" else 0,
            page_size=16 * (1 + self.seed % 3),
            padding=scenario.padding,
            seed=self.seed + 1000 * scenario.salt,
            **scenario.attributes,
            **heads,
        )
        if scenario.change is not None:
            scenario.change(arguments, np.random.default_rng(self.seed))
        return poisoned(arguments)


def mla_specs() -> list[MlaSpec]:
    """16 kernels: every kind of parts with every kind of cache, each with another number of heads."""
    kinds = [
        (ori, cmp, cache)
        for ori in PARTS
        for cmp in PARTS
        for cache in ("contiguous", "paged")
        if (ori, cmp) != ("none", "none")
    ]
    return [
        MlaSpec(ori=ori, cmp=cmp, kv_cache=cache, heads=heads)
        for (ori, cmp, cache), heads in zip(kinds, HEADS, strict=True)
    ]


def mla_cases(which: str = "all") -> Iterator[MlaCase]:
    """Every kernel with every scenario; "some": every scenario, dealt out to the kernels with few heads."""
    few = [spec for spec in mla_specs() if spec.heads < 20]
    for i, spec in enumerate(mla_specs()):
        for j, scenario in enumerate(SCENARIOS):
            first = few.index(spec) * len(SCENARIOS) // len(few) if spec in few else j + 1
            if which == "all" or 0 <= j - first < 3:
                yield MlaCase(spec, scenario, i + 5 * j)
