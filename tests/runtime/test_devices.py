"""Running on devices: what does not fit is refused before it runs; partitions, chunks, fat artifacts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from compiled import arguments_of, check, run
from matrix.cases import some_specs
from matrix.targets import CONFIGS
from plain import bits

import qsmla
from qsmla.compiler import drivers
from qsmla.compiler.drivers import Found, FoundDevice
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import KernelSpec
from qsmla.runtime import devices
from qsmla.runtime.devices import CpuDevice, Device, GpuDevice
from qsmla.runtime.kept_plans import _kept_plan
from qsmla.runtime.kernels import _resolved
from qsmla.runtime.limits import check_buffer
from qsmla.runtime.workers import pool

(LAVAPIPE,) = (config for config in CONFIGS if config.target == "vulkan:lavapipe")
SPEC = min(some_specs(), key=lambda spec: spec.heads)


@pytest.fixture
def lavapipe() -> str:
    LAVAPIPE.need_device()
    return LAVAPIPE.target


@pytest.fixture(params=["llvm-cpu", "vulkan"], scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    if request.param == "vulkan":
        LAVAPIPE.need_device()
    opened = CpuDevice() if request.param == "llvm-cpu" else GpuDevice(Target.parse(LAVAPIPE.target))
    yield opened
    opened.close()


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5), (1, 7, 2), (0, 4)])
def test_arrays_come_back_as_they_went(device, dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for sent in (array, np.asfortranarray(array)):
        view = device.view(sent)
        assert list(view.shape) == list(shape)
        np.testing.assert_array_equal(np.array(device.read(view, dtype)), array)


def test_a_gpu_has_one_lane_and_a_cpu_its_workers(lavapipe, monkeypatch):
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "3")
    assert pool(Target.parse(lavapipe)).count == 1
    assert pool(Target.parse(lavapipe)) is pool(Target.parse("vulkan"))
    assert pool(Target.parse("llvm-cpu")).count == pool().count == 3


@pytest.mark.parametrize("cores", [1, 3, 132])
def test_any_partition_gives_the_same_bits(lavapipe, cores):
    arguments = arguments_of(SPEC, query_counts=(2, 1), kv_counts=(300, 700), selected=600)
    expected, expected_lse = check(arguments, lavapipe)
    metadata = qsmla.plan(**arguments, num_cores=cores)
    output, lse = run(arguments, lavapipe, metadata=metadata)
    np.testing.assert_array_equal(bits(output), bits(expected))
    np.testing.assert_array_equal(lse, expected_lse)


def test_small_chunks_give_the_same_bits(lavapipe, monkeypatch):
    arguments = arguments_of(SPEC, query_counts=(2, 1), kv_counts=(300, 900), selected=800)
    expected, _ = check(arguments, lavapipe)
    monkeypatch.setitem(devices.SCRATCH_BYTES, "vulkan", 2 << 20)
    _kept_plan.cache_clear()
    output, _ = run(arguments, lavapipe)
    _kept_plan.cache_clear()
    np.testing.assert_array_equal(bits(output), bits(expected))


def test_a_target_without_a_device_is_refused_and_no_cpu_steps_in():
    arguments = arguments_of(SPEC)
    with pytest.raises(ValueError, match=r"target is 'vulkan:adreno', which cannot run here: "):
        run(arguments, "vulkan:adreno")
    if Target.parse("cuda").unmet():
        with pytest.raises(ValueError, match=r"target is 'cuda:sm_80', which cannot run here: .*install"):
            run(arguments, "cuda")


def test_another_subgroup_size_is_refused_before_anything_is_compiled(lavapipe, monkeypatch):
    monkeypatch.setattr("qsmla.runtime.kernels.compile", lambda *_: pytest.fail("it was compiled"))
    with pytest.raises(ValueError, match=r"compiled for subgroups of 32, and those of llvmpipe .* are 8"):
        run(arguments_of(KernelSpec(heads=1)), "vulkan:ampere")


def test_a_device_without_a_feature_is_refused(lavapipe, monkeypatch):
    (found,) = drivers.find("vulkan").devices
    text = found.description.replace("shaderInt8=yes", "shaderInt8=no")
    monkeypatch.setattr(drivers, "find", lambda kind: Found((FoundDevice(found.name, 1, text),), None))
    _resolved.cache_clear()
    with pytest.raises(ValueError, match="lacks the features shaderInt8"):
        run(arguments_of(SPEC), lavapipe)
    with pytest.raises(ValueError, match="lacks the features shaderInt8"):
        GpuDevice(Target.parse(lavapipe))
    _resolved.cache_clear()


def test_a_cache_over_the_limit_is_an_error_before_the_run(lavapipe, monkeypatch):
    spec = KernelSpec(layout_kv="PA_BSND", heads=1)
    arguments = arguments_of(spec, kv_counts=(40, 40))
    # 128 MiB are 204,600.2 rows. Zeros that nobody touches take no memory.
    key = np.zeros((12_789, 16, 1, 656), np.int8)
    arguments |= {"key": key, "value": None}
    monkeypatch.setattr("qsmla.runtime.operator.run_program", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError, match=r"key's size in bytes is 134233344; allowed: at most 134217728, "):
        run(arguments, lavapipe)
    with pytest.raises(ValueError, match=r"array's size in bytes is 134233344; .*largest buffer on vulkan"):
        qsmla.to_device(key, lavapipe)


def test_a_row_whose_partial_results_are_too_large_is_an_error(lavapipe):
    # 128 heads x 512 values x 4 bytes a block of 256 keys: 128 MiB hold 512 blocks.
    arguments = arguments_of(
        KernelSpec(sparse_block_size=128, heads=128), query_counts=(1,), kv_counts=(256,), selected=1040
    )
    arguments["sparse_indices"][...] = 0
    with pytest.raises(ValueError, match="sparse_indices selects 520 key blocks in a row, whose partial"):
        run(arguments, lavapipe)


def test_limits_of_targets():
    assert Target.parse("llvm-cpu").largest_buffer is None
    assert Target.parse("cuda").largest_buffer is None
    assert Target.parse("vulkan:ampere").largest_buffer == (1 << 31) - 1
    check_buffer("key's", 1 << 27, Target.parse("vulkan:lavapipe"))
    check_buffer("key's", 1 << 40, Target.parse("cuda"))
    with pytest.raises(ValueError, match="key's size in bytes is 134217729"):
        check_buffer("key's", (1 << 27) + 1, Target.parse("vulkan:lavapipe"))


@pytest.fixture(scope="module")
def fat(tmp_path_factory):
    path = tmp_path_factory.mktemp("fat") / "kernel.vmfb"
    return qsmla.compile(SPEC, "llvm-cpu,vulkan:lavapipe,cuda", output=path)


def test_one_artifact_runs_on_each_of_its_targets(fat, lavapipe):
    arguments = arguments_of(SPEC)
    assert [target.kind for target in fat.targets] == ["llvm-cpu", "vulkan", "cuda"]
    expected, _ = check(arguments, "llvm-cpu")
    for target, kind in ((None, "llvm-cpu"), ("vulkan", "vulkan"), (lavapipe, "vulkan")):
        kernel = qsmla.load(fat.path, target)
        assert kernel.target.kind == kind
        output = kernel(**arguments)
        np.testing.assert_allclose(
            output.astype(np.float32), expected.astype(np.float32), rtol=2.0**-7, atol=1e-4
        )


def test_an_artifact_runs_on_no_other_target(fat):
    if Target.parse("cuda").unmet():
        words = r"the artifact for cuda:sm_80 cannot run here: .*; choose another of its targets: llvm-cpu"
        with pytest.raises(ArtifactError, match=words):
            qsmla.load(fat.path, "cuda")
    with pytest.raises(ArtifactError, match=r"target is 'vulkan:ada'; the artifact is compiled for llvm-cpu"):
        qsmla.load(fat.path, "vulkan:ada")


def test_threads_take_turns_on_a_gpu(lavapipe):
    calls = [arguments_of(SPEC, seed=seed) for seed in range(3)]
    expected = [run(arguments, lavapipe)[0] for arguments in calls]
    found: list[tuple[int, np.ndarray]] = []

    def work(number: int) -> None:
        for _ in range(2):
            found.append((number, run(calls[number], lavapipe)[0]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for number, output in found:
        np.testing.assert_array_equal(bits(output), bits(expected[number]))


@pytest.mark.parametrize("ending", ["kept", "closed", "raised"])
def test_a_process_ends_cleanly(lavapipe, ending):
    """With arrays still on a GPU, and with an error whose traceback holds what a call had there."""
    script = Path(__file__).parent / "processes" / "leave_device.py"
    tests = Path(__file__).parents[1]
    finished = subprocess.run(
        [sys.executable, str(script), ending, lavapipe, str(tests)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == (1 if ending == "raised" else 0), finished.stderr
    assert "leak" not in finished.stderr
    words = {
        "kept": "kept",
        "closed": "is gone: it was released, or its device closed",
        "raised": "RuntimeError: of the test",
    }
    assert words[ending] in finished.stdout + finished.stderr
