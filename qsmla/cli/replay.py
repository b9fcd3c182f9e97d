"""`qsmla replay`: a failed case of the matrix or of `qsmla verify --target all`, once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qsmla.cli.options import JsonOption
from qsmla.cli.report import CommandError, print_json, print_pairs
from qsmla.tools.stages import STAGES, attempt, read, save


def replay(
    folder: Annotated[Path, typer.Argument(help="What a failed case left.", metavar="DIR")],
    keep: Annotated[
        bool, typer.Option("--keep", help="Also write the new results and MLIR over the folder's.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a failed case again: the same inputs, on the same target, compiled with the code as it now is.

    Fails if the case does. The MLIR that failed, and the command that compiles it, are in the folder.
    """
    before = read(folder)
    made = attempt(before.spec, before.arguments, before.target)
    if keep:
        save(made, folder)
    found = {
        "label": made.spec.label,
        "target": made.target,
        "failed_before": before.failed_stage,
        "failed_now": made.failed_stage,
        "reason": made.reason or None,
    }
    if as_json:
        print_json(found)
    else:
        passed = ", ".join(STAGES[: STAGES.index(made.failed_stage)] if made.failed_stage else STAGES)
        print_pairs(
            {
                "kernel": made.spec.label,
                "target": made.target,
                "failed before": f"{before.failed_stage}: {before.reason}",
                "passed now": passed or "nothing",
            }
        )
    if made.failed_stage:
        raise CommandError(f"{folder} fails again at stage {made.failed_stage}: {made.reason}")
