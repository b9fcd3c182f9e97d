"""`quant_sparse_flash_mla` on compiled kernels."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import NOPE_DIM, MlaSpec
from qsmla.runtime.arrays import aligned_memory
from qsmla.runtime.device_array import Array, DeviceArray, from_device, kernel_inputs
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.execution import Work, run_program
from qsmla.runtime.fingerprint import check_fingerprint
from qsmla.runtime.kept_plans import KeptPlan, given_plan, own_plan
from qsmla.runtime.kernels import kernel_for, resolve_target, target_of
from qsmla.runtime.lanes import Kernel
from qsmla.runtime.limits import check_buffer
from qsmla.runtime.metadata import mla_fingerprint
from qsmla.runtime.mla_checks import OUTPUT_DTYPE, MlaCall, check_mla_call
from qsmla.runtime.mla_selection import MlaSelection, select
from qsmla.runtime.output import Output, Result, results_of
from qsmla.runtime.row_keys import Lengths
from qsmla.runtime.selection import MOST_ROWS_KEPT
from qsmla.runtime.staging import Staging
from qsmla.runtime.workers import pool

_ON_DEVICE: Final = ("q", "ori_kv", "cmp_kv", "ori_sparse_indices", "cmp_sparse_indices")
"""What may be on the device."""


def quant_sparse_flash_mla(
    q: Array,
    ori_kv: Array | None = None,
    cmp_kv: Array | None = None,
    *,
    q_descale: Any,
    ori_kv_descale: Any = None,
    cmp_kv_descale: Any = None,
    ori_sparse_indices: Array | None = None,
    cmp_sparse_indices: Array | None = None,
    ori_block_table: npt.NDArray[Any] | None = None,
    cmp_block_table: npt.NDArray[Any] | None = None,
    sinks: npt.NDArray[np.float32] | None = None,
    metadata: npt.NDArray[np.int32] | None = None,
    softmax_scale: float,
    return_softmax_lse: bool = False,
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
    cmp_ratio: int = 1,
    ori_mask_mode: int = 0,
    cmp_mask_mode: int = 0,
    ori_win_left: int = -1,
    ori_win_right: int = -1,
    layout_q: str = "BSND",
    layout_kv: str = "BSND",
    out: npt.NDArray[Any] | None = None,
    target: str | Target = "llvm-cpu",
) -> Result:
    """HiFloat8 attention of N query heads over one key/value head of original and compressed tokens.

        score = (q . k) * q_descale * kv_descale * softmax_scale
        softmax over a row's original keys, then its compressed keys, and the sink @ (v * kv_descale)

    Keys are their own values, 512 wide. Each part is dense or, with a list of tokens, sparse; a key that both
    the mask and the list allow is attended to. B batches; the first call of a new kernel compiles it, or
    takes it from the cache. The lengths, masks and windows are those of `quant_sparse_flash_mla_metadata`.
    q, the caches and the sparse indices may lie on the target's device (`to_device`); results are where q is.

    Args:
        q: [B, S1, N, 512] (BSND) or [T, N, 512] (TND), uint8, HiFloat8 codes; N is 1..128.
        ori_kv, cmp_kv: uint8 codes, [B, S2, 1, 512] (BSND), [T2, 1, 512] (TND) or
            [block_num, block_size, 1, 512] (PA_BBND, block_size a multiple of 16 up to 1024); either may be
            None. Read in place if contiguous on a 64-byte boundary (`aligned_empty`), else copied each call.
        q_descale, ori_kv_descale, cmp_kv_descale: what the codes are multiplied by; a number, or a float32
            array of one value. Not needed for a part that is None.
        ori_sparse_indices, cmp_sparse_indices: [B, S1, 1, topk] or [T, 1, topk], int32 or int64; token
            numbers in the part's own sequence. Ids that the masks exclude are skipped; None: not sparse.
        ori_block_table, cmp_block_table: [B, pages], int32 or int64; PA_BBND only.
        sinks: float32 [N], one more logit a head that takes weight and adds no value; None or -inf: none.
        metadata: int32 [1024] from `quant_sparse_flash_mla_metadata` for the same lengths; None: planned
            here.
        softmax_scale: factor of the scores.
        return_softmax_lse: also return the log-sum-exp of the scores, the sink included.
        cu_seqlens_q, cu_seqlens_ori_kv, cu_seqlens_cmp_kv: [B + 1], prefix sums from 0; TND only, required.
        seqused_q, seqused_ori_kv, seqused_cmp_kv: [B], tokens really used; PA_BBND: required, unless
            max_seqlen_ori_kv or max_seqlen_cmp_kv says it for all batches.
        cmp_residual_kv: [B], original tokens that compression left over, 0..cmp_ratio - 1; required by
            cmp_mask_mode 3 with a cmp_ratio above 1.
        batch_size, max_seqlen_q: 0, or what q says.
        max_seqlen_ori_kv, max_seqlen_cmp_kv: tokens of a batch where no array says; 0: as many as fit.
        cmp_ratio: original tokens in one compressed token.
        ori_mask_mode: 0 none, 3 right-down causal, 4 band.
        cmp_mask_mode: 0 none, 3 right-down causal.
        ori_win_left, ori_win_right: how far the band reaches back and ahead; -1: unlimited.
        layout_q: "BSND" or "TND".
        layout_kv: "BSND", "TND" or "PA_BBND".
        out: bfloat16 of q's shape, written and returned.
        target: what to run on: "llvm-cpu", "vulkan", "cuda", each with an optional :NAME.

    Returns:
        bfloat16 of q's shape; a row without keys is zeros. With return_softmax_lse also float32 of that shape
        without the last dimension: natural log of the sum of exp(score), -inf with neither key nor sink.

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


