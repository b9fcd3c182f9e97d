"""The inner loops of hand-scheduled kernels keep their sums in registers: none puts one on the stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsmla.compiler import toolchain
from qsmla.compiler.build import plan
from qsmla.ir.codes import CODE_FORMATS
from qsmla.ir.render import render
from qsmla.ir.spec import KernelSpec, MlaSpec, Spec

KERNELS = [
    *(
        (KernelSpec(heads=heads, kv_dtype=kv_dtype), target)
        for heads in (1, 4, 8, 16, 128)
        for kv_dtype in CODE_FORMATS
        for target in ("x86-64-v3", "znver4")
    ),
    *(
        (KernelSpec(heads=16, kv_dtype=kv_dtype, query_dtype="float16"), "znver4")
        for kv_dtype in CODE_FORMATS
    ),
    *((MlaSpec(heads=heads), target) for heads in (3, 64) for target in ("x86-64-v3", "znver4")),
]


def assembly(spec: Spec, target: str, folder: Path) -> str:
    """What LLVM makes of a kernel."""
    record = plan(spec, f"llvm-cpu:{target}").record
    # The module's name is part of the files' names, and would be too long for one.
    text = render(spec, record.schedule).replace(f"module @{spec.label}", "module @kernel")
    (folder / "kernel.mlir").write_text(text)
    dump = f"--iree-hal-dump-executable-intermediates-to={folder}"
    command = (toolchain.find_tool(), "kernel.mlir", "-o", "kernel.vmfb", dump, *record.flags)
    assert toolchain.run(command, 300, str(folder)).returncode == 0
    return "\n".join(file.read_text() for file in sorted(folder.glob("*.s")))


def innermost_loops(text: str) -> Iterator[list[str]]:
    """The instructions of each loop that holds no other jump."""
    body: dict[str, list[str]] = {}
    label = ""
    for line in text.splitlines():
        if found := re.match(r"(\.LBB\w+):", line):
            label = found[1]
            body[label] = []
        elif re.match(r"\t[a-z]", line) and label:
            body[label].append(line.strip())
            if re.match(rf"\tj\w+\t{re.escape(label)}\b", line):
                yield body[label]
                label = ""
            elif line.startswith("\tj"):
                label = ""


def is_hand_scheduled(body: list[str]) -> bool:
    """Whether a loop does little else than multiply and add."""
    sums = sum(one.startswith(("vfmadd231ps\t", "vdpbf16ps\t")) for one in body)
    return sums >= 6 and 4 * sums >= len(body)


@pytest.mark.parametrize(("spec", "target"), KERNELS, ids=lambda value: getattr(value, "label", value))
def test_sums_stay_in_registers(spec: Spec, target: str, tmp_path: Path) -> None:
    loops = [body for body in innermost_loops(assembly(spec, target, tmp_path)) if is_hand_scheduled(body)]
    # Q.K, P.V and the fold.
    assert len(loops) >= 3
    for body in loops:
        assert [one for one in body if re.match(r"vmov\w+\s+%[xyz]mm\d+, -?\d*\(%\w+\)", one)] == []
