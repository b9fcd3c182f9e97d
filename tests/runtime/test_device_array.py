"""Arrays that stay on a device: handed to the operator, results left there, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from compiled import aligned, arguments_of, run
from matrix.cases import some_specs
from matrix.mla_cases import MlaCase, mla_specs
from matrix.targets import CONFIGS, Config
from plain import bits

import qsmla
from qsmla.runtime import devices
from qsmla.runtime.operator import load_artifact

SPECS = {spec.layout_query: spec for spec in sorted(some_specs(), key=lambda spec: -spec.heads)}
by_layout = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


@pytest.fixture(params=CONFIGS, ids=lambda config: config.target)
def target(request: pytest.FixtureRequest) -> str:
    config: Config = request.param
    config.need_device()
    return config.target


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, ml_dtypes.float8_e4m3fn, np.int32]
)
def test_numpy_gives_the_array_back(target, dtype):
    array = np.arange(2 * 3 * 40).reshape(2, 3, 40).astype(dtype)
    handle = qsmla.to_device(array[:, ::-1, ::2], target)
    assert (handle.shape, handle.dtype, handle.ndim) == ((2, 3, 20), np.dtype(dtype), 3)
    assert handle.nbytes == 120 * np.dtype(dtype).itemsize
    assert str(handle.target.kind) in repr(handle)
    copy = handle.numpy()
    assert copy.dtype == dtype
    np.testing.assert_array_equal(
        copy.view(np.uint8), np.ascontiguousarray(array[:, ::-1, ::2]).view(np.uint8)
    )
    array[...] = 1
    copy[...] = 0
    np.testing.assert_array_equal(handle.numpy().size, 120)
    assert not (handle.numpy().astype(np.float32) == 1).all()


@by_layout
@pytest.mark.parametrize("names", [["key"], ["key", "sparse_indices"], ["sparse_indices"]])
def test_inputs_on_the_device(target, spec, names):
    arguments = arguments_of(spec)
    expected, expected_lse = run(arguments, target)
    handles = {name: qsmla.to_device(arguments[name], target) for name in names}
    if "key" in names:
        handles["value"] = handles["key"]
    for _ in range(2):
        output, lse = run(arguments | handles, target)
        np.testing.assert_array_equal(bits(output), bits(expected))
        np.testing.assert_array_equal(lse, expected_lse)


@by_layout
def test_results_stay_where_the_query_is(target, spec):
    arguments = arguments_of(spec, query_counts=(2, 0, 3), kv_counts=(40, 3, 0), selected=4)
    expected, expected_lse = run(arguments, target)
    on_device = arguments | {"value": None}
    for name in ("query", "key", "sparse_indices"):
        on_device[name] = qsmla.to_device(arguments[name], target)
    output, lse = run(on_device, target)
    assert isinstance(output, qsmla.DeviceArray)
    assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(bits(output.numpy()), bits(expected))
    np.testing.assert_array_equal(lse.numpy(), expected_lse)
    alone = qsmla.kv_quant_sparse_flash_attention(**on_device, target=target)
    np.testing.assert_array_equal(bits(alone.numpy()), bits(expected))


def test_ids_out_of_order_are_brought_to_the_front(target):
    spec = SPECS["BSND"]
    arguments = arguments_of(spec, selected=6)
    arguments["sparse_indices"][..., ::2] = -1
    expected, _ = run(arguments, target)
    for dtype in (np.int32, np.int64):
        ids = qsmla.to_device(arguments["sparse_indices"].astype(dtype), target)
        output, _ = run(arguments | {"sparse_indices": ids}, target)
        np.testing.assert_array_equal(bits(output), bits(expected))


def test_ids_beyond_int32_are_refused():
    with pytest.raises(ValueError, match=r"array holds a value that is 2147483648; allowed: values of int32"):
        qsmla.to_device(np.array([[1 << 31]]), "llvm-cpu")


def test_a_resident_cache_is_not_sent_again(monkeypatch):
    config = next(config for config in CONFIGS if config.target == "vulkan:lavapipe")
    config.need_device()
    arguments = arguments_of(SPECS["BSND"])
    sent = []
    view = devices.GpuDevice.view
    monkeypatch.setattr(
        devices.GpuDevice,
        "view",
        lambda self, array, **how: sent.append(array.nbytes) or view(self, array, **how),
    )
    key = qsmla.to_device(arguments["key"], config.target)
    assert sent.pop() == key.nbytes
    run(arguments | {"key": key, "value": key}, config.target)
    assert 0 < max(sent) < key.nbytes
    run(arguments, config.target)
    assert key.nbytes in sent


def test_a_cpu_reads_its_copy_in_place(monkeypatch):
    arguments = arguments_of(SPECS["BSND"])
    key = aligned(arguments["key"])
    handle = qsmla.to_device(key, "llvm-cpu")
    expected, _ = run(arguments, "llvm-cpu")
    # The handle is a copy: what happens to the array afterwards does not matter.
    key[...] = 1
    output, _ = run(arguments | {"key": handle, "value": None}, "llvm-cpu")
    np.testing.assert_array_equal(bits(output), bits(expected))


def test_an_array_on_another_target_is_refused(target):
    arguments = arguments_of(SPECS["BSND"])
    other = "llvm-cpu:x86-64" if target != "llvm-cpu:x86-64" else "llvm-cpu"
    key = qsmla.to_device(arguments["key"], other)
    with pytest.raises(ValueError, match=r"key is on llvm-cpu:x86-64 and the call's target is"):
        run(arguments | {"key": key, "value": None}, target)


def test_an_output_array_of_the_host_is_refused(target):
    arguments = arguments_of(SPECS["BSND"])
    out = np.empty((*arguments["query"].shape[:-1], 512), arguments["query"].dtype)
    query = qsmla.to_device(arguments["query"], target)
    with pytest.raises(ValueError, match="out is an array of the host and query is on a device"):
        run(arguments | {"query": query}, target, out=out)


def test_checks_see_what_is_on_the_device(target):
    arguments = arguments_of(SPECS["BSND"])
    wrong = qsmla.to_device(arguments["key"][..., :600].copy(), target)
    with pytest.raises(ValueError, match="key"):
        run(arguments | {"key": wrong, "value": None}, target)
    ids = qsmla.to_device(arguments["sparse_indices"].astype(np.int8), target)
    with pytest.raises(TypeError, match="sparse_indices"):
        run(arguments | {"sparse_indices": ids}, target)


@pytest.mark.parametrize(
    ("array", "error", "words"),
    [
        (np.zeros(3, np.float64), TypeError, "array is dtype float64; allowed: float16, bfloat16"),
        (["a"], TypeError, "array is dtype"),
    ],
)
def test_other_arrays_are_refused(array, error, words):
    with pytest.raises(error, match=words):
        qsmla.to_device(array, "llvm-cpu")


def test_unknown_targets_are_refused():
    with pytest.raises(ValueError, match="target is 'tpu'"):
        qsmla.to_device(np.zeros(3, np.int32), "tpu")
    with pytest.raises(ValueError, match=r"target is 'vulkan:adreno', which cannot run here"):
        qsmla.to_device(np.zeros(3, np.int32), "vulkan:adreno")
    with pytest.raises(TypeError, match="target is a int"):
        qsmla.to_device(np.zeros(3, np.int32), 3)


# Two caches with lists, and a paged one without: those with the fewest heads of the matrix.
MLA_SPECS = {spec.kv_cache: spec for spec in mla_specs() if spec.heads in (3, 4)}
MLA_NAMES = ("q", "ori_kv", "cmp_kv", "ori_sparse_indices", "cmp_sparse_indices")
by_cache = pytest.mark.parametrize("spec", MLA_SPECS.values(), ids=MLA_SPECS)


def run_mla(arguments, target, **more):
    return qsmla.quant_sparse_flash_mla(**arguments, target=target, return_softmax_lse=True, **more)


def on_device(arguments, target, names):
    """The call with these of its arrays on the device, as far as it has them."""
    return arguments | {name: qsmla.to_device(arguments[name], target) for name in names if name in arguments}


@by_cache
@pytest.mark.parametrize("names", [MLA_NAMES[1:3], MLA_NAMES[1:], MLA_NAMES[3:]], ids="-".join)
def test_mla_inputs_on_the_device(target, spec, names):
    arguments = MlaCase(spec, "prefill", 0).arguments()
    expected, expected_lse = run_mla(arguments, target)
    handles = on_device(arguments, target, names)
    for _ in range(2):
        output, lse = run_mla(handles, target)
        assert isinstance(output, np.ndarray)
        np.testing.assert_array_equal(bits(output), bits(expected))
        np.testing.assert_array_equal(lse, expected_lse)


@by_cache
@pytest.mark.parametrize("scenario", ["empty_sequences", "prefill", "odd_ids"])
def test_mla_results_stay_where_the_query_is(target, spec, scenario):
    """Among them rows of no request, rows without keys, whose lse is the sink, and ids out of order."""
    arguments = MlaCase(spec, scenario, 1).arguments()
    expected, expected_lse = run_mla(arguments, target)
    handles = on_device(arguments, target, MLA_NAMES)
    output, lse = run_mla(handles, target)
    assert isinstance(output, qsmla.DeviceArray)
    assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(bits(output.numpy()), bits(expected))
    np.testing.assert_array_equal(lse.numpy(), expected_lse)
    assert np.isfinite(lse.numpy()).any()
    alone = qsmla.quant_sparse_flash_mla(**handles, target=target)
    np.testing.assert_array_equal(bits(alone.numpy()), bits(expected))


def test_mla_rows_without_keys_are_zeros_on_the_device(target):
    """Their partial results are never made, or are divided by nothing: neither reaches the handle."""
    arguments = MlaCase(MLA_SPECS["contiguous"], "empty_sequences", 1).arguments()
    output, lse = run_mla(on_device(arguments, target, MLA_NAMES), target)
    rows = output.numpy().astype(np.float32).reshape(-1, 512)
    keyless = ~rows.any(axis=1)
    assert 0 < keyless.sum() < len(rows)
    sinks = {0.25, -np.inf}
    assert {float(value) for value in lse.numpy().reshape(-1)[keyless]} == sinks


def test_a_loaded_mla_artifact_takes_handles(target):
    spec = MLA_SPECS["contiguous"]
    arguments = MlaCase(spec, "prefill", 0).arguments()
    kernel = load_artifact(qsmla.compile(spec, target), target)
    expected = kernel(**arguments)
    handles = on_device(arguments, target, MLA_NAMES)
    np.testing.assert_array_equal(bits(kernel(**handles).numpy()), bits(expected))


def test_mla_refuses_what_is_elsewhere(target):
    arguments = MlaCase(MLA_SPECS["contiguous"], "prefill", 0).arguments()
    other = "llvm-cpu:x86-64" if target != "llvm-cpu:x86-64" else "llvm-cpu"
    for name in MLA_NAMES:
        with pytest.raises(ValueError, match=f"{name} is on llvm-cpu:x86-64 and the call's target is"):
            run_mla(on_device(arguments, other, [name]), target)
    out = np.empty(arguments["q"].shape, ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="out is an array of the host and q is on a device"):
        run_mla(on_device(arguments, target, ["q"]), target, out=out)
    wrong = arguments | {"cmp_sparse_indices": arguments["cmp_sparse_indices"].astype(np.uint8)}
    wrong = on_device(wrong, target, ["cmp_sparse_indices"])
    with pytest.raises(TypeError, match="cmp_sparse_indices is dtype uint8; allowed: int32"):
        run_mla(wrong, target)
