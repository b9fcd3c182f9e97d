"""From a specification to an artifact."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time

import pytest

from qsmla.compiler import build, cuda, diagnostics, targets, toolchain
from qsmla.compiler.artifact import Artifact
from qsmla.compiler.cache import ArtifactCache
from qsmla.compiler.errors import CompileError, CompilerMissingError
from qsmla.ir.spec import KernelSpec

SPEC = KernelSpec(heads=1)


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Where the reports of failures go."""
    folder = tmp_path / "reports"
    folder.mkdir()
    monkeypatch.setattr(diagnostics.tempfile, "tempdir", str(folder))
    return folder


def without_compiler(monkeypatch):
    def refuse(command, timeout, folder=None):
        raise AssertionError("the compiler ran")

    monkeypatch.setattr(toolchain, "run", refuse)


def test_compiling_is_deterministic(kernel_artifact):
    again = build.compile(SPEC, cache=False)
    assert again.data == kernel_artifact.data
    assert again.path is None


def test_warm_cache_needs_no_compiler_and_little_time(kernel_artifact, monkeypatch):
    without_compiler(monkeypatch)
    start = time.perf_counter()
    artifact = build.compile(SPEC)
    assert time.perf_counter() - start < 0.2
    assert artifact.data == kernel_artifact.data


