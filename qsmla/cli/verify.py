"""`qsmla verify`: a kernel against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import qsmla
from qsmla.cli.generate import Shape, generated_call
from qsmla.cli.options import JsonOption, RunTargetOption, TimeoutOption, spec_of, with_spec_options
from qsmla.cli.report import CommandError, print_json
from qsmla.cli.verify_all import verify_all
from qsmla.compiler.build import DEFAULT_TIMEOUT_S
from qsmla.compiler.build import compile as compile_kernel
from qsmla.runtime import mla_reference, reference
from qsmla.runtime.checks import check_call
from qsmla.runtime.compare import compare
from qsmla.runtime.kernels import resolve_target
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.operator import load_artifact

_MOST = 1 << 20
"""Of anything: the inputs are made in memory."""


@with_spec_options
def verify(
    fields: dict[str, Any],
    artifact: Annotated[
        Path | None,
        typer.Argument(help="A .vmfb file; without it the kernel that the options name.", metavar="ARTIFACT"),
    ] = None,
    target: RunTargetOption = None,
    batch: Annotated[int, typer.Option(min=1, max=_MOST, help="Requests.", metavar="N")] = Shape.batch,
    query_tokens: Annotated[
        int, typer.Option(min=1, max=_MOST, help="Query tokens of the longest request.", metavar="N")
    ] = Shape.query_tokens,
    kv_tokens: Annotated[
        int, typer.Option(min=1, max=_MOST, help="Cached tokens of the longest request.", metavar="N")
    ] = Shape.kv_tokens,
    topk: Annotated[
        int, typer.Option(min=1, max=_MOST, help="Selected blocks of a row.", metavar="N")
    ] = Shape.topk,
    seed: Annotated[int, typer.Option(min=0, help="Of the random inputs.", metavar="N")] = 0,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    as_json: JsonOption = False,
) -> None:
    """Run a kernel on generated inputs and compare it with the float64 reference.

    The tolerances are FlashMLA's: an element passes within 0.001 of the largest value its row attends to or
    within 2.01/128 of itself. Fails if any does not. `--target all` runs the kernel on every kind of target
    and prints which of them work on this machine.
    """
    if artifact is not None and fields:
        raise CommandError(f"{artifact} names a kernel and so do {', '.join(fields)}; give one of the two")
    shape = Shape(batch, query_tokens, kv_tokens, topk)
    if target == "all":
        if artifact is not None:
            raise CommandError("--target all compiles a kernel for each kind of target; give no artifact")
        spec = spec_of(fields)
        verify_all(spec, generated_call(spec, shape, seed), as_json=as_json)
        return
    if artifact is None:
        wanted = resolve_target(target or "llvm-cpu")
        kernel = load_artifact(compile_kernel(spec_of(fields), wanted, timeout=timeout), wanted)
    else:
        kernel = qsmla.load(artifact, target)
    arguments = generated_call(kernel.spec, shape, seed) | {"return_softmax_lse": True}
    output, lse = kernel(**arguments)
    expected = _reference(arguments)
    found = compare(output, expected.output, expected.vmax, lse=lse, reference_lse=expected.lse)
    if as_json:
        target_label = kernel.target.label
        print_json({"label": kernel.spec.label, "target": target_label, "seed": seed, **found.to_dict()})
    else:
        print(f"{kernel.spec.label}: {found}")
    if not found.passed:
        raise CommandError(f"{kernel.spec.label} differs from the reference: {found}")


def _reference(arguments: dict[str, Any]) -> reference.Attended:
    """The float64 results of a generated call of either operator."""
    if "q" in arguments:
        return mla_reference.attend(check_mla_call(**arguments))
    return reference.attend(check_call(**arguments))
