from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import legal_arguments
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qsmla.runtime.metadata import (
    mla_fingerprint,
    plan_mla,
    quant_sparse_flash_mla_metadata,
)
from qsmla.runtime.operator import plan
from qsmla.runtime.partition import Partition
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths, row_blocks, row_keys
from qsmla.runtime.workers import worker_count

from .plain_planner import plain_metadata

INT32_MAX = 2**31 - 1
ATTRIBUTES = set(MlaAttributes.__dataclass_fields__)


def metadata(num_cores: int = 4, **arguments: Any) -> NDArray[np.int32]:
    return quant_sparse_flash_mla_metadata(num_heads_q=64, num_cores=num_cores, **arguments)


def resolve(arguments: dict[str, Any]) -> tuple[MlaAttributes, MlaLengths]:
    """The typed call that the arguments make."""
    attributes = {name: value for name, value in arguments.items() if name in ATTRIBUTES}
    checked = MlaAttributes(num_heads_q=64, **attributes)
    rest = {name: value for name, value in arguments.items() if name not in ATTRIBUTES}
    return checked, MlaLengths.resolve(checked, **rest)


def keys(**arguments: Any) -> tuple[list[int], list[int]]:
    ori, cmp = row_keys(*resolve(arguments))
    return ori.tolist(), cmp.tolist()


def int32(*values: int) -> NDArray[np.int32]:
    return np.array(values, np.int32)


@st.composite
def calls(draw: st.DrawFn, longest: int = 1500) -> dict[str, Any]:
    """Legal arguments, the lengths said in every way there is."""
    batch = draw(st.integers(0, 6))
    ratio = draw(st.sampled_from([1, 2, 4, 128]))
    layout_q = draw(st.sampled_from(["BSND", "TND"]))
    layout_kv = draw(st.sampled_from(["BSND", "TND", "PA_BBND"]))
    arguments: dict[str, Any] = {
        "layout_q": layout_q,
        "layout_kv": layout_kv,
        "ori_mask_mode": draw(st.sampled_from([0, 3, 4])),
        "cmp_mask_mode": draw(st.sampled_from([0, 3])),
        "ori_win_left": draw(st.sampled_from([-1, 0, 1, 127, 700])),
        "ori_win_right": draw(st.sampled_from([-1, 0, 3, 300])),
        "ori_topk": draw(st.sampled_from([0, 0, 1, 600])),
        "cmp_topk": draw(st.sampled_from([0, 0, 1, 300])),
        "cmp_ratio": ratio,
        "has_ori_kv": draw(st.booleans()),
        "has_cmp_kv": draw(st.booleans()),
    }
    residual = draw(st.lists(st.integers(0, ratio - 1), min_size=batch, max_size=batch))
    arguments["cmp_residual_kv"] = np.array(residual, np.int32)
    for part, layout, most in (
        ("q", layout_q, 7),
        ("ori_kv", layout_kv, longest),
        ("cmp_kv", layout_kv, longest),
    ):
        lengths = draw(st.lists(st.integers(0, most), min_size=batch, max_size=batch))
        ways = ["used", "max"] + ["sums", "sums and used"] * (layout == "TND")
        way = draw(st.sampled_from(ways))
        if "sums" in way:
            padded = [length + draw(st.integers(0, 3)) for length in lengths] if "used" in way else lengths
            arguments[f"cu_seqlens_{part}"] = np.cumsum([0, *padded], dtype=np.int32)
        if "used" in way:
            arguments[f"seqused_{part}"] = np.array(lengths, np.int32)
        if way == "max" or draw(st.booleans()):
            arguments[f"max_seqlen_{part}"] = most + 3
    if draw(st.booleans()) or not arguments.keys() & {"seqused_q", "cu_seqlens_q"}:
        arguments["batch_size"] = batch
    return arguments


@given(calls(), st.sampled_from([1, 2, 3, 8, 132]))
def test_words_equal_the_plain_loops(arguments: dict[str, Any], num_cores: int) -> None:
    words = metadata(num_cores, **arguments)
    expected = plain_metadata(arguments, num_cores, mla_fingerprint(*resolve(arguments)))
    assert words.view(np.uint32).tolist() == expected


