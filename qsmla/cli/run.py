"""`qsmla run`: an artifact on the arrays of an .npz file."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Final

import typer

import qsmla
from qsmla.cli.options import ArtifactArgument, RunTargetOption
from qsmla.cli.report import CommandError, refuse_overwriting
from qsmla.runtime.npz import load_npz, save_npz

_OPERATORS: Final = {
    operator.__name__: operator
    for operator in (qsmla.kv_quant_sparse_flash_attention, qsmla.quant_sparse_flash_mla)
}
_NOT_IN_FILES: Final = ("value", "out", "target")


def run(
    artifact: ArtifactArgument,
    inputs: Annotated[Path, typer.Argument(help="Arguments of the operator, by name.", metavar="IN.npz")],
    output: Annotated[Path, typer.Argument(help="Where the results go.", metavar="OUT.npz")],
    target: RunTargetOption = None,
) -> None:
    """Run an artifact on the arrays of an .npz file.

    IN.npz holds the operator's arguments under their names: query, key, sparse_indices, scale_value, and
    where the layouts need them block_table, actual_seq_lengths_query and actual_seq_lengths_kv; for
    quant_sparse_flash_mla q, ori_kv, cmp_kv, q_descale, softmax_scale and so on. What the artifact is
    specialised on may be left out; value is never given. OUT.npz gets attention_out, and softmax_lse if
    return_softmax_lse is in IN.npz and true.

    NumPy has no bfloat16: such an array is stored as uint16, and the text `dtypes`, in JSON, says so:
    {"query": "bfloat16"}. The result is stored the same way. float8_e4m3fn is stored as uint8. From Python,
    qsmla.runtime.npz.save_npz and load_npz do this.
    """
    refuse_overwriting(output, artifact, inputs)
    arguments = load_npz(inputs)
    kernel = qsmla.load(artifact, target)
    parameters = inspect.signature(_OPERATORS[kernel.spec.operator]).parameters
    known = [name for name in parameters if name not in _NOT_IN_FILES]
    for name in arguments:
        if name not in known:
            raise CommandError(
                f"{inputs} holds {name!r}, no argument of the operator; allowed: {', '.join(known)}"
            )
    for name in known:
        if name not in arguments and parameters[name].default is inspect.Parameter.empty:
            raise CommandError(f"{inputs} lacks {name!r}")
    if "value" in parameters:
        arguments["value"] = None
    result = kernel(**arguments)
    if isinstance(result, tuple):
        save_npz(output, attention_out=result[0], softmax_lse=result[1])
    else:
        save_npz(output, attention_out=result)
    print(output)
