"""Whether the Vulkan code of an artifact is valid: `python -m qsmla.tools.spirv_gate ARTIFACT...`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from qsmla.compiler.artifact import Artifact
from qsmla.tools.executables import spirv

ENVIRONMENT: Final = "vulkan1.3"


def validator() -> str | None:
    """Where spirv-val is, or None."""
    return shutil.which("spirv-val")


def validate(artifact: Artifact) -> int:
    """Validate all SPIR-V modules of an artifact for Vulkan 1.3; how many there are.

    Raises:
        ValueError: there are none, or one is not valid; the text is what spirv-val printed.
        FileNotFoundError: spirv-val is not on the path.
    """
    tool = validator()
    if tool is None:
        raise FileNotFoundError("spirv-val is not on the path: apt-get install spirv-tools")
    modules = spirv(artifact)
    if not modules:
        raise ValueError(f"{artifact.spec.label} has no SPIR-V; compile it for vulkan")
    with tempfile.TemporaryDirectory(prefix="qsmla-") as folder:
        file = Path(folder, "kernel.spv")
        for number, module in enumerate(modules):
            file.write_bytes(module)
            # IREE's buffers are laid out as scalars, a feature that profiles require.
            command = [tool, "--target-env", ENVIRONMENT, "--scalar-block-layout", str(file)]
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            if finished.returncode:
                raise ValueError(f"module {number} of {len(modules)} is not valid: {finished.stderr.strip()}")
    return len(modules)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each artifact; 1 if one is not valid."""
    parser = argparse.ArgumentParser(prog="python -m qsmla.tools.spirv_gate", description=__doc__)
    parser.add_argument("artifact", nargs="+", type=Path)
    failed = False
    for path in parser.parse_args(arguments).artifact:
        artifact = Artifact.load(path, check_machine=False)
        try:
            print(f"{path}: {validate(artifact)} modules are valid")
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
