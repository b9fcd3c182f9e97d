"""Special values and rows of `quant_sparse_flash_mla` on each target, and heads that fill no tile."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from matrix.mla_cases import mla_specs
from matrix.targets import CONFIGS, Config
from mla_calls import FINITE_CODES, NAN_CODE, Arguments, check, mla_arguments, run
from plain import bits

import qsmla
from qsmla.ir.codes import decode_table
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.operator import load_artifact

INT32 = np.iinfo(np.int32)


@pytest.fixture(params=CONFIGS, ids=lambda config: config.target)
def target(request: pytest.FixtureRequest) -> str:
    config: Config = request.param
    config.need_device()
    return config.target


def one_key() -> Arguments:
    """One query row of 7 heads that attends to one key, on a dense kernel of the matrix."""
    return mla_arguments(
        query_counts=(1,), ori_counts=(1,), cmp_counts=None, heads=7, ori_kv_descale=np.float32(0.25)
    )


@pytest.mark.parametrize("codes", [FINITE_CODES[:127], FINITE_CODES[127:]], ids=["first half", "second half"])
def test_every_finite_code_comes_back_exactly(target: str, codes: npt.NDArray[np.uint8]) -> None:
    """All 253 of them, as values; those that matter to the score are the same in every column."""
    assert len(FINITE_CODES) == 253
    arguments = one_key()
    arguments["ori_kv"][0, 0, 0] = np.resize(codes, 512)
    output, _ = check(arguments, target)
    expected = decode_table("hifloat8")[np.resize(codes, 512)] * np.float32(0.25)
    np.testing.assert_array_equal(output[0, 0].astype(np.float32), np.broadcast_to(expected, (7, 512)))


def test_every_finite_code_counts_in_the_score(target: str) -> None:
    """A query and a key that are zero but for one column: the lse is the score."""
    table = decode_table("hifloat8")
    arguments = one_key() | {"softmax_scale": 2.0**-10, "q_descale": 1.0, "ori_kv_descale": 1.0}
    for codes in FINITE_CODES[: 36 * 7].reshape(36, 7):
        arguments["q"][...] = 0
        arguments["q"][0, 0, :, 9] = codes
        arguments["ori_kv"][...] = 0
        arguments["ori_kv"][0, 0, 0, 9] = 0x08  # 1.0
        _, lse = run(arguments, target)
        np.testing.assert_allclose(lse[0, 0], table[codes] / 1024, rtol=3e-7)


def test_a_nan_code_makes_its_row_nan_and_no_other(target: str) -> None:
    arguments = mla_arguments(ori_mask_mode=3)
    arguments["ori_kv"][0, 38, 0, 100] = NAN_CODE
    arguments["q"][1, 0, 1, 5] = NAN_CODE
    output, lse = check(arguments, target)
    wrong = np.isnan(output.astype(np.float32)).all(axis=-1)
    assert wrong.tolist() == np.isnan(lse).tolist()
    # Rows 1 and 2 of batch 0 see token 38, row 0 does not; of batch 1's row 0 it is one head.
    expected = [[[False] * 2, [True] * 2, [True] * 2], [[False, True], [False] * 2, [False] * 2]]
    assert wrong.tolist() == expected


@pytest.mark.parametrize("ids", [[-1, -1], [INT32.min, INT32.max], [5000, -7]], ids=str)
@pytest.mark.parametrize("sinks", [None, np.array([0.5, -np.inf] * 8, np.float32)], ids=["none", "sinks"])
def test_invalid_ids_attend_to_nothing(target: str, ids: list[int], sinks: object) -> None:
    """Rows of no valid id are zeros, and their lse is the sink; the other rows are as ever."""
    arguments = mla_arguments(
        "TND",
        "TND",
        query_counts=(1, 2),
        ori_counts=None,
        cmp_counts=(9, 5),
        cmp_topk=2,
        heads=16,
        sinks=sinks,
    )
    arguments["cmp_sparse_indices"][0] = ids
    arguments["cmp_sparse_indices"][1:] = [[[0, 3]], [[4, 1]]]
    # What the operator leaves alone shows.
    out = np.full(arguments["q"].shape, 7.0, ml_dtypes.bfloat16)
    output, lse = check(arguments, target, out=out)
    assert (output[0] == 0).all()
    np.testing.assert_array_equal(lse[0], np.full(16, -np.inf) if sinks is None else sinks)
    assert output[1:].any(axis=-1).all()


@pytest.mark.parametrize("sink", [2.4e38, 3.4e38, -3.4e38], ids=str)
def test_a_sink_near_the_end_of_float32_is_the_log_sum_exp(target: str, sink: float) -> None:
    """Times log2(e) it is infinite."""
    arguments = mla_arguments(sinks=np.full(2, sink, np.float32), heads=2)
    _, lse = check(arguments, target)
    of_rows = lse[lse > -np.inf]  # the others belong to no batch
    assert len(of_rows)
    assert (of_rows == np.float32(sink)).all() == (sink > 0)


@pytest.mark.parametrize("layout_kv", ["BSND", "TND"])
def test_batches_without_tokens_are_zeros(target: str, layout_kv: str) -> None:
    arguments = mla_arguments(
        "TND", layout_kv, query_counts=(2, 0, 1), ori_counts=(0, 4, 6), cmp_counts=(0, 3, 0), cmp_topk=3
    )
    output, lse = check(arguments, target)
    assert output.any(axis=(1, 2)).tolist() == [False, False, True]
    assert np.isneginf(lse[:2]).all()


@pytest.mark.parametrize(("heads", "filled"), [(20, 32), (33, 48)])
@pytest.mark.parametrize("target", ["llvm-cpu:x86-64-v2", "vulkan:lavapipe"])
def test_heads_that_fill_no_tile_have_the_bits_of_those_that_do(target: str, heads: int, filled: int) -> None:
    """On the schedule of GPUs the last tile of 16 heads is filled up, and no head's bits show it."""
    next(config for config in CONFIGS if config.target == target).need_device()
    whole = mla_arguments(
        heads=filled, ori_counts=(300, 33), sinks=np.linspace(-1, 1, filled, dtype=np.float32)
    )
    part = whole | {"q": whole["q"][:, :, :heads], "sinks": whole["sinks"][:heads]}
    results = []
    for arguments in (whole, part):
        spec = check_mla_call(**arguments).spec
        # With CUDA beside it a CPU gets the schedule of GPUs too.
        kernel = load_artifact(qsmla.compile(spec, f"{target},cuda:sm_80"), target)
        assert kernel.artifact.record.schedule.contraction_dtype == "query"
        results.append(kernel(**arguments, return_softmax_lse=True))
    for of_whole, of_part in zip(*results, strict=True):
        np.testing.assert_array_equal(bits(np.ascontiguousarray(of_whole[:, :, :heads])), bits(of_part))
    check(part, target)


def test_the_kernels_of_these_tests_are_those_of_the_matrix() -> None:
    """So that they compile once."""
    for arguments in (one_key(), mla_arguments()):
        assert check_mla_call(**arguments).spec in mla_specs()
