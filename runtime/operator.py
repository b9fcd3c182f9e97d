"""`kv_quant_sparse_flash_attention` on compiled kernels."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.build import compile
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.attributes import NO_LIMIT
from qsmla.runtime.checks import AttentionCall, check_call
from qsmla.runtime.execution import run_partition
from qsmla.runtime.lanes import Kernel
from qsmla.runtime.work import partition, select, work
from qsmla.runtime.workers import pool, worker_count

_kernels: dict[tuple[KernelSpec, str | Target], Kernel] = {}
_kernels_guard = threading.Lock()

Result = npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[np.float32]]


def kv_quant_sparse_flash_attention(
    query: npt.NDArray[Any],
    key: npt.NDArray[Any],
    value: npt.NDArray[Any] | None,
    sparse_indices: npt.NDArray[Any],
    scale_value: float,
    *,
    key_quant_mode: int = 2,
    value_quant_mode: int = 2,
    key_dequant_scale: None = None,
    value_dequant_scale: None = None,
    block_table: npt.NDArray[Any] | None = None,
    actual_seq_lengths_query: Any = None,
    actual_seq_lengths_kv: Any = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = NO_LIMIT,
    next_tokens: int = NO_LIMIT,
    attention_mode: int = 2,
    quant_scale_repo_mode: int = 1,
    tile_size: int = 128,
    rope_head_dim: int = 64,
    kv_dtype: str | None = None,
    byte_order: str = "ascend",
    profile: str = "portable",
    return_softmax_lse: bool = False,
    out: npt.NDArray[Any] | None = None,
    target: str | Target = "llvm-cpu",
    metadata: npt.NDArray[np.int32] | None = None,
) -> Result:
    """Sparse attention of an MLA-absorbed query over a quantised cache, on a compiled kernel.

        softmax(scale_value * Q @ Dequant(K)^T) @ Dequant(V)

    over the tokens that `sparse_indices` selects for each query row. N query heads share one
    key/value head; B requests; K selected blocks a row. The first call of a new kernel compiles it, or takes
    it from the cache.

    Args:
        query: [B, S1, N, 576] (BSND) or [T, N, 576] (TND), float16 or bfloat16; 512 nope columns, then 64
            rope columns. N is 1, 2, 4, 8, 16, 32, 48, 64 or 128.
        key: the cache of packed rows (see `pack_kv`): [B, S2, 1, 656] (BSND), [T2, 1, 656] (TND) or
            [block_num, block_size, 1, 656] (PA_BSND, block_size a multiple of 16 up to 1024); int8,
            float8_e4m3fn, or uint8 with the codes of `kv_dtype`. Read in place if it is contiguous on a
            64-byte boundary (`aligned_empty`), else copied at every call.
        value: None, key itself, or a view of the same memory (all 656 columns or the first 512).
        sparse_indices: [B, S1, 1, K] or [T, 1, K], int32 or int64; block numbers in the row's own key
            sequence. An id that is negative or behind what the row may see is skipped.
        scale_value: factor of the scores.
        key_quant_mode, value_quant_mode: 2, per tile.
        key_dequant_scale, value_dequant_scale: None; the scales lie in key's rows.
        block_table: [B, pages], int32 or int64; PA_BSND only: logical page to physical page.
        actual_seq_lengths_query: [B]; TND: required, inclusive prefix sums. BSND: counts, None for S1.
        actual_seq_lengths_kv: [B]; TND: required, inclusive prefix sums. PA_BSND: required, counts.
            BSND: counts, None for S2.
        sparse_block_size: tokens per selected block, a power of two in 1..128; in PA_BSND it divides
            block_size.
        layout_query: "BSND" or "TND".
        layout_kv: layout_query, or "PA_BSND".
        sparse_mode: 0, no mask; 3, right-down causal: row s of q_len sees kv_len - q_len + s + 1 tokens.
        pre_tokens, next_tokens: 2**63 - 1.
        attention_mode: 2, MLA absorb.
        quant_scale_repo_mode: 1, scales stored in the row.
        tile_size: 128.
        rope_head_dim: 64.
        kv_dtype: "int8", "float8_e4m3" or "hifloat8"; None: what key's dtype says.
        byte_order: "ascend" (nope, rope, scales) or "flashmla" (nope, scales, rope).
        profile: "portable", or "ascend_950", "atlas_a3", "atlas_a2" to be refused what is not legal there.
        return_softmax_lse: also return the log-sum-exp of the scores.
        out: query's shape with the last dimension 512, query's dtype; written and returned.
        target: what to run on: "llvm-cpu", or "llvm-cpu:NAME" for a CPU level such as x86-64-v3.
        metadata: int32[1024] from `plan` for the same lengths and selection; None: planned here.

    Returns:
        query's shape with the last dimension 512, in query's dtype; a row with nothing to attend to is zeros.
        With return_softmax_lse also float32 of that shape without the last dimension: natural log of the sum
        of exp(score), -inf for a row that attends to nothing.

    Raises:
        TypeError: an argument is of the wrong kind or dtype; the text names it.
        ValueError: an argument has a value or shape that is not allowed; the text names it.
        CompileError: the kernel is not in the cache and could not be compiled.
    """
    arguments = locals()
    kernel_target = _runnable(arguments.pop("target"))
    plan_words = arguments.pop("metadata")
    call = check_call(**arguments)
    return _run(call, _kernel(call.spec, kernel_target), plan_words)


def plan(*, num_cores: int | None = None, out: npt.NDArray[np.int32] | None = None, **arguments: Any) -> Any:
    """The work partition of a call of `kv_quant_sparse_flash_attention`.

    Args:
        num_cores: 1..132; None: the workers of this machine (QSMLA_NUM_WORKERS, else its physical cores).
        out: int32 [1024], written in place.
        arguments: the operator's arguments up to `return_softmax_lse`, by name.

    Returns:
        int32 [1024], for the operator's `metadata`: it counts the valid ids of each row, so it is good for
        calls with the same lengths whose rows select as many blocks. `Partition.decode` makes it readable.

    Raises:
        TypeError, ValueError: as the operator; the text names the argument.
    """
    call = check_call(**arguments)
    cores = worker_count() if num_cores is None else num_cores
    return partition(call, select(call), cores).encode(out)


class LoadedKernel:
    """An artifact of `kv_quant_sparse_flash_attention`, ready to run: call it like the operator.

    The arguments that the kernel is specialised on (layouts, sparse_block_size, sparse_mode, kv_dtype,
    byte_order) are the artifact's own; a call may repeat them but not differ.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self._kernel = Kernel(artifact)

    @property
    def spec(self) -> KernelSpec:
        """What the kernel is specialised on."""
        return self.artifact.spec

    def __call__(
        self,
        query: npt.NDArray[Any],
        key: npt.NDArray[Any],
        value: npt.NDArray[Any] | None,
        sparse_indices: npt.NDArray[Any],
        scale_value: float,
        *,
        metadata: npt.NDArray[np.int32] | None = None,
        **attributes: Any,
    ) -> Result:
        """Run the kernel; arguments, result and errors are those of `kv_quant_sparse_flash_attention`."""
        own = self.spec.to_dict()
        for name in (
            "layout_query",
            "layout_kv",
            "sparse_block_size",
            "sparse_mode",
            "kv_dtype",
            "byte_order",
        ):
            attributes.setdefault(name, own[name])
        call = check_call(query, key, value, sparse_indices, scale_value, **attributes)
        given = call.spec.to_dict()
        for name, expected in own.items():
            if given[name] != expected:
                raise ValueError(f"{name} is {given[name]!r}; allowed: {expected!r}, the artifact's")
        return _run(call, self._kernel, metadata)


