"""The wheel without its compiler extra: artifacts run, and compiling says what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from calls import legal_arguments

import qsmla as package
from qsmla.runtime.npz import load_npz, save_npz

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REFUSED = "compiling needs iree-base-compiler, which is not installed: pip install 'qsmla[compiler]'\n"
LEFT_OUT = ("iree.compiler", "jinja2", "matplotlib", "pytest")


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    # What is in the cache needs no compiler: these find nothing there.
    clean["QSMLA_CACHE_DIR"] = str(cwd / "cache")
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The project's wheel, built from a copy so that nothing is left in the source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("qsmla", "ir", "compiler", "runtime", "tools"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    built = run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, source, cwd=folder
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a virtual environment that holds the wheel and its plain dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    made = run(sys.executable, "-m", "venv", folder, cwd=folder)
    assert made.returncode == 0, made.stderr
    interpreter = folder / "bin" / "python"
    installed = run(interpreter, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return interpreter


def test_wheel_holds_every_package_and_template(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {"qsmla": "qsmla"} | {f"qsmla/{name}": name for name in ("ir", "compiler", "runtime", "tools")}
    for installed, source in sources.items():
        for path in (ROOT / source).rglob("*"):
            if path.suffix in (".py", ".j2", ".typed"):
                assert f"{installed}/{path.relative_to(ROOT / source)}" in names


def test_finished_artifact_runs_without_the_compiler(python, kernel_artifact, tmp_path):
    arguments = legal_arguments(heads=1, sparse_mode=3)
    save_npz(tmp_path / "in.npz", **{name: value for name, value in arguments.items() if name != "value"})
    kernel_artifact.write(tmp_path / "kernel.vmfb")
    script = (
        "import importlib.util, qsmla\n"
        "from qsmla.runtime.npz import load_npz, save_npz\n"
        f"for name in {LEFT_OUT}: assert importlib.util.find_spec(name) is None, name\n"
        "arguments = load_npz('in.npz')\n"
        "save_npz('out.npz', output=qsmla.load('kernel.vmfb')(value=None, **arguments))\n"
        "try: qsmla.compile(qsmla.KernelSpec(heads=2))\n"
        "except ImportError as error: print(error)\n"
    )
    ran = run(python, "-c", script, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == REFUSED
    expected = package.load(tmp_path / "kernel.vmfb")(**arguments)
    np.testing.assert_array_equal(load_npz(tmp_path / "out.npz")["output"], expected)


def test_command_line_runs_without_the_compiler(python, kernel_artifact, tmp_path):
    qsmla = python.parent / "qsmla"
    kernel_artifact.write(tmp_path / "kernel.vmfb")
    assert "runs here" in run(qsmla, "inspect", "kernel.vmfb", cwd=tmp_path).stdout
    assert "passed" in run(qsmla, "verify", "kernel.vmfb", cwd=tmp_path).stdout
    refused = run(qsmla, "compile", "--heads", "2", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == f"qsmla: {REFUSED}"