def test_warm_cache_does_not_import_the_compiler(kernel_artifact):
    script = (
        "import sys; from qsmla.compiler.build import compile; from qsmla.ir.spec import KernelSpec; "
        "compile(KernelSpec(heads=1)); print('iree.compiler' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
    assert result.stderr == ""


def test_output_is_written(kernel_artifact, tmp_path):
    artifact = build.compile(SPEC, output=tmp_path / "kernel.vmfb")
    assert artifact.path == tmp_path / "kernel.vmfb"
    assert Artifact.load(artifact.path).record == kernel_artifact.record
    with pytest.raises(FileNotFoundError):
        build.compile(SPEC, output=tmp_path / "missing" / "kernel.vmfb")


def test_given_cache_is_used(kernel_artifact, tmp_path, monkeypatch):
    store = ArtifactCache(tmp_path)
    work = build.plan(SPEC)
    kernel_artifact.write(store.path(work.key))
    without_compiler(monkeypatch)
    assert build.compile(SPEC, cache=store).path == store.path(work.key)


@pytest.mark.parametrize(
    "change",
    [
        {"source_hash": "0"},
        {"flags": ("--other",)},
        {"versions": {"qsmla": "0", "iree-base-compiler": "3.13.0"}},
        {"spec": KernelSpec(heads=2)},
        {"targets": targets.parse_targets("cuda")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_enters_changes_the_key(change):
    work = build.plan(SPEC)
    other = dataclasses.replace(work, record=dataclasses.replace(work.record, **change))
    assert other.key != work.key
    assert build.plan(SPEC).key == work.key


def test_what_a_flag_names_changes_the_key(monkeypatch):
    keys = {target: build.plan(SPEC, target).key for target in ("cuda", "llvm-cpu,cuda", "llvm-cpu")}
    monkeypatch.setattr(
        cuda, "TRANSFORM", cuda.TRANSFORM.replace(f"constant {cuda.WORKGROUPS}", "constant 7")
    )
    changed = [target for target, key in keys.items() if build.plan(SPEC, target).key != key]
    assert changed == ["cuda", "llvm-cpu,cuda"]


def test_specs_and_targets_have_keys_of_their_own():
    keys = {
        build.plan(spec, target).key
        for spec in (SPEC, KernelSpec(heads=2), KernelSpec(heads=1, sparse_mode=0))
        for target in ("llvm-cpu:x86-64", "llvm-cpu:x86-64-v3", "cuda", "cuda:sm_89", "llvm-cpu:x86-64,cuda")
    }
    assert len(keys) == 15


def test_source_hash_is_the_plans(kernel_artifact):
    assert kernel_artifact.source_hash == build.plan(SPEC).record.source_hash


def test_another_generator_makes_another_key(monkeypatch):
    key = build.plan(SPEC).key
    monkeypatch.setattr(build, "generator_digest", lambda: "another")
    assert build.plan(SPEC).key != key


def test_timeout_is_an_error_that_shows_the_template(reports, monkeypatch):
    with pytest.raises(CompileError) as caught:
        build.compile(SPEC, cache=False, timeout=0.05)
    assert f"iree-compile was killed after 0.05 s, the timeout, on {SPEC.label}" in caught.value.summary
    assert "--iree-llvmcpu-target-cpu=x86-64" in str(caught.value)
    (folder,) = reports.iterdir()
    assert "func.func @" in (folder / "kernel.mlir").read_text()


def test_refused_flag_is_an_error_with_the_compilers_words(reports):
    work = build.plan(SPEC)
    record = dataclasses.replace(work.record, flags=(*work.record.flags, "--no-such-flag"))
    with pytest.raises(CompileError, match="no-such-flag") as caught:
        build.build_artifact(dataclasses.replace(work, record=record))
    assert "iree-compile ended with return code 1" in caught.value.summary
    assert "Unknown command line argument '--no-such-flag'" in str(caught.value)


def test_failure_leaves_nothing_in_the_cache(reports, tmp_path):
    store = ArtifactCache(tmp_path / "cache")
    with pytest.raises(CompileError):
        build.compile(SPEC, cache=store, timeout=0.05, output=tmp_path / "kernel.vmfb")
    assert store.entries() == []
    assert not (tmp_path / "kernel.vmfb").exists()


def test_wrong_template_is_found_before_the_compiler_runs(reports, monkeypatch):
    without_compiler(monkeypatch)
    render = build._render
    monkeypatch.setattr(build, "_render", lambda *args: render(*args).replace("arith.muli", "arith.molly", 1))
    with pytest.raises(CompileError, match=r"renders to MLIR that is wrong at line \d+") as caught:
        build.compile(SPEC, cache=False)
    marked = [line for line in str(caught.value).splitlines() if line.startswith(">")]
    assert len(marked) == 1
    assert "arith.molly" in marked[0]


def test_compiler_without_a_word_or_a_file(reports, monkeypatch):
    monkeypatch.setattr(toolchain, "run", lambda command, timeout, folder: toolchain.Finished(0, "", False))
    with pytest.raises(CompileError, match="ended with return code 0"):
        build.compile(SPEC, cache=False)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="spec is a str; allowed: a KernelSpec or an MlaSpec"):
        build.compile("kernel")
    with pytest.raises(ValueError, match="target is 'metal'"):
        build.compile(SPEC, "metal")
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="timeout is"):
            build.compile(SPEC, timeout=timeout)


def test_missing_jinja_says_what_to_install(kernel_artifact, tmp_path, monkeypatch):
    find_spec = build.importlib.util.find_spec
    monkeypatch.setattr(
        build.importlib.util, "find_spec", lambda name: None if name == "jinja2" else find_spec(name)
    )
    store = ArtifactCache(tmp_path)
    with pytest.raises(CompilerMissingError, match=r"jinja2, .*pip install 'qsmla\[compiler\]'"):
        build.compile(SPEC, cache=store)
    # What is in the cache needs no template engine.
    kernel_artifact.write(store.path(build.plan(SPEC).key))
    assert build.compile(SPEC, cache=store).spec == SPEC


def test_different_iree_versions_are_refused(monkeypatch):
    monkeypatch.setattr(toolchain, "compiler_version", lambda: "3.12.0")
    with pytest.raises(CompileError, match=r"iree-base-compiler 3.12.0 and iree-base-runtime 3.13.0 differ"):
        build.compile(SPEC, cache=False)


@pytest.mark.parametrize(("progress", "shown"), [(None, False), (False, False), (True, True)])
def test_progress_line(kernel_artifact, capsys, progress, shown, monkeypatch):
    monkeypatch.setattr(build, "build_artifact", lambda work, timeout: kernel_artifact)
    build.compile(SPEC, cache=False, progress=progress)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (f"compiling {SPEC.label} for llvm-cpu:host" in " ".join(captured.err.split())) == shown


@pytest.mark.parametrize("package", ["qsmla", "qsmla.compiler", "qsmla.compiler.build", "qsmla.cli"])
def test_imports_without_the_compiler_packages(package):
    script = (
        "import sys; sys.modules['jinja2'] = sys.modules['iree.compiler'] = None; "
        f"import {package}; print({package}.__name__)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == (f"{package}\n", "")
