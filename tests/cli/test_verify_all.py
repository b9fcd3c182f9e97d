"""`qsmla verify --target all`, `qsmla replay` and what `qsmla devices` says about targets."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qsmla.cli import verify_all
from qsmla.compiler import drivers
from qsmla.compiler.drivers import Found
from qsmla.compiler.targets import Target
from qsmla.tools import stages

VULKAN_HERE = bool(drivers.find("vulkan").devices)
CALL = stages._call


def wrong_on(kind):
    """The operator, wrong in one element on one kind of target."""

    def call(made, target, **more):
        output, lse = CALL(made, target, **more)
        if Target.parse(target).kind == kind:
            output[0, 0, 0, 7] += 1
        return output, lse

    return call


def test_the_table_has_a_row_for_every_kind(qsmla):
    found = qsmla("verify", "--target", "all", "--heads", 1, "--json").json
    rows = {row["target"].partition(":")[0]: row for row in found["targets"]}
    assert set(rows) == {"llvm-cpu", "vulkan", "cuda"}
    assert rows["llvm-cpu"]["result"] == "passed"
    for kind, row in rows.items():
        assert (row["result"] == "no device") == (row["device"] is None) or kind == "vulkan"
        assert row["detail"]
    if VULKAN_HERE:
        assert rows["vulkan"]["result"] == "passed"
    text = qsmla("verify", "--target", "all", "--heads", 1).out
    assert "of the tolerance" in text
    assert text.splitlines()[0].split() == ["target", "device", "result"]


def test_a_missing_device_says_what_to_install(qsmla, monkeypatch):
    find = drivers.find
    monkeypatch.setattr(
        drivers, "find", lambda kind: find(kind) if kind == "llvm-cpu" else Found((), f"get {kind}")
    )
    rows = qsmla("verify", "--target", "all", "--heads", 1, "--json").json["targets"]
    assert [(row["target"], row["result"], row["detail"]) for row in rows[1:]] == [
        ("vulkan", "no device", "get vulkan"),
        ("cuda", "no device", "get cuda"),
    ]


def test_a_wrong_target_fails_and_can_be_replayed(qsmla, monkeypatch, tmp_path):
    monkeypatch.setattr(verify_all.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr(stages, "_call", wrong_on("llvm-cpu"))
    result = qsmla("verify", "--target", "all", "--heads", 1)
    assert "llvm-cpu:host failed: at stage compare" in result.complaint
    assert f"qsmla replay {tmp_path}" in result.complaint

    again = qsmla("replay", tmp_path, "--json")
    assert again.status == 1
    assert (again.json["failed_before"], again.json["failed_now"]) == ("compare", "compare")
    assert "fails again at stage compare" in json.loads(again.err)["error"]

    monkeypatch.undo()
    healed = qsmla("replay", tmp_path, "--keep")
    assert healed.status == 0
    assert "compile, load, run, compare" in healed.out
    assert json.loads((tmp_path / "case.json").read_text())["failed_stage"] is None
    output = np.load(tmp_path / "llvm-cpu-host.npz")["output"]
    reference = np.load(tmp_path / "reference.npz")["output"]
    assert output.size == reference.size


def test_replay_refuses_what_is_no_case(qsmla, tmp_path):
    assert "No such file" in qsmla("replay", tmp_path / "nothing").complaint
    (tmp_path / "case.json").write_text("{}")
    assert "describes no case" in qsmla("replay", tmp_path).complaint
    (tmp_path / "case.json").write_text('{"spec": {"heads": 3}, "target": "llvm-cpu"}')
    assert "heads is 3" in qsmla("replay", tmp_path).complaint


def test_verify_all_takes_no_artifact(qsmla, kernel_artifact, tmp_path):
    path = tmp_path / "kernel.vmfb"
    kernel_artifact.write(path)
    assert "give no artifact" in qsmla("verify", path, "--target", "all").complaint


@pytest.mark.skipif(not VULKAN_HERE, reason=str(drivers.find("vulkan").reason))
def test_devices_name_their_targets(qsmla):
    found = qsmla("devices", "--json").json["devices"]
    assert found["llvm-cpu"]["targets"] == [["llvm-cpu:host"]]
    here = drivers.find("vulkan").devices
    assert len(found["vulkan"]["targets"]) == len(here)
    for device, targets in zip(here, found["vulkan"]["targets"], strict=True):
        for target in targets:
            assert Target.parse(target).unmet_by(device) is None
    assert "(llvm-cpu:host)" in qsmla("devices").out
