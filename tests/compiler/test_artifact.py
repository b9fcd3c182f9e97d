"""Artifacts: they describe themselves, and whatever is wrong with a file is one sentence."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import struct
import subprocess
import sys

import numpy as np
import pytest

from qsmla.compiler import cpu, toolchain
from qsmla.compiler.artifact import FORMAT_VERSION, Artifact, Record, seal
from qsmla.compiler.errors import ArtifactError
from qsmla.ir.spec import KernelSpec


@pytest.fixture
def artifact(kernel_artifact):
    return kernel_artifact


def resealed(data: bytes, **changes) -> bytes:
    """The same .vmfb with other things in its seal, its digest still right."""
    start = data.rindex(b'{"qsmla"')
    stamp = json.loads(data[start:]) | changes
    comment = json.dumps(stamp).encode()
    return data[: start - 2] + struct.pack("<H", len(comment)) + comment


def unsealed(data: bytes) -> bytes:
    return data[: data.rindex(b'{"qsmla"') - 2] + b"\0\0"


def load_error(tmp_path, data: bytes, **options) -> str:
    path = tmp_path / "kernel.vmfb"
    path.write_bytes(data)
    with pytest.raises(ArtifactError) as caught:
        Artifact.load(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path)).strip()


def test_loading_gives_back_what_was_compiled(artifact, tmp_path):
    loaded = Artifact.load(artifact.write(tmp_path / "copy.vmfb").path)
    assert loaded.record == artifact.record
    assert loaded.data == artifact.data
    assert loaded.path == tmp_path / "copy.vmfb"
    assert loaded.spec == KernelSpec(heads=1)
    assert loaded.cpu_features == cpu.host().features
    assert loaded.versions["iree-base-compiler"] == toolchain.compiler_version()
    assert [target.label for target in loaded.targets] == ["llvm-cpu:host"]
    assert loaded.schedule == loaded.targets[0].schedules[0]


def test_record_survives_json(artifact):
    assert Record.from_json(artifact.record.to_json()) == artifact.record
    assert json.loads(artifact.record.to_json())["format"] == FORMAT_VERSION


def test_iree_reads_a_sealed_file_as_it_is(artifact, tmp_path):
    path = artifact.write(tmp_path / "kernel.vmfb").path
    command = [sys.executable, "-m", "iree._runtime.scripts.iree_dump_module", "--output=metadata", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert artifact.source_hash in result.stdout


def test_every_flipped_byte_is_found(artifact, tmp_path):
    data, places = artifact.data, random.Random(0)
    end = len(data)
    chosen = [0, 1, 30, end - 1, *range(end - 140, end, 7), *(places.randrange(end) for _ in range(60))]
    for place in chosen:
        damaged = bytearray(data)
        damaged[place] ^= 1 << places.randrange(8)
        message = load_error(tmp_path, bytes(damaged))
        assert any(word in message for word in ("damaged", "no .vmfb file", "IREE", "newer")), (
            place,
            message,
        )


def test_every_cut_is_found(artifact, tmp_path):
    data = artifact.data
    for length in [0, 1, 4, 21, 22, 64, len(data) // 2, len(data) - 130, len(data) - 22, len(data) - 1]:
        message = load_error(tmp_path, data[:length])
        assert any(word in message for word in ("empty", "no .vmfb file", "cut short")), (length, message)
    assert "cut short or damaged" in load_error(tmp_path, data + b"\0")


def test_garbage_is_refused_and_does_not_crash(tmp_path):
    generator = np.random.default_rng(0)
    for size in (10, 1000, 100_000):
        assert load_error(tmp_path, generator.bytes(size)) == "is no .vmfb file of qsmla"
        assert "cut short" in load_error(tmp_path, b"PK\x03\x04" + generator.bytes(size))
    assert load_error(tmp_path, b"") == "is empty"


def test_vmfb_of_somebody_else(artifact, tmp_path):
    bare = unsealed(artifact.data)
    assert load_error(tmp_path, bare) == "was not written by qsmla (no seal), or its seal is damaged"


def test_sealed_vmfb_without_description(tmp_path):
    source, vmfb = tmp_path / "foreign.mlir", tmp_path / "foreign.vmfb"
    source.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    flags = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=x86-64"]
    assert toolchain.run([toolchain.find_tool(), str(source), "-o", str(vmfb), *flags], 60).returncode == 0
    data = seal(vmfb.read_bytes(), toolchain.runtime_version())
    assert load_error(tmp_path, data) == "holds 0 descriptions of itself; an artifact holds one"


def test_sealed_archive_that_is_no_module(tmp_path):
    body = b"PK\x03\x04" + bytes(200) + struct.pack("<4s4H2LH", b"PK\x05\x06", *[0] * 7)
    assert "is not a module that IREE loads" in load_error(tmp_path, seal(body, toolchain.runtime_version()))


def test_other_versions(artifact, tmp_path):
    message = load_error(tmp_path, resealed(artifact.data, iree="3.12.0"))
    assert (
        message
        == f"was compiled by IREE 3.12.0, and the installed IREE runtime is {toolchain.runtime_version()}"
    )
    newer = resealed(artifact.data, qsmla=FORMAT_VERSION + 1)
    assert "newer than this version of qsmla reads (1)" in load_error(tmp_path, newer)


def test_seal_with_wrong_types(artifact, tmp_path):
    for change in ({"qsmla": None}, {"qsmla": "x"}):
        assert "its seal is damaged" in load_error(tmp_path, resealed(artifact.data, **change))


def test_wrong_description(artifact, tmp_path):
    data = unsealed(artifact.data)
    assert data.count(b'"heads": 1,') >= 1
    wrong = data.replace(b'"heads": 1,', b'"heads": 3,')
    message = load_error(tmp_path, seal(wrong, toolchain.runtime_version()))
    assert message.startswith(
        "does not describe itself in a way this version reads: heads is 3; allowed: 1, 2"
    )


def test_other_machines(artifact, tmp_path, monkeypatch):
    path = artifact.write(tmp_path / "kernel.vmfb").path
    here = cpu.host()
    monkeypatch.setattr(cpu, "host", lambda: dataclasses.replace(here, features=here.features[1:]))
    message = load_error(tmp_path, artifact.data)
    assert message.startswith(
        f"cannot run here: it needs the CPU features {here.features[0]}, which this CPU"
    )
    loaded = Artifact.load(path, check_machine=False)
    assert loaded.unmet() in message


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Artifact.load(tmp_path / "none.vmfb")
    with pytest.raises(IsADirectoryError):
        Artifact.load(tmp_path)


def test_digest_covers_everything_before_it(artifact):
    start = artifact.data.rindex(b'{"qsmla"')
    stamp = json.loads(artifact.data[start:])
    assert stamp["sha256"] == hashlib.sha256(artifact.data[: start - 2]).hexdigest()
    assert stamp == {"qsmla": FORMAT_VERSION, "iree": toolchain.runtime_version(), "sha256": stamp["sha256"]}


def test_seal_refuses_what_is_no_archive(artifact):
    with pytest.raises(ArtifactError, match="not a zip archive"):
        seal(b"ELF", "3.13.0")
    with pytest.raises(ArtifactError, match="not a zip archive"):
        seal(artifact.data, "3.13.0")
