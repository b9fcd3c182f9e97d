"""The commands on kernels of quant_sparse_flash_mla."""

from __future__ import annotations

import numpy as np
import pytest
from mla_calls import mla_arguments

import qsmla as package
from qsmla.cli.generate import Shape, generated_call
from qsmla.ir.spec import MlaSpec
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.npz import load_npz, save_npz

KERNEL = ("--operator", "quant_sparse_flash_mla", "--heads", 2)
SPEC = MlaSpec(heads=2)


def test_emit_prints_the_kernel_of_the_operator(qsmla):
    source = qsmla("emit", *KERNEL, "--ori", "none", "--kv-cache", "paged").out
    label = MlaSpec(ori="none", kv_cache="paged", heads=2).label
    assert f"module @{label}" in source
    assert "%cmp_block_table: tensor<?x?xi32>" in source
    assert "%ori_kv" not in source


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--sparse-mode", 3), "unknown field 'sparse_mode'; allowed: ori, cmp, kv_cache, heads"),
        (("--ori", "none", "--cmp", "none"), "ori and cmp are both 'none'; allowed: one of them"),
        (("--ori", "some"), "ori is 'some'; allowed: none, dense, sparse"),
        (("--heads", 129), "heads is 129; allowed: 1..128"),
    ],
)
def test_what_no_kernel_has_is_refused(qsmla, words, complaint):
    assert qsmla("emit", *KERNEL, *words).complaint == complaint


def test_other_operators_are_named(qsmla):
    complaint = "operator is 'flash'; allowed: kv_quant_sparse_flash_attention, quant_sparse_flash_mla"
    assert qsmla("emit", "--operator", "flash").complaint == complaint
    assert "unknown field 'ori'" in qsmla("emit", "--ori", "dense").complaint


def test_compile_run_and_inspect(qsmla, tmp_path):
    path, inputs, output = tmp_path / "kernel.vmfb", tmp_path / "in.npz", tmp_path / "out.npz"
    assert qsmla("compile", *KERNEL, "-o", path).out == f"{path}\n"
    assert SPEC.label in qsmla("inspect", path).out
    arguments = mla_arguments(sinks=np.array([0.5, -1.0], np.float32), ori_mask_mode=3)
    save_npz(inputs, **arguments, return_softmax_lse=True)
    assert qsmla("run", path, inputs, output).status == 0
    expected, lse = package.quant_sparse_flash_mla(**arguments, return_softmax_lse=True)
    found = load_npz(output)
    np.testing.assert_array_equal(found["attention_out"].view(np.uint16), expected.view(np.uint16))
    np.testing.assert_array_equal(found["softmax_lse"], lse)
    save_npz(inputs, **{name: value for name, value in arguments.items() if name != "q_descale"})
    assert qsmla("run", path, inputs, output).complaint == f"{inputs} lacks 'q_descale'"
    save_npz(inputs, **arguments, query=1)
    assert "holds 'query', no argument of the operator; allowed: q, ori_kv" in (
        qsmla("run", path, inputs, output).complaint
    )


def test_a_matrix_names_the_operator(qsmla, tmp_path):
    matrix = tmp_path / "kernels.toml"
    matrix.write_text(
        'operator = "quant_sparse_flash_mla"\nori = ["none", "dense"]\ncmp = ["none", "sparse"]\nheads = 2\n'
    )
    result = qsmla("compile", "--matrix", matrix, "--json")
    labels = [kernel["label"] for kernel in result.json["kernels"]]
    expected = [("none", "sparse"), ("dense", "none"), ("dense", "sparse")]
    assert labels == [MlaSpec(ori=ori, cmp=cmp, heads=2).label for ori, cmp in expected]
    assert len(result.json["skipped"]) == 1
    matrix.write_text('operator = "quant_sparse_flash_mla"\nheads = 0\n')
    assert "heads is 0; allowed: 1..128" in qsmla("compile", "--matrix", matrix).complaint
    matrix.write_text('operator = "quant_sparse_flash_mla"\nsparse_mode = 0\n')
    assert "unknown key 'sparse_mode'" in qsmla("compile", "--matrix", matrix).complaint
    matrix.write_text('operator = "mla"\n')
    assert "operator is 'mla'; allowed: kv_quant" in qsmla("compile", "--matrix", matrix).complaint


def test_verify(qsmla):
    found = qsmla("verify", *KERNEL, "--json", "--seed", 4).json
    assert (found["passed"], found["label"]) == (True, SPEC.label)
    assert 0 < found["tolerance_used"] < 1


@pytest.mark.parametrize("ori", ["none", "dense", "sparse"])
@pytest.mark.parametrize("kv_cache", ["contiguous", "paged"])
def test_generated_calls_fit_their_specification(ori, kv_cache):
    spec = MlaSpec(ori=ori, cmp="sparse", kv_cache=kv_cache, heads=3)
    arguments = generated_call(spec, Shape(batch=4, query_tokens=3, kv_tokens=277, topk=9), seed=1)
    assert check_mla_call(**arguments).spec == spec
    assert (arguments["cmp_sparse_indices"] == -1).any()
    assert arguments["q"].shape == (4, 3, 3, 512)