class LoadedMla:
    """An artifact of `quant_sparse_flash_mla`, ready to run: call it like the operator, without `target`."""

    def __init__(self, artifact: Artifact, target: str | Target | None = None) -> None:
        if not isinstance(artifact.spec, MlaSpec):
            raise ArtifactError(
                f"the artifact is a kernel of {artifact.spec.operator}; allowed: one of {MlaSpec.operator}"
            )
        self.artifact = artifact
        self.spec: MlaSpec = artifact.spec
        """What the kernel is specialised on."""
        self.target = target_of(artifact, target)
        """What it runs on."""
        self._kernel = Kernel(artifact)

    def __call__(
        self,
        q: Array,
        ori_kv: Array | None = None,
        cmp_kv: Array | None = None,
        *,
        metadata: npt.NDArray[np.int32] | None = None,
        **arguments: Any,
    ) -> Result:
        """Run the kernel; arguments, result and errors are those of `quant_sparse_flash_mla`.

        Raises:
            ValueError: also if the call is for another kernel; the text names what differs.
        """
        arrays = {"q": q, "ori_kv": ori_kv, "cmp_kv": cmp_kv}
        call, resident = _check(arrays | arguments, self.target)
        given = call.spec.to_dict()
        for name, expected in self.spec.to_dict().items():
            if given[name] != expected:
                raise ValueError(
                    f"the call's {name} is {given[name]!r}; allowed: {expected!r}, the artifact's"
                )
        return _run(call, resident, self._kernel, self.target, metadata)


def _check(arguments: dict[str, Any], target: Target) -> tuple[MlaCall, dict[str, DeviceArray]]:
    """The checked call, and which of its arrays are on the device."""
    on_host, resident = from_device(arguments, target, _ON_DEVICE)
    return check_mla_call(**on_host), resident


def _run(
    call: MlaCall,
    resident: dict[str, DeviceArray],
    kernel: Kernel,
    target: Target,
    metadata: npt.NDArray[np.int32] | None,
) -> Result:
    selection = select(call)
    _check_buffers(call, selection, target)
    lanes = pool(target)
    program = _kept_plan(call, selection, lanes.count, metadata).program(
        lambda: selection.order, target.kind, call.spec.heads
    )
    stay_on = target if "q" in resident else None
    for name, indices in selection.indices.items():
        if indices is not call.parts[name].indices:
            # Brought to the front on the host: what lies on the device is another array.
            resident.pop(f"{name}_sparse_indices", None)

    def compute(output: Output) -> None:
        staging = Staging() if target.kind == "llvm-cpu" else None
        run_program(kernel, _work(call, selection, output, staging, resident), program, lanes)
        if len(selection.order.output_row) < len(call.query):
            nobody = np.ones(len(call.query), np.bool_)
            nobody[selection.order.output_row] = False
            output.put_nothing(nobody)
        if len(selection.keyless):
            # The fold divides by the keys' weights: what it makes of none is not what such a row is.
            output.put_nothing(selection.keyless, call.sinks)

    return results_of(
        compute,
        call.output_shape,
        OUTPUT_DTYPE,
        out=call.out,
        stay_on=stay_on,
        return_softmax_lse=call.return_softmax_lse,
    )


