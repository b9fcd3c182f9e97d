"""`qsmla emit`, `compile`, `inspect`, `devices`, `cache`."""

from __future__ import annotations

import hashlib
import os

import pytest

from qsmla.cli.matrix import read_matrix
from qsmla.compiler import cpu
from qsmla.compiler.artifact import Artifact
from qsmla.compiler.build import plan
from qsmla.compiler.cache import ENVIRONMENT_VARIABLE, ArtifactCache
from qsmla.ir.spec import KernelSpec


@pytest.fixture
def tiny(monkeypatch, kernel_artifact):
    """Compiling takes no time: every kernel comes out as the same one."""
    monkeypatch.setattr("qsmla.compiler.build.build_artifact", lambda work, timeout: kernel_artifact)
    monkeypatch.setattr("qsmla.compiler.cache.ArtifactCache.get", lambda *arguments: None)


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    return ArtifactCache(tmp_path / "cache")


def matrix_file(tmp_path, text):
    path = tmp_path / "matrix.toml"
    path.write_text(text)
    return path


def test_emit_prints_what_is_compiled(qsmla, tmp_path):
    source = plan(KernelSpec(heads=16), "cuda").source
    assert qsmla("emit", "--heads", 16, "--target", "cuda").out == source
    result = qsmla("emit", "--heads", 16, "--target", "cuda", "-o", tmp_path / "kernel.mlir")
    assert (result.status, result.out) == (0, "")
    assert (tmp_path / "kernel.mlir").read_text() == source


def test_emit_takes_every_field(qsmla):
    words = [
        *("--layout-query", "TND", "--layout-kv", "PA_BSND", "--query-dtype", "float16"),
        *("--kv-dtype", "hifloat8", "--heads", 4, "--sparse-block-size", 16, "--sparse-mode", 3),
        *("--byte-order", "flashmla"),
    ]
    spec = KernelSpec(
        layout_query="TND",
        layout_kv="PA_BSND",
        query_dtype="float16",
        kv_dtype="hifloat8",
        heads=4,
        sparse_block_size=16,
        sparse_mode=3,
        byte_order="flashmla",
    )
    assert qsmla("emit", *words).out == plan(spec).source


def test_cache_layout_follows_the_querys(qsmla):
    follows = plan(KernelSpec(layout_query="TND", layout_kv="TND")).source
    assert qsmla("emit", "--layout-query", "TND").out == follows


def test_compile_prints_the_path(qsmla, kernel_artifact, tmp_path):
    assert qsmla("compile", "--heads", 1).out == f"{kernel_artifact.path}\n"
    result = qsmla("compile", "--heads", 1, "-o", tmp_path / "kernel.vmfb")
    assert result.out == f"{tmp_path / 'kernel.vmfb'}\n"
    assert Artifact.load(tmp_path / "kernel.vmfb").spec == KernelSpec(heads=1)


def test_compile_into_a_folder(qsmla, kernel_artifact, tmp_path):
    name = f"{KernelSpec(heads=1).label}.llvm-cpu-host.vmfb"
    for folder in (tmp_path, tmp_path / "new"):
        assert qsmla("compile", "--heads", 1, "-o", folder).out == f"{folder / name}\n"
    assert (tmp_path / "new" / name).read_bytes() == kernel_artifact.data


def test_what_exists_and_is_no_folder_is_a_file(qsmla, kernel_artifact, tmp_path):
    path = tmp_path / "kernel"
    path.write_bytes(b"old")
    assert qsmla("compile", "--heads", 1, "-o", path).out == f"{path}\n"
    assert path.read_bytes() == kernel_artifact.data
    assert qsmla("compile", "--heads", 1, "-o", "/dev/full").complaint == "/dev/full: No space left on device"
    matrix = tmp_path / "matrix.toml"
    matrix.write_text("heads = 1\n")
    complaint = qsmla("compile", "--matrix", matrix, "-o", path).complaint
    assert complaint == f"--output is {path}, a file; allowed: a folder, for a matrix of kernels"


def test_compile_json(qsmla, kernel_artifact):
    (kernel,) = qsmla("compile", "--heads", 1, "--json").json["kernels"]
    assert KernelSpec.from_dict(kernel["spec"]) == KernelSpec(heads=1)
    assert kernel["label"] == KernelSpec(heads=1).label
    assert (kernel["path"], kernel["bytes"]) == (str(kernel_artifact.path), len(kernel_artifact.data))
    assert (kernel["target"], kernel["error"]) == ("llvm-cpu", None)
    assert kernel["seconds"] >= 0


