"""What IREE is told about kernels for CUDA, beyond their target."""

from __future__ import annotations

from typing import Final

TRANSFORM_FILE: Final = "cuda_contractions.mlir"
"""The name under which the compiler finds `TRANSFORM`."""

WORKGROUPS: Final = 2
"""Workgroups of a contraction that shall fit a multiprocessor at a time, as far as registers go.

Told nothing, ptxas gives a thread as few registers as several more workgroups leave, and spills a few bytes
where that is just too few. Two leave 255 registers to a thread of 128 and 128 to one of 256: no contraction
here spills. Three would be too many for kernels of few heads, which have 256 threads.
"""

TRANSFORM: Final = f"""\
// Every contraction of the CUDA part is marked with the workgroups that shall fit a multiprocessor.
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%executable: !transform.any_op {{transform.readonly}}) {{
    %variants = transform.structured.match ops{{["hal.executable.variant"]}}
      attributes {{sym_name = "cuda_nvptx_fb"}} in %executable : (!transform.any_op) -> !transform.any_op
    %contractions = transform.structured.match ops{{["linalg.generic"]}} attributes {{iterator_types = [
        #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>,
        #linalg.iterator_type<reduction>
      ]}} in %variants : (!transform.any_op) -> !transform.any_op
    %functions = transform.get_parent_op %contractions <{{op_name = "func.func", deduplicate}}>
      : (!transform.any_op) -> !transform.any_op
    %workgroups = transform.param.constant {WORKGROUPS} : i32 -> !transform.any_param
    transform.annotate %functions "nvvm.minctasm" = %workgroups : !transform.any_op, !transform.any_param
    transform.yield
  }}
}}
"""


def flags(architecture: str) -> tuple[str, ...]:
    """The flags of iree-compile for a compute capability; `TRANSFORM_FILE` is to lie where it runs."""
    transform = f"iree-transform-dialect-interpreter{{library-file-name={TRANSFORM_FILE}}}"
    return (
        f"--iree-cuda-target={architecture}",
        f"--iree-hal-preprocess-executables-with=builtin.module({transform})",
    )