def load(path: str | os.PathLike[str]) -> LoadedKernel:
    """Load an artifact; needs no compiler.

    Raises:
        ArtifactError: not an artifact, damaged, of another version, or not for this machine.
        OSError: the file cannot be read.
    """
    artifact = Artifact.load(path)
    if all(target.kind != "llvm-cpu" for target in artifact.targets):
        kinds = ", ".join(target.label for target in artifact.targets)
        raise ArtifactError(f"{path} is compiled for {kinds}; this version runs llvm-cpu")
    return LoadedKernel(artifact)


def _runnable(target: str | Target) -> str | Target:
    kind = target.kind if isinstance(target, Target) else str(target).partition(":")[0]
    if not isinstance(target, str | Target):
        raise TypeError(f"target is a {type(target).__name__}; allowed: a string or a Target")
    if kind != "llvm-cpu":
        raise ValueError(f"target is {target!r}; allowed: llvm-cpu, llvm-cpu:NAME")
    return target


def _kernel(spec: KernelSpec, target: str | Target) -> Kernel:
    """The kernel from memory, from the cache, or from the compiler."""
    kernel = _kernels.get((spec, target))
    if kernel is None:
        artifact = compile(spec, target)
        if reason := artifact.unmet():
            raise ValueError(f"target is {target!r}, which cannot run here: {reason}")
        with _kernels_guard:
            kernel = _kernels.setdefault((spec, target), Kernel(artifact))
    return kernel


def _run(call: AttentionCall, kernel: Kernel, metadata: npt.NDArray[np.int32] | None) -> Result:
    selection = select(call)
    workers = pool()
    cut = partition(call, selection, workers.count, metadata)
    result = np.empty(call.output_shape, call.query.dtype) if call.out is None else call.out
    in_place = result.flags.c_contiguous
    shape = (*call.query.shape[:2], call.output_shape[-1])
    output = result.reshape(shape) if in_place else np.empty(shape, result.dtype)
    lse = np.empty(shape[:-1], np.float32)
    nobody = selection.batch < 0
    output[nobody] = 0
    lse[nobody] = -np.inf
    run_partition(kernel, work(call, selection, output, lse), cut, workers)
    if not in_place:
        result[...] = output.reshape(call.output_shape)
    return (result, lse.reshape(call.lse_shape)) if call.return_softmax_lse else result
