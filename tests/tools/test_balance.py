from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from qsmla.runtime.metadata import plan_mla
from qsmla.runtime.row_keys import row_blocks
from qsmla.tools import balance


@given(st.lists(st.integers(0, 60), max_size=12), st.integers(1, 20), st.integers(0, 6))
def test_requests_are_cut_without_gap_or_overlap(blocks: list[int], parts: int, overhead: int) -> None:
    plan = balance.request_pieces(blocks, parts, overhead)
    assert len(plan) == parts
    done = [
        (request, block) for pieces in plan for request, begin, end in pieces for block in range(begin, end)
    ]
    assert done == [(request, block) for request, count in enumerate(blocks) for block in range(count)]


def test_request_pieces_by_hand() -> None:
    # 20 + 2 and 4 overheads of 2 on 3 parts: 26 / 3 is 9, and 2 for a cut.
    assert balance.request_pieces([20, 2], 3, 2) == [[(0, 0, 9)], [(0, 9, 18)], [(0, 18, 20), (1, 0, 2)]]


def test_request_balance_counts_what_the_rows_have_of_each_block() -> None:
    # The payload is (6 + 5) / 2 + 5 = 11: part 0 takes all of the longest row's 6 blocks.
    blocks = np.array([2, 4, 6])
    assert balance.request_balance(blocks, np.array([3]), 2, 1) == 2.0
    # Of 16 blocks it takes (16 + 5) / 2 = 11: 2 + 4 + 11 with 3 rows, beside 5 with one.
    blocks = np.array([2, 4, 16])
    assert balance.request_balance(blocks, np.array([3]), 2, 1) == pytest.approx(20 / 13)


@pytest.mark.parametrize("name", balance.workloads())
@pytest.mark.parametrize("cores", balance.CORES)
def test_planner_is_never_less_even_than_whole_requests(name: str, cores: int) -> None:
    attributes, lengths = balance.typed(balance.workloads()[name])
    partition = plan_mla(attributes, lengths, cores)
    blocks = row_blocks(attributes, lengths, partition.key_block)
    other = balance.request_balance(blocks, lengths.query, cores, partition.row_overhead)
    # Blocks are not cut: the best there is is an even share of them, rounded up, at every row overhead of 0.
    assert partition.largest_load == -(-int(blocks.sum()) // cores)
    assert partition.balance <= other


def test_balance_table_has_a_row_a_workload() -> None:
    page = io.StringIO()
    Console(width=160, file=page).print(balance.balance_table())
    text = page.getvalue()
    for name in balance.workloads():
        assert name in text
    assert text.count(" | ") == 1 + len(balance.workloads()) * len(balance.CORES)


def test_plain_loop_is_found_and_plans_the_same() -> None:
    plain = balance._plain_planner()
    assert plain is not None
    arguments = {
        "num_heads_q": 1,
        "seqused_q": np.ones(2, np.int32),
        "seqused_ori_kv": np.array([700, 9], np.int32),
    }
    expected = plan_mla(*balance.typed(arguments), 2)
    assert plain(arguments, 2, expected.fingerprint) == expected.encode().view(np.uint32).tolist()