@given(calls(longest=12))
def test_keys_equal_the_masks_drawn_out(arguments: dict[str, Any]) -> None:
    attributes, lengths = resolve(arguments)
    ori_counts, cmp_counts = [], []
    for query, ori, cmp, residual in zip(
        *(part.tolist() for part in (lengths.query, lengths.ori, lengths.cmp, lengths.residual)), strict=True
    ):
        row = np.arange(query)[:, None]
        diagonal, column = ori - query + row, np.arange(ori)
        mask = np.ones((query, ori), bool)
        if attributes.ori_mask_mode == 3:
            mask = column <= diagonal
        elif attributes.ori_mask_mode == 4:
            if attributes.ori_win_left >= 0:
                mask &= column >= diagonal - attributes.ori_win_left
            if attributes.ori_win_right >= 0:
                mask &= column <= diagonal + attributes.ori_win_right
        ori_counts += mask.sum(axis=1).tolist()
        # A compressed token is seen once its last original token is: the one in front of its end.
        end = (np.arange(cmp) + 1) * attributes.cmp_ratio
        mask = np.ones((query, cmp), bool)
        if attributes.cmp_mask_mode == 3:
            mask = end - 1 <= cmp * attributes.cmp_ratio + residual - query + row
        cmp_counts += mask.sum(axis=1).tolist()
    ori_keys, cmp_keys = row_keys(attributes, lengths)
    assert ori_keys.tolist() == [min(count, attributes.ori_topk or count) for count in ori_counts]
    assert cmp_keys.tolist() == [min(count, attributes.cmp_topk or count) for count in cmp_counts]


@given(calls(), st.sampled_from([1, 3, 132]))
def test_same_input_same_words(arguments: dict[str, Any], num_cores: int) -> None:
    words = metadata(num_cores, **arguments)
    copies = {
        name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()
    }
    out = np.full(1024, -1, np.int32)
    assert metadata(num_cores, out=out, **dict(reversed(copies.items()))) is out
    assert out.tobytes() == words.tobytes()


@pytest.mark.parametrize(
    ("arguments", "ori", "cmp"),
    [
        ({"seqused_q": int32(2, 1), "seqused_ori_kv": int32(5, 0)}, [5, 5, 0], [0, 0, 0]),
        (
            {"batch_size": 1, "max_seqlen_q": 3, "max_seqlen_ori_kv": 5, "ori_mask_mode": 3},
            [3, 4, 5],
            [0] * 3,
        ),
        # More query rows than keys: the first see nothing.
        (
            {"batch_size": 1, "max_seqlen_q": 4, "max_seqlen_ori_kv": 2, "ori_mask_mode": 3},
            [0, 0, 1, 2],
            [0] * 4,
        ),
        (
            {"batch_size": 1, "max_seqlen_q": 3, "max_seqlen_ori_kv": 6, "ori_mask_mode": 4}
            | {"ori_win_left": 2, "ori_win_right": 1},
            [4, 4, 3],
            [0] * 3,
        ),
        # 2 * 4 + 3 original tokens: row 0 of 4 sees 8 of them, two compressed ones; never a third.
        (
            {"batch_size": 1, "max_seqlen_q": 4, "max_seqlen_cmp_kv": 2, "cmp_mask_mode": 3}
            | {"cmp_ratio": 4, "cmp_residual_kv": int32(3)},
            [0] * 4,
            [2, 2, 2, 2],
        ),
        (
            {"batch_size": 1, "max_seqlen_q": 4, "max_seqlen_cmp_kv": 2, "cmp_mask_mode": 3}
            | {"cmp_ratio": 4, "cmp_residual_kv": int32(0)},
            [0] * 4,
            [1, 1, 1, 2],
        ),
        (
            {"batch_size": 1, "max_seqlen_q": 1, "max_seqlen_ori_kv": 900, "max_seqlen_cmp_kv": 70}
            | {"ori_topk": 512, "cmp_topk": 80},
            [512],
            [70],
        ),
        (
            {"batch_size": 1, "max_seqlen_q": 1, "max_seqlen_ori_kv": 9, "max_seqlen_cmp_kv": 7}
            | {"has_ori_kv": False},
            [0],
            [7],
        ),
    ],
)
def test_keys_by_hand(arguments: dict[str, Any], ori: list[int], cmp: list[int]) -> None:
    assert keys(**arguments) == (ori, cmp)


def test_blocks_of_the_parts_are_counted_apart() -> None:
    lengths = {
        "seqused_q": int32(1, 1, 1, 1, 1),
        "seqused_ori_kv": int32(0, 1, 256, 257, INT32_MAX),
        "seqused_cmp_kv": int32(0, 1, 0, 255, INT32_MAX),
    }
    assert row_blocks(*resolve(lengths), 256).tolist() == [0, 2, 1, 3, 2**24]


