"""`qsmla run` and `verify`: artifacts on arrays."""

from __future__ import annotations

import json
import os

import ml_dtypes
import numpy as np
import pytest
from calls import legal_arguments

import qsmla as package
from qsmla.cli.generate import Shape, generated_call
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.checks import check_call
from qsmla.runtime.npz import load_npz, save_npz

SPECIALISED = ("layout_query", "layout_kv", "kv_dtype", "byte_order", "sparse_block_size", "sparse_mode")


@pytest.fixture
def artifact(kernel_artifact, tmp_path):
    return kernel_artifact.write(tmp_path / "kernel.vmfb").path


@pytest.fixture
def arguments():
    given = legal_arguments(heads=1)
    return {name: value for name, value in given.items() if name not in ("value", *SPECIALISED)}


@pytest.fixture
def inputs(arguments, tmp_path):
    path = tmp_path / "in.npz"
    save_npz(path, **arguments)
    return path


def test_run_writes_what_the_kernel_gives(qsmla, artifact, inputs, arguments, tmp_path):
    output = tmp_path / "out.npz"
    assert qsmla("run", artifact, inputs, output).out == f"{output}\n"
    expected = package.load(artifact)(value=None, **arguments)
    found = load_npz(output)
    assert list(found) == ["attention_out"]
    assert found["attention_out"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found["attention_out"], expected)
    assert np.abs(expected.astype(np.float32)).max() > 0.01


def test_run_gives_the_lse_where_it_is_asked_for(qsmla, artifact, arguments, tmp_path):
    inputs, output = tmp_path / "in.npz", tmp_path / "out.npz"
    save_npz(inputs, **arguments, return_softmax_lse=True)
    assert qsmla("run", artifact, inputs, output).status == 0
    _, lse = package.load(artifact)(value=None, return_softmax_lse=True, **arguments)
    np.testing.assert_array_equal(load_npz(output)["softmax_lse"], lse)


def test_run_reads_plain_numpy_with_declared_dtypes(qsmla, artifact, inputs, arguments, tmp_path):
    plain = {name: np.asarray(value) for name, value in arguments.items()}
    for name, stored in (("u16", plain["query"].view(np.uint16)), ("void", plain["query"])):
        path, output = tmp_path / f"{name}.npz", tmp_path / f"{name}_out.npz"
        np.savez(path, **(plain | {"query": stored}), dtypes=json.dumps({"query": "bfloat16"}))
        assert qsmla("run", artifact, path, output).status == 0
        assert qsmla("run", artifact, inputs, tmp_path / "out.npz").status == 0
        np.testing.assert_array_equal(
            load_npz(output)["attention_out"], load_npz(tmp_path / "out.npz")["attention_out"]
        )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"query": None}, "lacks 'query'"),
        ({"scale_value": None}, "lacks 'scale_value'"),
        ({"nonsense": 1}, "holds 'nonsense', no argument of the operator; allowed: query, key"),
        ({"value": 1}, "holds 'value', no argument"),
        ({"sparse_mode": 0}, "sparse_mode is 0; allowed: 3, the artifact's"),
        ({"query": np.zeros((2, 3, 1, 576), np.float32)}, "query"),
        ({"sparse_indices": np.zeros((2, 3, 1, 5), np.float32)}, "sparse_indices"),
    ],
)
def test_wrong_inputs(qsmla, artifact, arguments, tmp_path, change, complaint):
    path = tmp_path / "in.npz"
    save_npz(path, **{name: value for name, value in (arguments | change).items() if value is not None})
    assert complaint in qsmla("run", artifact, path, tmp_path / "out.npz").complaint
    assert sorted(os.listdir(tmp_path)) == ["in.npz", "kernel.vmfb"]


def test_wrong_files(qsmla, artifact, inputs, tmp_path):
    output = tmp_path / "out.npz"
    assert "is not a readable .npz file" in qsmla("run", artifact, artifact, output).complaint
    assert "no .vmfb file" in qsmla("run", __file__, inputs, output).complaint
    assert "No such file" in qsmla("run", artifact, tmp_path / "none.npz", output).complaint
    nowhere = tmp_path / "no" / "out.npz"
    assert qsmla("run", artifact, inputs, nowhere).complaint == f"{nowhere}: No such file or directory"
    assert not output.exists()


def test_inputs_are_never_overwritten(qsmla, artifact, inputs, tmp_path):
    before = inputs.read_bytes(), artifact.read_bytes()
    (tmp_path / "link.npz").symlink_to(inputs)
    for output in (inputs, artifact, tmp_path / "link.npz"):
        assert "is an input of this command" in qsmla("run", artifact, inputs, output).complaint
    assert (inputs.read_bytes(), artifact.read_bytes()) == before


def test_verify_passes_an_artifact(qsmla, artifact):
    found = qsmla("verify", artifact, "--json", "--topk", 20, "--batch", 2).json
    assert found["passed"] is True
    assert found["elements"] == 2 * Shape.query_tokens * 512
    assert 0 < found["tolerance_used"] < 1
    assert "passed" in qsmla("verify", artifact).out


def test_verify_compiles_a_specification(qsmla):
    found = qsmla("verify", "--heads", 1, "--seed", 3, "--json").json
    assert (found["passed"], found["seed"], found["label"]) == (True, 3, KernelSpec(heads=1).label)
    assert found["target"] == "llvm-cpu:host"


def test_verify_finds_a_wrong_kernel(qsmla, artifact, monkeypatch):
    kernel = package.runtime.operator.LoadedKernel.__call__

    def wrong(self, **arguments):
        output, lse = kernel(self, **arguments)
        output[0, 0, 0, 7] += 1
        return output, lse

    monkeypatch.setattr("qsmla.runtime.operator.LoadedKernel.__call__", wrong)
    result = qsmla("verify", artifact, "--json")
    assert result.status == 1
    assert (result.json["passed"], result.json["failed"]) == (False, 1)
    assert result.json["first_failure"] == [0, 0, 0, 7]
    assert "differs from the reference" in json.loads(result.err)["error"]


def test_verify_refuses_what_cannot_run(qsmla, artifact):
    assert "give one of the two" in qsmla("verify", artifact, "--heads", 1).complaint
    assert "this machine is" in qsmla("verify", "--heads", 1, "-t", "llvm-cpu:neoverse-n1").complaint
    assert qsmla("verify", artifact, "--topk", 0).status == 2


@pytest.mark.parametrize(
    "layouts", [("BSND", "BSND"), ("TND", "TND"), ("BSND", "PA_BSND"), ("TND", "PA_BSND")]
)
@pytest.mark.parametrize("block", [1, 16])
def test_generated_calls_fit_their_specification(layouts, block):
    spec = KernelSpec(
        layout_query=layouts[0], layout_kv=layouts[1], heads=4, sparse_block_size=block, kv_dtype="hifloat8"
    )
    arguments = generated_call(spec, Shape(batch=4, query_tokens=3, kv_tokens=77, topk=9), seed=1)
    call = check_call(**arguments)
    assert call.spec == spec
    assert np.array_equal(generated_call(spec, Shape(4, 3, 77, 9), seed=1)["query"], arguments["query"])
    assert (call.indices == -1).any()
    assert (call.indices >= 0).any()
