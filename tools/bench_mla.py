"""How long a call of `quant_sparse_flash_mla` takes, beside PyTorch: `python -m qsmla.tools.mla_bench`.

A window of 128 original tokens and 512 selected of 16,384 compressed ones, 64 heads, as in one decode step of
one request and of 32. PyTorch does the same maths in bfloat16 and in float32, eagerly and through
torch.compile: it looks the codes up in a table. How it is measured is `qsmla.tools.bench`'s. PyTorch is
optional: `pip install torch==2.13.0`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console

import qsmla
from qsmla.ir.codes import decode_table, encode
from qsmla.ir.spec import NOPE_DIM
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attend
from qsmla.runtime.workers import worker_count
from qsmla.tools.bench import Call, Timing, measure, show

ROWS: Final = (1, 32)
"""Requests of one query row."""
HEADS: Final = 64
WINDOW: Final = 128
TOPK: Final = 512
COMPRESSED: Final = 16_384
RATIO: Final = 4
SCALE: Final = NOPE_DIM**-0.5
SETS: Final = 8
"""Selections, so that a round does not find the keys of the one before in the cache."""


@dataclass(frozen=True, eq=False)
class Case:
    """The inputs of a number of requests."""

    q: npt.NDArray[np.uint8]
    """[rows, 1, HEADS, 512]."""
    ori_kv: npt.NDArray[np.uint8]
    """[rows, WINDOW, 1, 512]."""
    cmp_kv: npt.NDArray[np.uint8]
    """[rows, COMPRESSED, 1, 512]."""
    indices: list[npt.NDArray[np.int32]]
    """Selections, each [rows, 1, 1, TOPK]."""


def build_case(rows: int, random: np.random.Generator) -> Case:
    """Codes of normal values, and random selections."""

    def codes(*shape: int) -> npt.NDArray[np.uint8]:
        array = qsmla.aligned_empty(shape, np.uint8)
        for part in array:
            part[...] = encode(random.standard_normal(part.shape, dtype=np.float32), "hifloat8")
        return array

    indices = [
        np.stack([random.choice(COMPRESSED, TOPK, replace=False) for _ in range(rows)])
        .astype(np.int32)
        .reshape(rows, 1, 1, TOPK)
        for _ in range(SETS)
    ]
    return Case(
        codes(rows, 1, HEADS, NOPE_DIM),
        codes(rows, WINDOW, 1, NOPE_DIM),
        codes(rows, COMPRESSED, 1, NOPE_DIM),
        indices,
    )


def arguments(case: Case, index_set: int) -> dict[str, Any]:
    """The operator's arguments."""
    rows = len(case.q)
    return {
        "q": case.q,
        "ori_kv": case.ori_kv,
        "cmp_kv": case.cmp_kv,
        "q_descale": 1.0,
        "ori_kv_descale": 1.0,
        "cmp_kv_descale": 1.0,
        "cmp_sparse_indices": case.indices[index_set],
        "softmax_scale": SCALE,
        "ori_mask_mode": 4,
        "ori_win_left": WINDOW - 1,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
        "cmp_ratio": RATIO,
        "cmp_residual_kv": np.zeros(rows, np.int32),
    }


def product(case: Case, target: str) -> Call:
    """The operator, worker threads as many as it takes by itself."""

    def call(index_set: int) -> npt.NDArray[np.float32]:
        output = qsmla.quant_sparse_flash_mla(**arguments(case, index_set), target=target)
        rows: npt.NDArray[np.float32] = np.asarray(output)[:, 0].astype(np.float32)
        return rows

    return call


def torch_program(case: Case, dtype: str, compiled: bool) -> Call:
    """Gather, look up, matmul, softmax, matmul in a dtype of PyTorch, eagerly or through torch.compile."""
    import torch

    number = getattr(torch, dtype)
    table = torch.from_numpy(decode_table("hifloat8").copy()).to(number)
    requests = torch.arange(len(case.q))[:, None]

    def attention(q: Any, ori: Any, cmp: Any, indices: Any) -> Any:
        keys = table[torch.cat([ori, cmp[requests, indices]], 1).int()]
        scores = table[q.int()] @ keys.transpose(1, 2)
        weights = torch.softmax(scores.float() * SCALE, -1).to(number)
        return weights @ keys

    program = torch.compile(attention) if compiled else attention
    arrays = (case.q[:, 0], case.ori_kv[:, :, 0], case.cmp_kv[:, :, 0])
    q, ori, cmp = map(torch.from_numpy, arrays)
    indices = [torch.from_numpy(each[:, 0, 0]).long() for each in case.indices]

    def call(index_set: int) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            output: npt.NDArray[np.float32] = program(q, ori, cmp, indices[index_set]).float().numpy()
        return output

    return call


def contenders(case: Case, target: str, compiled: bool) -> dict[str, Call]:
    """By name; PyTorch where it is installed, in float32 too, which a CPU without bfloat16 is faster at."""
    calls = {"qsmla": product(case, target)}
    if importlib.util.find_spec("torch") is not None:
        for name, dtype in (("bf16", "bfloat16"), ("f32", "float32")):
            calls[f"torch {name}"] = torch_program(case, dtype, compiled=False)
            if compiled:
                calls[f"torch.compile {name}"] = torch_program(case, dtype, compiled=True)
    return calls


def main(
    rounds: Annotated[int, typer.Option(min=2, help="Timed calls of each contender on each shape.")] = 15,
    compiled: Annotated[bool, typer.Option("--compile", help="Time torch.compile too.")] = False,
    target: Annotated[str, typer.Option(help="What qsmla runs on.")] = "llvm-cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Time the operator beside PyTorch, in one run."""
    random = np.random.default_rng(0)
    timings: list[Timing] = []
    for rows in ROWS:
        case = build_case(rows, random)
        expected = attend(check_mla_call(**arguments(case, 0))).output
        calls = contenders(case, target, compiled)
        found = measure((rows, HEADS, WINDOW + TOPK), expected, calls, SETS, rounds)
        timings += [dataclasses.replace(timing, columns=2 * NOPE_DIM) for timing in found]
    if as_json:
        print(json.dumps({"workers": worker_count(), "timings": list(map(dataclasses.asdict, timings))}))
    else:
        console = Console()
        console.print(f"{worker_count()} workers on {target}, medians of {rounds}")
        show(timings, console)


if __name__ == "__main__":
    typer.run(main)