def test_blocks_of_many_rows_follow_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    query = np.random.default_rng(0).integers(0, 9, 300).astype(np.int32)
    call = resolve({"seqused_q": query, "seqused_ori_kv": query * 100, "ori_mask_mode": 3})
    ori, _ = row_keys(*call)
    for chunk in (1, 7, 64, 10_000):
        monkeypatch.setattr("qsmla.runtime.row_keys._CHUNK", chunk)
        assert row_blocks(*call, 256).tolist() == [-(-keys // 256) for keys in ori.tolist()]


@pytest.mark.parametrize("mask", [0, 3, 4])
@pytest.mark.parametrize("window", [-1, 0, INT32_MAX])
def test_keys_at_the_ends_of_int32(mask: int, window: int) -> None:
    arguments = {
        "seqused_q": int32(2, 2, 3),
        "seqused_ori_kv": int32(INT32_MAX, 0, 1),
        "seqused_cmp_kv": int32(INT32_MAX, 0, 1),
        "cmp_residual_kv": int32(INT32_MAX - 1, 0, 7),
        "cmp_ratio": INT32_MAX,
        "cmp_mask_mode": 3,
        "ori_mask_mode": mask,
        "ori_win_left": window,
        "ori_win_right": window,
    }
    words = metadata(3, **arguments)
    assert words.view(np.uint32).tolist() == plain_metadata(
        arguments, 3, mla_fingerprint(*resolve(arguments))
    )


def test_lengths_come_from_the_argument_that_says_most() -> None:
    tnd = {"layout_q": "TND", "cu_seqlens_q": int32(0, 3, 7), "max_seqlen_q": 9, "max_seqlen_ori_kv": 1}
    assert keys(**tnd)[0] == [1] * 7
    assert keys(**tnd, seqused_q=int32(2, 1))[0] == [1] * 3
    assert keys(batch_size=2, max_seqlen_q=9, max_seqlen_ori_kv=1)[0] == [1] * 18


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        # Both rows of batch 1 are split; what the output holds in front of them differs.
        ({"seqused_q": int32(1, 2)}, 2),
        ({"seqused_q": int32(1, 2), "max_seqlen_q": 10}, 11),
        ({"batch_size": 2, "max_seqlen_q": 2}, 3),
        ({"layout_q": "TND", "cu_seqlens_q": int32(0, 5, 9), "seqused_q": int32(1, 2)}, 6),
        ({"layout_q": "TND", "seqused_q": int32(1, 2), "max_seqlen_q": 10}, 2),
    ],
)
def test_split_rows_are_named_by_their_place_in_the_output(arguments: dict[str, Any], row: int) -> None:
    lengths = {"seqused_ori_kv": int32(1, 1), "seqused_cmp_kv": int32(0, 2560)}
    partition = Partition.decode(metadata(8, **arguments, **lengths))
    assert partition.split_rows == (row - 1, row)


def case(**lengths: Any) -> dict[str, Any]:
    return lengths


@pytest.mark.parametrize(
    "arguments",
    [
        case(),
        case(seqused_q=int32()),
        case(cu_seqlens_q=int32(0), layout_q="TND"),
        case(batch_size=1, max_seqlen_q=1, max_seqlen_ori_kv=1),
        case(batch_size=1, max_seqlen_q=1, max_seqlen_ori_kv=600),
        case(batch_size=3, max_seqlen_q=5),
        case(batch_size=3),
        case(cu_seqlens_q=int32(0, 0, 1), layout_q="TND", max_seqlen_ori_kv=1000),
        case(cu_seqlens_q=int32(0, 1, 1), layout_q="TND", max_seqlen_ori_kv=1000),
        case(
            seqused_q=np.ones(64, np.int32),
            seqused_ori_kv=np.r_[np.zeros(40), 9e6, np.zeros(23)].astype("i4"),
        ),
        case(seqused_q=np.ones(64, np.int32), seqused_ori_kv=np.r_[131072, np.ones(63)].astype(np.int32)),
        case(seqused_q=np.full(300, 3, np.int32), max_seqlen_ori_kv=INT32_MAX, max_seqlen_cmp_kv=INT32_MAX),
        case(seqused_q=np.ones(131, np.int32), max_seqlen_ori_kv=INT32_MAX, max_seqlen_cmp_kv=INT32_MAX),
        case(seqused_q=np.arange(16385, dtype=np.int32) % 2, seqused_ori_kv=np.arange(16385, dtype=np.int32)),
        case(seqused_q=np.arange(65536, dtype=np.int32) % 3, seqused_ori_kv=np.arange(65536, dtype=np.int32)),
        case(batch_size=65536, max_seqlen_q=1),
    ],
    ids=lambda arguments: ",".join(arguments) or "nothing",
)
@pytest.mark.parametrize("num_cores", [1, 7, 132])
def test_special_cases_equal_the_plain_loops(arguments: dict[str, Any], num_cores: int) -> None:
    words = metadata(num_cores, ori_mask_mode=3, **arguments)
    arguments = arguments | {"ori_mask_mode": 3}
    assert words.view(np.uint32).tolist() == plain_metadata(
        arguments, num_cores, mla_fingerprint(*resolve(arguments))
    )