def test_compile_several_targets_into_one_file(qsmla, tmp_path):
    path = tmp_path / "fat.vmfb"
    assert qsmla("compile", "--heads", 1, "-t", "llvm-cpu:x86-64-v3,cuda:sm_89", "-o", path).status == 0
    found = qsmla("inspect", path, "--json").json
    assert [target["name"] for target in found["targets"]] == ["x86-64-v3", "sm_89"]
    assert any("cuda" in name for name in found["contents"])
    assert any("elf_x86_64" in name for name in found["contents"])
    assert qsmla("verify", path, "--json").json["passed"] is True


def test_compile_without_cache_needs_a_place(qsmla):
    assert "give --output" in qsmla("compile", "--no-cache").complaint


def test_compile_failure_is_one_sentence_and_no_file(qsmla, empty_cache, tmp_path):
    result = qsmla("compile", "--heads", 1, "--timeout", 0.05, "-o", tmp_path / "kernel.vmfb")
    assert "iree-compile was killed after 0.05 s, the timeout" in result.complaint
    assert not (tmp_path / "kernel.vmfb").exists()
    assert empty_cache.entries() == []


def test_matrix_compiles_the_product(qsmla, tiny, tmp_path):
    path = matrix_file(
        tmp_path,
        'heads = [1, 2]\nkv_dtype = ["int8", "hifloat8"]\nlayout_query = "TND"\n'
        'target = ["llvm-cpu", "cuda"]\n',
    )
    result = qsmla("compile", "-m", path, "--sparse-mode", 3, "-o", tmp_path / "out", "-j", 2, "--json")
    assert result.status == 0
    labels = {(kernel["label"], kernel["target"]) for kernel in result.json["kernels"]}
    assert labels == {
        (
            KernelSpec(heads=heads, kv_dtype=kv, layout_query="TND", layout_kv="TND", sparse_mode=3).label,
            target,
        )
        for heads in (1, 2)
        for kv in ("int8", "hifloat8")
        for target in ("llvm-cpu", "cuda")
    }
    assert sorted(os.listdir(tmp_path / "out")) == sorted(
        os.path.basename(kernel["path"]) for kernel in result.json["kernels"]
    )
    assert len(os.listdir(tmp_path / "out")) == 8


def test_matrix_names_combinations_that_no_kernel_exists_for(qsmla, tiny, tmp_path):
    path = matrix_file(
        tmp_path, 'layout_query = ["BSND", "TND"]\nlayout_kv = ["BSND", "TND", "PA_BSND"]\nheads = 1\n'
    )
    result = qsmla("compile", "-m", path, "-o", tmp_path / "out")
    assert result.status == 0
    assert len(result.out.splitlines()) == 4
    assert result.err.splitlines() == [
        f"qsmla: skipped, no such kernel: layout_query={query}, layout_kv={kv}, heads=1: layout_kv is '{kv}' "
        f"with layout_query '{query}'; allowed: {query}, PA_BSND"
        for query, kv in (("BSND", "TND"), ("TND", "BSND"))
    ]


def test_matrix_goes_on_after_a_failure_and_fails(qsmla, tmp_path, monkeypatch, kernel_artifact):
    def build(work, timeout):
        if work.record.spec.heads == 2:
            raise RuntimeError("no such luck")
        return kernel_artifact

    monkeypatch.setattr("qsmla.compiler.build.build_artifact", build)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    path = matrix_file(tmp_path, "heads = [1, 2, 4]")
    result = qsmla("compile", "-m", path, "-o", tmp_path / "out")
    assert len(result.out.splitlines()) == 2
    assert result.complaint.startswith(
        f"1 of 3 kernels did not compile: {KernelSpec(heads=2).label} for llvm-cpu: internal error"
    )
    assert len(os.listdir(tmp_path / "out")) == 2
    result = qsmla("compile", "-m", path, "--json")
    assert result.status == 1
    assert [bool(kernel["error"]) for kernel in result.json["kernels"]] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("heads = [1,", "is not TOML"),
        ("heds = 1", "unknown key 'heds'; allowed: target, layout_query"),
        ("heads = []", "heads is an empty list"),
        ("heads = [1, 7]", "heads is 7; allowed: 1, 2, 4"),
        ("heads = true", "heads is True; allowed: 1, 2, 4"),
        ("heads = '1'", "heads is '1'; allowed: 1, 2, 4"),
        ("target = 3", "target is 3; allowed: text"),
        ("target = 'metal'", "target is 'metal'"),
        (
            "layout_query = 'BSND'\nlayout_kv = 'TND'",
            "holds no valid combination; the first is layout_query=BSND",
        ),
        ("[[x]]\na = 1", "unknown key 'x'"),
    ],
)
def test_wrong_matrix(qsmla, tmp_path, text, complaint):
    assert complaint in qsmla("compile", "-m", matrix_file(tmp_path, text)).complaint


