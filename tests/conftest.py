"""What all tests share."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import hypothesis
import pytest

_ROOT = Path(__file__).parents[1]


def _compiler_digest() -> str:
    """What an entry's key leaves out: the code that makes artifacts, which changes within a version here."""
    digest = hashlib.sha256()
    for path in sorted((_ROOT / "compiler").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# Kernels compiled by one test serve the others, the other workers and the next run. The user's own cache
# stays untouched.
os.environ.setdefault("QSMLA_CACHE_DIR", str(_ROOT / "build" / "test-cache" / _compiler_digest()))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole-matrix", action="store_true", help="run every case of the matrix on every target"
    )
    parser.addoption("--update-golden", action="store_true", help="write the golden files of tests/ir anew")


_THOROUGH = (
    "cli/test_install.py",
    "compiler/test_registers.py",
    "matrix/test_mla_matrix.py",
    "matrix/test_mla_special.py",
    "matrix/test_schedules.py",
    "runtime/test_device_array.py",
    "runtime/test_bits.py",
    "runtime/test_devices.py",
    "runtime/test_mla_bits.py",
    "runtime/test_mla_operator.py",
    "runtime/test_operator_property.py",
    "runtime/test_operator_sizes.py",
    "runtime/test_operator_threads.py",
    "runtime/test_operator_tokens.py",
)
"""What takes minutes: `make test` leaves it to `make test-thorough`, and CI runs both."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        portable = "[llvm-cpu:x86-64-v2" in item.nodeid
        if portable or item.path.as_posix().endswith(_THOROUGH):
            item.add_marker(pytest.mark.thorough)


# Compiling the first example of a property takes seconds.
hypothesis.settings.register_profile("qsmla", deadline=None)
hypothesis.settings.load_profile("qsmla")


@pytest.fixture(scope="session")
def kernel_artifact():
    """An artifact of a small kernel for this machine, in the tests' cache."""
    from qsmla.compiler.build import compile
    from qsmla.ir.spec import KernelSpec

    return compile(KernelSpec(heads=1))