def test_a_million_rows_equal_the_plain_loops() -> None:
    arguments = {
        "layout_q": "TND",
        "cu_seqlens_q": np.linspace(0, 1_000_000, 41).astype(np.int32),
        "max_seqlen_ori_kv": 30_000,
        "max_seqlen_cmp_kv": 7_500,
        "cmp_ratio": 4,
        "cmp_residual_kv": np.arange(40, dtype=np.int32) % 4,
        "ori_mask_mode": 4,
        "ori_win_left": 127,
        "ori_win_right": 0,
        "cmp_mask_mode": 3,
    }
    words = metadata(132, **arguments)
    assert Partition.decode(words).rows == 1_000_000
    assert words.view(np.uint32).tolist() == plain_metadata(
        arguments, 132, mla_fingerprint(*resolve(arguments))
    )


TND = {"layout_q": "TND", "layout_kv": "TND"}


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"num_heads_q": 0}, ValueError, "num_heads_q"),
        ({"num_heads_q": 129}, ValueError, "num_heads_q"),
        ({"num_heads_q": 64.0}, TypeError, "num_heads_q"),
        ({"num_heads_q": True}, TypeError, "num_heads_q"),
        ({"num_heads_kv": 2}, ValueError, "num_heads_kv"),
        ({"head_dim": 576}, ValueError, "head_dim"),
        ({"quant_mode": 0}, ValueError, "quant_mode"),
        ({"ori_topk": -1}, ValueError, "ori_topk"),
        ({"cmp_topk": 2**31}, ValueError, "cmp_topk"),
        ({"cmp_ratio": 0}, ValueError, "cmp_ratio"),
        ({"ori_mask_mode": 1}, ValueError, "ori_mask_mode"),
        ({"cmp_mask_mode": 4}, ValueError, "cmp_mask_mode"),
        ({"ori_win_left": -2}, ValueError, "ori_win_left"),
        ({"ori_win_right": -2}, ValueError, "ori_win_right"),
        ({"layout_q": "PA_BBND"}, ValueError, "layout_q"),
        ({"layout_kv": "PA_BSND"}, ValueError, "layout_kv"),
        ({"layout_q": None}, TypeError, "layout_q"),
        ({"has_ori_kv": 1}, TypeError, "has_ori_kv"),
        ({"has_cmp_kv": None}, TypeError, "has_cmp_kv"),
        ({"ori_topk_length": int32(1)}, ValueError, "ori_topk_length"),
        ({"cmp_topk_length": int32(1)}, ValueError, "cmp_topk_length"),
        ({"num_cores": 0}, ValueError, "num_cores"),
        ({"num_cores": 133}, ValueError, "num_cores"),
        ({"num_cores": 2.0}, TypeError, "num_cores"),
        ({"out": np.zeros(1024)}, TypeError, "out"),
        ({"out": np.zeros(1025, np.int32)}, ValueError, "out"),
        ({"batch_size": -1}, ValueError, "batch_size"),
        ({"max_seqlen_q": -1}, ValueError, "max_seqlen_q"),
        ({"max_seqlen_ori_kv": 2**31}, ValueError, "max_seqlen_ori_kv"),
        ({"max_seqlen_cmp_kv": "1"}, TypeError, "max_seqlen_cmp_kv"),
        # Prefix sums.
        (TND | {"cu_seqlens_q": int32(0, 5, 3)}, ValueError, "cu_seqlens_q"),
        (TND | {"cu_seqlens_q": int32(1, 5)}, ValueError, "cu_seqlens_q"),
        (TND | {"cu_seqlens_q": int32()}, ValueError, "cu_seqlens_q"),
        (
            TND | {"cu_seqlens_q": int32(0, 5), "cu_seqlens_ori_kv": int32(2, 5)},
            ValueError,
            "cu_seqlens_ori_kv",
        ),
        (
            TND | {"cu_seqlens_q": int32(0, 5), "cu_seqlens_cmp_kv": int32(0, -5)},
            ValueError,
            "cu_seqlens_cmp_kv",
        ),
        ({"cu_seqlens_q": int32(0, 5)}, ValueError, "cu_seqlens_q"),
        ({"cu_seqlens_ori_kv": int32(0), "layout_kv": "PA_BBND"}, ValueError, "cu_seqlens_ori_kv"),
        ({"cu_seqlens_cmp_kv": int32(0)}, ValueError, "cu_seqlens_cmp_kv"),
        # Contradictory numbers of batches.
        (
            TND | {"cu_seqlens_q": int32(0, 5), "seqused_q": int32(1, 1)},
            ValueError,
            "cu_seqlens_q, seqused_q",
        ),
        ({"seqused_q": int32(1, 1), "batch_size": 3}, ValueError, "batch_size, seqused_q"),
        (TND | {"cu_seqlens_q": int32(0), "batch_size": 3}, ValueError, "batch_size, cu_seqlens_q"),
        ({"seqused_q": int32(1, 1), "seqused_ori_kv": int32(1)}, ValueError, "seqused_ori_kv"),
        ({"batch_size": 2, "seqused_cmp_kv": int32(1, 1, 1)}, ValueError, "seqused_cmp_kv"),
        ({"seqused_ori_kv": int32(1)}, ValueError, "seqused_ori_kv"),
        (TND | {"batch_size": 2, "cu_seqlens_ori_kv": int32(0, 1)}, ValueError, "cu_seqlens_ori_kv"),
        ({"batch_size": 2, "cmp_residual_kv": int32(0)}, ValueError, "cmp_residual_kv"),
        # Contradictory lengths.
        ({"seqused_q": int32(1, -1)}, ValueError, "seqused_q"),
        ({"seqused_q": np.ones((2, 1), np.int32)}, ValueError, "seqused_q"),
        ({"seqused_q": np.ones(2)}, TypeError, "seqused_q"),
        ({"seqused_q": "11"}, TypeError, "seqused_q"),
        (TND | {"cu_seqlens_q": int32(0, 2), "seqused_q": int32(3)}, ValueError, "seqused_q"),
        ({"seqused_q": int32(3), "max_seqlen_q": 2}, ValueError, "max_seqlen_q"),
        ({"batch_size": 2, "max_seqlen_q": 2**30}, ValueError, "max_seqlen_q"),
        ({"seqused_q": int32(2**30, 2**30)}, ValueError, "seqused_q"),
        # What compression left over.
        ({"batch_size": 2, "cmp_mask_mode": 3, "cmp_ratio": 4}, ValueError, "cmp_residual_kv"),
        ({"batch_size": 2, "cmp_ratio": 4, "cmp_residual_kv": int32(0, 4)}, ValueError, "cmp_residual_kv"),
        ({"batch_size": 2, "cmp_ratio": 4, "cmp_residual_kv": int32(-1, 0)}, ValueError, "cmp_residual_kv"),
        ({"batch_size": 1, "cmp_mask_mode": 3, "cmp_residual_kv": int32(1)}, ValueError, "cmp_residual_kv"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=rf"^{name}\b"):
        quant_sparse_flash_mla_metadata(**{"num_heads_q": 64, "num_cores": 2} | arguments)