def test_matrix_file_that_is_not_there_or_not_text(qsmla, tmp_path):
    assert qsmla("compile", "-m", tmp_path / "no.toml").complaint.endswith("No such file or directory")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert "is not TOML" in qsmla("compile", "-m", tmp_path / "binary.toml").complaint


def test_matrix_drops_repeats(tmp_path):
    matrix = read_matrix(matrix_file(tmp_path, "heads = [1, 1, 2]"), {"heads": 8}, "llvm-cpu")
    assert [spec.heads for spec, _ in matrix.kernels] == [1, 2]


def test_output_is_never_the_matrix(qsmla, tiny, tmp_path, monkeypatch):
    path = matrix_file(tmp_path, "heads = 1")
    target = tmp_path / "out" / f"{KernelSpec(heads=1).label}.llvm-cpu-host.vmfb"
    target.parent.mkdir()
    target.symlink_to(path)
    assert "is an input of this command" in qsmla("compile", "-m", path, "-o", tmp_path / "out").complaint
    assert path.read_text() == "heads = 1"


def test_output_where_nothing_can_be_written(qsmla, kernel_artifact, tmp_path):
    complaint = qsmla("compile", "--heads", 1, "-o", tmp_path / "no" / "kernel.vmfb").complaint
    assert complaint.endswith("No such file or directory")


def test_inspect_says_what_an_artifact_is(qsmla, kernel_artifact, tmp_path):
    path = kernel_artifact.write(tmp_path / "kernel.vmfb").path
    found = qsmla("inspect", path, "--json").json
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["bytes"] == path.stat().st_size
    assert KernelSpec.from_dict(found["spec"]) == KernelSpec(heads=1)
    assert found["targets"][0]["cpu_features"] == list(cpu.host().features)
    assert found["flags"] == list(kernel_artifact.record.flags)
    assert (found["runs_here"], found["reason"]) == (True, None)
    text = dict(line.split("  ", 1) for line in qsmla("inspect", path).out.splitlines())
    assert text["heads"].strip() == "1"
    assert text["source hash"].strip() == kernel_artifact.source_hash
    assert text["runs here"].strip() == "yes"


def test_inspect_of_an_artifact_for_another_machine(qsmla, tmp_path):
    path = tmp_path / "arm.vmfb"
    assert qsmla("compile", "--heads", 1, "-t", "llvm-cpu:neoverse-n1", "-o", path).status == 0
    found = qsmla("inspect", path, "--json").json
    assert found["runs_here"] is False
    assert found["reason"].startswith("it is compiled for aarch64")
    assert "runs here" in qsmla("inspect", path).out


def test_inspect_of_damaged_files(qsmla, kernel_artifact, tmp_path):
    path = tmp_path / "kernel.vmfb"
    data = kernel_artifact.data
    for content, words in (
        (b"", "is empty"),
        (data[:999], "cut short"),
        (data[:99] + b"x" + data[100:], "damaged"),
    ):
        path.write_bytes(content)
        assert words in qsmla("inspect", path).complaint
    path.write_bytes(data)
    assert qsmla("inspect", tmp_path).complaint == f"{tmp_path}: Is a directory"


def test_devices(qsmla):
    found = qsmla("devices", "--json").json
    assert found["devices"]["llvm-cpu"]["names"] == ["default"]
    assert found["cpu"]["features"] == list(cpu.host().features)
    assert set(found["devices"]) == {"llvm-cpu", "vulkan", "cuda"}
    for one in found["devices"].values():
        assert bool(one["names"]) != bool(one["reason"])
    text = qsmla("devices").out
    assert cpu.host_name() in text
    assert "vulkan" in text


def test_cache_shows_and_clears(qsmla, empty_cache, kernel_artifact):
    assert qsmla("cache", "--json").json == {"path": str(empty_cache.folder), "entries": [], "bytes": 0}
    empty_cache.folder.mkdir()
    size = len(kernel_artifact.write(empty_cache.path("k")).data)
    found = qsmla("cache", "--json").json
    assert found["bytes"] == size
    assert found["entries"] == [{"path": str(empty_cache.path("k")), "bytes": size}]
    text = dict(line.split("  ", 1) for line in qsmla("cache").out.splitlines())
    assert text["entries"].strip() == "1"
    assert qsmla("cache", "clear", "--json").json == {
        "path": str(empty_cache.folder),
        "deleted": 1,
        "bytes": size,
    }
    assert qsmla("cache", "clear").out.startswith("deleted 0 artifacts")
    assert empty_cache.entries() == []
