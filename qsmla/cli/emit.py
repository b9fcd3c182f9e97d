"""`qsmla emit`: a specification to MLIR text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from qsmla.cli.options import TargetOption, named_path, spec_of, with_spec_options
from qsmla.compiler import files
from qsmla.compiler.build import plan


@with_spec_options
def emit(
    fields: dict[str, Any],
    target: TargetOption = "llvm-cpu",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write.", metavar="FILE", parser=named_path),
    ] = None,
) -> None:
    """Print the MLIR of a kernel, arranged for a target; nothing is compiled."""
    source = plan(spec_of(fields), target).source
    if output is None:
        sys.stdout.write(source)
    else:
        files.write(output, source.encode())
