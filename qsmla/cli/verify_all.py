"""`qsmla verify --target all`: what works on this machine."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qsmla.cli.report import CommandError, print_json, print_table
from qsmla.compiler import drivers
from qsmla.compiler.targets import Target
from qsmla.ir.spec import Spec
from qsmla.tools.stages import attempt, save


@dataclass(frozen=True)
class Row:
    """One kind of target.

    Attributes:
        target: its name, or the kind where nothing here says more.
        device: what runs it, or None.
        result: "passed", "failed" or "no device".
        detail: errors in numbers, what went wrong, or what is missing.
    """

    target: str
    device: str | None
    result: str
    detail: str


def verify_all(spec: Spec, arguments: dict[str, Any], *, as_json: bool) -> None:
    """Run a call on every kind of target, each against the reference and the CPU, and print a table.

    Raises:
        CommandError: a target that has a device did not pass.
    """
    rows = [_verify(kind, spec, arguments) for kind in Target.KINDS]
    if as_json:
        print_json({"label": spec.label, "targets": [vars(row) for row in rows]})
    else:
        titles = ("target", "device", "result", "")
        print_table(titles, [(row.target, row.device or "-", row.result, row.detail) for row in rows])
    failed = [row for row in rows if row.result == "failed"]
    if failed:
        raise CommandError("; ".join(f"{row.target} failed: {row.detail}" for row in failed))


def _verify(kind: str, spec: Spec, arguments: dict[str, Any]) -> Row:
    found = drivers.find(kind)
    if not found.devices:
        return Row(kind, None, "no device", str(found.reason))
    try:
        target = Target.parse(kind)
    except ValueError as error:
        return Row(kind, found.devices[0].name, "no device", str(error))
    device = target.find_device()
    if isinstance(device, str):
        return Row(target.label, found.devices[0].name, "no device", device)
    made = attempt(spec, arguments, target.label)
    if made.passed:
        assert made.comparison is not None
        used = made.comparison.tolerance_used
        return Row(target.label, device.name, "passed", f"{used:.2f} of the tolerance")
    folder = Path(tempfile.mkdtemp(prefix="qsmla-failed-"))
    save(made, folder)
    where = f"at stage {made.failed_stage}: {made.reason}; run it again: qsmla replay {folder}"
    return Row(target.label, device.name, "failed", where)
