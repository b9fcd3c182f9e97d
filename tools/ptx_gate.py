"""What ptxas says about the CUDA code of an artifact: `python -m qsmla.tools.ptx_gate ARTIFACT...`.

No GPU is needed. Registers, shared memory and spills come from ptxas for each architecture; how much of the
work is on tensor cores is read from the PTX.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from qsmla.compiler.artifact import Artifact
from qsmla.tools.executables import launches, ptx

ARCHITECTURES: Final = ("sm_80", "sm_89", "sm_90")
FEWEST_HEADS: Final = 16
"""Rows of an mma.sync tile: with fewer heads a matmul does not fill one."""

_ENTRY: Final = re.compile(r"\.visible \.entry (\w+)\((.*?)(?=\.visible \.entry|\Z)", re.DOTALL)
_ASSEMBLED: Final = re.compile(
    r"Function properties for (\w+)\s+"
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\s+"
    r"ptxas info\s*: Used (\d+) registers(.*)"
)
_STATIC_SHARED: Final = re.compile(r"(\d+) bytes smem")
_SCALAR: Final = re.compile(r"\b(?:fma\.rn|mul|add|sub)(?:\.\w+)*\.f32\b")


@dataclass(frozen=True)
class Entry:
    """An entry point, assembled for one architecture.

    Attributes:
        name: of the dispatch.
        architecture: as in "sm_80".
        registers: of a thread.
        threads: of a workgroup.
        shared_bytes: static and dynamic shared memory of a workgroup.
        stack_bytes: local memory of a thread.
        spill_bytes: stored and loaded again for want of registers.
        mma: mma.sync instructions in the text.
        scalar: float32 additions and multiplications in the text.
    """

    name: str
    architecture: str
    registers: int
    threads: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    mma: int
    scalar: int

    @property
    def is_matmul(self) -> bool:
        """Whether IREE made it from a contraction."""
        return "matmul_like" in self.name or "matvec_like" in self.name


def assembler() -> str | None:
    """Where ptxas is, or None."""
    return shutil.which("ptxas")


def assemble(artifact: Artifact, architecture: str) -> list[Entry]:
    """All entry points of an artifact's CUDA part, assembled.

    Raises:
        ValueError: the artifact has no CUDA part, or ptxas refused it; the text is what it printed.
        FileNotFoundError: ptxas is not on the path.
    """
    tool = assembler()
    if tool is None:
        raise FileNotFoundError("ptxas is not on the path; it comes with CUDA's toolkit (cuda-nvcc)")
    texts, started = ptx(artifact), launches(artifact)
    if not texts:
        raise ValueError(f"{artifact.spec.label} has no PTX; compile it for cuda")
    entries: list[Entry] = []
    for text in texts:
        bodies = dict(_ENTRY.findall(text))
        printed = _ptxas(tool, text, architecture)
        for name, stack, stores, loads, registers, rest in _ASSEMBLED.findall(printed):
            static = _STATIC_SHARED.search(rest)
            entries.append(
                Entry(
                    name=name,
                    architecture=architecture,
                    registers=int(registers),
                    threads=started[name].threads,
                    shared_bytes=started[name].shared_bytes + (int(static[1]) if static else 0),
                    stack_bytes=int(stack),
                    spill_bytes=int(stores) + int(loads),
                    mma=bodies[name].count("mma.sync"),
                    scalar=len(_SCALAR.findall(bodies[name])),
                )
            )
    if {entry.name for entry in entries} != started.keys():
        raise ValueError(f"ptxas reported {len(entries)} of {len(started)} entry points")
    return sorted(entries, key=lambda entry: _order(entry.name))


def faults(entries: list[Entry], heads: int) -> list[str]:
    """What keeps entries from passing: spills, and matmuls off the tensor cores though heads suffice."""
    found = [f"{e.name} spills {e.spill_bytes} bytes on {e.architecture}" for e in entries if e.spill_bytes]
    matmuls = [entry for entry in entries if entry.is_matmul]
    if len(matmuls) < 2:
        found.append(f"{len(matmuls)} matmuls were recognised; there are Q.K and P.V")
    if heads >= FEWEST_HEADS:
        found += [f"{e.name} has no mma.sync" for e in matmuls if not e.mma]
    return found


def _ptxas(tool: str, text: str, architecture: str) -> str:
    with tempfile.TemporaryDirectory(prefix="qsmla-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text)
        command = [tool, "-v", f"-arch={architecture}", str(source), "-o", str(source.with_suffix(".cubin"))]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise ValueError(f"ptxas for {architecture} ended with {finished.returncode}: {finished.stderr}")
    return finished.stderr


def _order(name: str) -> tuple[bool, int]:
    """attend before fold, each in the order of its dispatches."""
    number = re.search(r"_dispatch_(\d+)", name)
    return not name.startswith("attend"), int(number[1]) if number else 0


def table(entries: list[Entry], title: str) -> Table:
    """The entries, one a row."""
    made = Table(
        "entry", "threads", "registers", "shared", "spills", "mma.sync", "float32 + and *", title=title
    )
    for e in entries:
        numbers = (e.threads, e.registers, e.shared_bytes, e.spill_bytes, e.mma, e.scalar)
        made.add_row(e.name, *map(str, numbers))
    return made


def main(arguments: list[str] | None = None) -> int:
    """Print a table for each artifact and architecture; 1 if one does not pass."""
    parser = argparse.ArgumentParser(prog="python -m qsmla.tools.ptx_gate", description=__doc__)
    parser.add_argument("artifact", nargs="+", type=Path)
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES, metavar="sm_NN")
    options = parser.parse_args(arguments)
    console = Console(width=160)
    failed = False
    for path in options.artifact:
        artifact = Artifact.load(path, check_machine=False)
        for architecture in options.arch:
            entries = assemble(artifact, architecture)
            console.print(table(entries, f"{artifact.spec.label}, {architecture}"))
            for fault in faults(entries, artifact.spec.heads):
                print(fault, file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
