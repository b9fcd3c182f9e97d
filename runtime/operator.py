"""`kv_quant_sparse_flash_attention` on compiled kernels."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import KernelSpec, MlaSpec
from qsmla.runtime.attributes import NO_LIMIT, check_integer
from qsmla.runtime.checks import AttentionCall, check_call
from qsmla.runtime.device_array import Array, DeviceArray, from_device
from qsmla.runtime.execution import run_program
from qsmla.runtime.kernels import kernel_for, resolve_target, target_of
from qsmla.runtime.lanes import Kernel
from qsmla.runtime.limits import check_buffers
from qsmla.runtime.mla_operator import LoadedMla
from qsmla.runtime.output import Output, Result, results_of
from qsmla.runtime.partition import NUM_CORES
from qsmla.runtime.staging import Staging
from qsmla.runtime.work import kept_plan, plan_of, select, work
from qsmla.runtime.workers import pool, worker_count

_ON_DEVICE: Final = ("query", "key", "sparse_indices")
"""What may be on the device."""


def kv_quant_sparse_flash_attention(
    query: Array,
    key: Array,
    value: Array | None,
    sparse_indices: Array,
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
    it from the cache. query, key and sparse_indices may lie on the target's device (`to_device`); an ndarray
    is copied there at every call, unless the target is a CPU. Results are where query is.

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
        target: what to run on: "llvm-cpu", "llvm-cpu:NAME" for a CPU level such as x86-64-v3, "vulkan" or
            "vulkan:PROFILE", "cuda" or "cuda:sm_NN". A device that does not fit is an error: no CPU steps in.
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
    chosen = resolve_target(arguments.pop("target"))
    plan_words = arguments.pop("metadata")
    call, resident = _check(arguments, chosen)
    return _run(call, resident, kernel_for(call.spec, chosen), chosen, plan_words)


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
    on_host: dict[str, Any] = {
        name: value.stand_in() if isinstance(value, DeviceArray) else value
        for name, value in arguments.items()
    }
    call = check_call(**on_host)
    cores = worker_count() if num_cores is None else check_integer("num_cores", num_cores, NUM_CORES)
    return plan_of(select(call), call, cores).encode(out)


class LoadedKernel:
    """An artifact of `kv_quant_sparse_flash_attention`, ready to run: call it like the operator.

    The arguments that the kernel is specialised on (layouts, sparse_block_size, sparse_mode, kv_dtype,
    byte_order) are the artifact's own; a call may repeat them but not differ.
    """

    def __init__(self, artifact: Artifact, target: str | Target | None = None) -> None:
        if not isinstance(artifact.spec, KernelSpec):
            raise ArtifactError(
                f"the artifact is a kernel of {artifact.spec.operator}; allowed: one of {KernelSpec.operator}"
            )
        self.artifact = artifact
        self.spec: KernelSpec = artifact.spec
        """What the kernel is specialised on."""
        self.target = target_of(artifact, target)
        """What it runs on."""
        self._kernel = Kernel(artifact)

    def __call__(
        self,
        query: Array,
        key: Array,
        value: Array | None,
        sparse_indices: Array,
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
        names = ("query", "key", "value", "sparse_indices", "scale_value")
        values = (query, key, value, sparse_indices, scale_value)
        call, resident = _check(dict(zip(names, values, strict=True)) | attributes, self.target)
        given = call.spec.to_dict()
        for name, expected in own.items():
            if given[name] != expected:
                raise ValueError(f"{name} is {given[name]!r}; allowed: {expected!r}, the artifact's")
        return _run(call, resident, self._kernel, self.target, metadata)


def load(path: str | os.PathLike[str], target: str | Target | None = None) -> LoadedKernel | LoadedMla:
    """Load an artifact; needs no compiler.

    Args:
        path: a .vmfb file that qsmla wrote.
        target: which of its targets to run on, by kind or whole name; None: the first it was compiled for.

    Returns:
        what is called like the operator whose kernel it is.

    Raises:
        ArtifactError: not an artifact, damaged, of another version, not for this machine or for `target`.
        OSError: the file cannot be read.
    """
    return load_artifact(Artifact.load(path), target)


def load_artifact(artifact: Artifact, target: str | Target | None = None) -> LoadedKernel | LoadedMla:
    """What runs an artifact that is in memory; as `load`."""
    return (LoadedMla if isinstance(artifact.spec, MlaSpec) else LoadedKernel)(artifact, target)


def _check(arguments: dict[str, Any], target: Target) -> tuple[AttentionCall, dict[str, DeviceArray]]:
    """The checked call, and which of its arrays are on the device."""
    if arguments["value"] is arguments["key"]:
        arguments = arguments | {"value": None}
    on_host, resident = from_device(arguments, target, _ON_DEVICE)
    return check_call(**on_host), resident


def _run(
    call: AttentionCall,
    resident: dict[str, DeviceArray],
    kernel: Kernel,
    target: Target,
    metadata: npt.NDArray[np.int32] | None,
) -> Result:
    selection = select(call)
    check_buffers(call, selection.blocks, target)
    lanes = pool(target)
    program = kept_plan(call, selection, lanes.count, metadata).program(
        selection.order, target.kind, call.spec.heads
    )
    stay_on = target if "query" in resident else None
    if selection.indices is not call.indices:
        # Brought to the front on the host: what lies on the device is another array.
        resident.pop("sparse_indices", None)

    def compute(output: Output) -> None:
        staging = Staging() if target.kind == "llvm-cpu" else None
        run_program(kernel, work(call, selection, output, staging, resident), program, lanes)
        if len(selection.blocks) < len(call.query):
            output.put_nothing(selection.geometry.batch < 0)

    return results_of(
        compute,
        call.output_shape,
        call.query.dtype,
        out=call.out,
        stay_on=stay_on,
        return_softmax_lse=call.return_softmax_lse,
    )
