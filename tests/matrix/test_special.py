"""Special values and rows on each target: code tables, NaN that stays where it is, rows without tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compiled import NAN_CODES, arguments_of, run
from matrix.cases import some_specs
from matrix.targets import CONFIGS, Config
from plain import Arguments, bits, cache_index

from qsmla.ir.codes import CODE_FORMATS, decode_table
from qsmla.ir.spec import KernelSpec
from qsmla.runtime.packing import ROW_LAYOUTS
from qsmla.tools.stages import attempt

by_target = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.target)
by_format = pytest.mark.parametrize("kv_dtype", CODE_FORMATS)
IDS = "sparse_indices"
INT32 = np.iinfo(np.int32)


def kernel(**fields: object) -> KernelSpec:
    """The smallest kernel that every target compiles for the matrix."""
    found = [spec for spec in some_specs() if fields.items() <= spec.to_dict().items()]
    return min(found, key=lambda spec: spec.heads)


def one_token_each(spec: KernelSpec, requests: int) -> Arguments:
    """A call in which every request has one query row and attends to its only token, all of it zeros."""
    arguments = arguments_of(
        spec, query_counts=(1,) * requests, kv_counts=(1,) * requests, selected=1, page_size=128
    )
    arguments[IDS][...] = 0
    arguments["key"].view(np.uint8)[...] = 0
    for request in range(requests):
        write(arguments, request, 0, "scales", np.float32([1, 0.5, -1, 0.25]))
    return arguments


def write(arguments: Arguments, request: int, token: int, part: str, values: npt.NDArray[Any]) -> None:
    """Write codes, rope values or scales of a cached token."""
    row = arguments["key"].view(np.uint8)[cache_index(arguments, request, token)].reshape(656)
    row[getattr(ROW_LAYOUTS[arguments["byte_order"]], part)] = values.view(np.uint8)


@by_target
@by_format
def test_every_code_decodes_exactly(config: Config, kv_dtype: str, request: pytest.FixtureRequest) -> None:
    config.need_device()
    spec = kernel(kv_dtype=kv_dtype)
    if (config.target, kv_dtype, spec.query_dtype) == ("llvm-cpu:x86-64-v2", "hifloat8", "float16"):
        reason = "without F16C, IREE converts float16 by a routine that takes denormals for zero"
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason))
    table = decode_table(kv_dtype)
    codes = np.flatnonzero(np.isfinite(table)).astype(np.uint8)
    # Each code once in each of the four tiles: 128 columns a request.
    batches = [np.resize(codes[start : start + 128], 128) for start in range(0, len(codes), 128)]
    arguments = one_token_each(spec, len(batches))
    for number, batch in enumerate(batches):
        write(arguments, number, 0, "codes", np.tile(batch, 4))
    output, _ = run(arguments, config.target)
    scales = np.repeat(np.float32([1, 0.5, -1, 0.25]), 128)
    expected = np.stack([np.tile(table[batch], 4) * scales for batch in batches]).astype(output.dtype)
    rows = output.reshape(len(batches), spec.heads, 512)
    np.testing.assert_array_equal(rows, np.broadcast_to(expected[:, None], rows.shape))


@by_target
@by_format
@pytest.mark.parametrize("part", ["codes", "rope", "scales"])
def test_nan_stays_in_its_row(config: Config, kv_dtype: str, part: str) -> None:
    config.need_device()
    if (kv_dtype, part) == ("int8", "codes"):
        pytest.skip("int8 has no NaN")
    spec = kernel(kv_dtype=kv_dtype)
    arguments = arguments_of(spec, query_counts=(1, 1, 1), kv_counts=(3, 3, 3), selected=3, page_size=128)
    arguments[IDS][...] = -1
    arguments[IDS][..., 0] = 0
    before, _ = run(arguments, config.target)
    values = {
        "codes": np.uint8([NAN_CODES[kv_dtype]]).repeat(512),
        "rope": np.full(64, np.nan, arguments["query"].dtype),
        "scales": np.full(4, np.nan, np.float32),
    }
    write(arguments, 1, 0, part, values[part])
    made = attempt(spec, arguments, config.target)
    made.check()
    after = made.results[config.target]["output"].reshape(3, -1)
    assert np.isnan(after[1].astype(np.float32)).all()
    for untouched in (0, 2):
        np.testing.assert_array_equal(bits(after[untouched]), bits(before.reshape(3, -1)[untouched]))


@by_target
@pytest.mark.parametrize("layout_kv", ["BSND", "TND", "PA_BSND"])
@pytest.mark.parametrize("ids", [[-1, -1], [INT32.min, INT32.max], [5000, -7]], ids=str)
def test_invalid_ids_attend_to_nothing(config: Config, layout_kv: str, ids: list[int]) -> None:
    config.need_device()
    spec = kernel(layout_kv=layout_kv)
    arguments = arguments_of(spec, query_counts=(1, 2), kv_counts=(9, 5), selected=2, page_size=128)
    arguments[IDS].reshape(-1, 2)[0] = ids
    out = np.full((*arguments["query"].shape[:-1], 512), 7.0, arguments["query"].dtype)
    made = attempt(spec, arguments, config.target, out=out)
    made.check()
    assert (out.reshape(-1, spec.heads, 512)[0] == 0).all()
    lse = made.results[config.target]["lse"].reshape(-1, spec.heads)
    assert np.isneginf(lse[0]).all()
    assert np.isfinite(lse).sum() >= spec.heads


@by_target
@pytest.mark.parametrize("layout_query", ["BSND", "TND"])
def test_requests_without_tokens_are_zeros(config: Config, layout_query: str) -> None:
    config.need_device()
    spec = kernel(layout_query=layout_query)
    arguments = arguments_of(spec, query_counts=(2, 0, 1), kv_counts=(0, 4, 6), selected=2, page_size=128)
    out = np.full((*arguments["query"].shape[:-1], 512), 7.0, arguments["query"].dtype)
    made = attempt(spec, arguments, config.target, out=out)
    made.check()
    rows = out.reshape(-1, spec.heads * 512)
    with_tokens = rows.any(axis=1).sum()
    assert with_tokens == 1
    assert (rows != 7).any(axis=1).all()


def test_a_failure_is_of_its_stage_and_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qsmla.tools import stages

    spec = kernel(kv_dtype="int8")
    arguments = arguments_of(spec)
    assert attempt(spec, arguments, "llvm-cpu").passed
    call = stages._call

    def wrong(made: stages.Attempt, target: str, **more: Any) -> Any:
        output, lse = call(made, target, **more)
        output[..., 3] += 1
        return output, lse

    monkeypatch.setattr(stages, "_call", wrong)
    made = attempt(spec, arguments, "llvm-cpu")
    with pytest.raises(stages.CompareStageError, match="qsmla replay"):
        made.check(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "case.json", "command.txt", "inputs.npz", "kernel.mlir", "llvm-cpu.npz", "reference.npz"
    }  # fmt: skip
    assert (tmp_path / "command.txt").read_text().startswith("iree-compile kernel.mlir")
    again = stages.read(tmp_path)
    assert (again.spec, again.target, again.failed_stage) == (spec, "llvm-cpu", "compare")
    for name, value in again.arguments.items():
        if name != "value":
            np.testing.assert_array_equal(value, arguments[name])
    monkeypatch.undo()
    assert attempt(again.spec, again.arguments, again.target).passed


@pytest.mark.parametrize(
    ("stage", "changes"),
    [("load", {"target": "vulkan:adreno"}), ("run", {"scale": np.nan}), ("compile", {"heads": 1})],
)
def test_each_stage_has_its_error(
    stage: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from qsmla.compiler.errors import CompileError
    from qsmla.tools import stages

    spec = kernel(kv_dtype="int8")
    arguments = arguments_of(spec)
    if stage == "run":
        arguments["scale_value"] = changes["scale"]
    if stage == "compile":

        def refuse(*_: Any) -> None:
            raise CompileError("iree-compile ended with return code 1")

        monkeypatch.setattr(stages, "kernel_for", refuse)
    made = attempt(spec, arguments, changes.get("target", "llvm-cpu"))
    assert made.failed_stage == stage
    with pytest.raises(stages.ERRORS[stage], match=f"failed at stage {stage}"):
        made.check()