def _kept_plan(
    call: MlaCall, selection: MlaSelection, num_cores: int, metadata: npt.NDArray[np.int32] | None
) -> KeptPlan:
    """The plan to run by: the one that `metadata` holds, or one over `num_cores` cores.

    Ids that occur several times may make more blocks than any metadata counts. Such a call is cut anew, over
    as many cores; a row's bits do not depend on where it is cut.

    Raises:
        TypeError: `metadata` is no int32 array.
        ValueError: `metadata` was planned for another call, or is damaged.
    """
    lengths = call.lengths
    if metadata is not None:
        mark = _kept_mark if len(call.query) <= MOST_ROWS_KEPT else mla_fingerprint
        planned = check_fingerprint(metadata, mark(call.attributes, lengths))
        plan = given_plan(planned, selection.planned_blocks, lengths.query, first_rows=lengths.first_rows)
        if np.array_equal(selection.order.blocks, selection.planned_blocks):
            return plan
        num_cores = planned.num_cores
    return own_plan(selection.order.blocks, lengths.query, num_cores, first_rows=lengths.first_rows)


# Lengths are kept too, and the same object in the next call.
_kept_mark = functools.lru_cache(maxsize=16)(mla_fingerprint)


def _work(
    call: MlaCall,
    selection: MlaSelection,
    output: Output,
    staging: Staging | None,
    resident: dict[str, DeviceArray],
) -> Work:
    """The call's arrays as the kernel takes them; arguments as of `qsmla.runtime.work.work`."""
    arrays: dict[str, npt.NDArray[Any] | KeptArray] = {"q": call.query}
    for name, part in call.parts.items():
        arrays[f"{name}_kv"] = _with_a_first(part.cache)
        if name in selection.indices:
            arrays[f"{name}_sparse_indices"] = selection.indices[name]
        if part.block_table is not None:
            arrays[f"{name}_block_table"] = _with_a_first(part.block_table)
    descales = [call.parts[name].descale if name in call.parts else 1.0 for name in ("ori", "cmp")]
    arrays |= {"ranges": selection.ranges, "descales": np.array(descales, np.float32)}
    return Work(
        inputs=kernel_inputs(arrays.items(), resident, staging, caches=("ori_kv", "cmp_kv")),
        fold_inputs=kernel_inputs([("sinks", call.sinks)], resident, staging, caches=()),
        scale=call.scale,
        heads=call.spec.heads,
        output=output,
        staging=staging,
    )


def _with_a_first(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or zeros where it is empty: kernels look at a first element where nothing is attended to."""
    if array.size:
        return array
    first = aligned_memory(tuple(max(1, extent) for extent in array.shape), array.dtype)
    first[...] = 0
    return first


def _check_buffers(call: MlaCall, selection: MlaSelection, target: Target) -> None:
    """Refuse a call whose arrays are too large for the target's devices."""
    check_buffer("q's", call.query.nbytes, target)
    for name, part in call.parts.items():
        check_buffer(f"{name}_kv's", part.cache.nbytes, target)
        for text, array in (
            (f"{name}_sparse_indices'", part.indices),
            (f"{name}_block_table's", part.block_table),
        ):
            if array is not None:
                check_buffer(text, array.nbytes, target)
    longest = int(selection.order.blocks.max(initial=0))
    owner = f"a row attends to {longest} key blocks, whose partial results'"
    check_buffer(owner, longest * call.spec.heads * NOPE_DIM * 4, target)