def test_residual_is_not_asked_for_without_a_compressed_mask() -> None:
    both = {"batch_size": 1, "max_seqlen_q": 1, "max_seqlen_cmp_kv": 3, "cmp_mask_mode": 3}
    assert keys(**both, cmp_ratio=1) == ([0], [3])
    assert keys(**both | {"cmp_mask_mode": 0}, cmp_ratio=4) == ([0], [3])
    assert keys(**both, cmp_ratio=4, has_cmp_kv=False) == ([0], [0])


def test_out_is_left_alone_by_a_refused_call() -> None:
    out = np.full(1024, 7, np.int32)
    with pytest.raises(ValueError, match="num_cores"):
        metadata(500, batch_size=1, out=out)
    assert (out == 7).all()


BASE = {
    "seqused_q": int32(2, 1),
    "seqused_ori_kv": int32(900, 50),
    "seqused_cmp_kv": int32(100, 7),
    "cmp_residual_kv": int32(1, 2),
    "cmp_ratio": 4,
    "max_seqlen_q": 2,
}


@pytest.mark.parametrize(
    "changed",
    [
        {"seqused_q": int32(1, 2)},
        {"seqused_ori_kv": int32(900, 51)},
        {"seqused_cmp_kv": int32(100, 8)},
        {"cmp_residual_kv": int32(1, 3)},
        {"max_seqlen_q": 3},
        {"layout_q": "TND"},
        {"layout_kv": "PA_BBND"},
        {"cmp_ratio": 5},
        {"ori_topk": 1000},
        {"cmp_topk": 1000},
        {"ori_mask_mode": 3},
        {"ori_win_left": 3},
        {"ori_win_right": 3},
        {"cmp_mask_mode": 3},
        {"has_ori_kv": False},
        {"has_cmp_kv": False},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_fingerprint_tells_calls_apart(changed: dict[str, Any]) -> None:
    assert mla_fingerprint(*resolve(BASE | changed)) != mla_fingerprint(*resolve(BASE))


def test_fingerprint_holds_the_heads_and_not_the_cores() -> None:
    attributes, lengths = resolve(BASE)
    more_heads = MlaAttributes(num_heads_q=128, cmp_ratio=4)
    assert mla_fingerprint(more_heads, lengths) != mla_fingerprint(attributes, lengths)
    prints = {plan_mla(attributes, lengths, num_cores).fingerprint for num_cores in (1, 2, 132)}
    assert prints == {mla_fingerprint(attributes, lengths)}


def test_fingerprint_is_that_of_the_lengths_however_they_are_said() -> None:
    ways = [
        {"batch_size": 2, "max_seqlen_q": 3, "max_seqlen_ori_kv": 5},
        {"seqused_q": int32(3, 3), "seqused_ori_kv": int32(5, 5)},
        {"seqused_q": [3, 3], "seqused_ori_kv": np.array([5, 5]), "max_seqlen_q": 3},
    ]
    assert len({mla_fingerprint(*resolve(way)) for way in ways}) == 1


def test_num_cores_defaults_to_the_workers_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def cores() -> int:
        words = quant_sparse_flash_mla_metadata(64, batch_size=1, max_seqlen_q=1)
        return Partition.decode(words).num_cores

    monkeypatch.delenv("QSMLA_NUM_WORKERS", raising=False)
    assert cores() == worker_count()
    monkeypatch.setenv("QSMLA_NUM_WORKERS", "5")
    assert cores() == 5


@pytest.mark.parametrize("num_cores", [1, 2, 8, 132])
def test_load_is_the_optimum_for_a_real_batch(num_cores: int) -> None:
    kv = np.exp(np.random.default_rng(0).uniform(0, np.log(131072), 64)).astype(np.int32)
    partition = Partition.decode(metadata(num_cores, seqused_q=np.ones(64, np.int32), seqused_ori_kv=kv))
    blocks = -(-kv // 256)
    # Rows cost nothing beside their blocks, so the best largest load is an even share, rounded up.
    assert partition.row_overhead == 0
    assert partition.total_load == int(blocks.sum())
    assert partition.largest_load == -(-partition.total_load // num_cores)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_numpy_integers_are_looked_up_at_once(kind: type) -> None:
    # A range searches one by one for what is not exactly an int: 2^31 steps, for an argument that is refused.
    for value in (kind(-2) if kind is not np.uint8 else np.float64(2.0), kind(5)):
        with pytest.raises((ValueError, TypeError), match=r"^max_seqlen_ori_kv"):
            metadata(3, seqused_q=[1, 2], seqused_ori_kv=[300, 1000], max_seqlen_ori_kv=value)


def test_plan_names_what_it_is_given() -> None:
    wrong = ((True, TypeError), (2.0, TypeError), ("2", TypeError), (0, ValueError), (133, ValueError))
    for cores, error in wrong:
        with pytest.raises(error, match=r"^num_cores is "):
            plan(**legal_arguments(), num_cores=cores)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rows'"):
        plan(rows=1)
