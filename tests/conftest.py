"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# Kernels compiled by one test serve the others, the other workers and the next run; a key holds everything
# an artifact depends on. The user's own cache stays untouched.
os.environ.setdefault("QSMLA_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "test-cache"))

# Compiling the first example of a property takes seconds.
hypothesis.settings.register_profile("qsmla", deadline=None)
hypothesis.settings.load_profile("qsmla")


@pytest.fixture(scope="session")
def kernel_artifact():
    """An artifact of a small kernel for this machine, in the tests' cache."""
    from qsmla.compiler.build import compile
    from qsmla.ir.spec import KernelSpec

    return compile(KernelSpec(heads=1))
