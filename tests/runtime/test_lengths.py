"""Sequence lengths, prefix sums and the block table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import LAYOUTS, legal_arguments

from qsmla.runtime.checks import check_call

Q, KV, TABLE = "actual_seq_lengths_query", "actual_seq_lengths_kv", "block_table"
PLAIN, RAGGED, PAGED, RAGGED_PAGED = LAYOUTS
INT32_MAX = 2**31 - 1
# Two requests a call: 3 query tokens and 40 cached ones each; a paged cache has 8 pages of 16, 3 a request.


@pytest.mark.parametrize(
    ("layouts", "name", "value", "text"),
    [
        (RAGGED, Q, None, f"^{Q} is None; allowed: inclusive prefix sums"),
        (RAGGED, KV, None, f"^{KV} is None; allowed: int32 .*required by layout_kv TND"),
        (PAGED, KV, None, f"^{KV} is None; allowed: int32 .*required by layout_kv PA_BSND"),
        (PLAIN, Q, [3, 4], rf"^{Q}\[1\] is 4; allowed: 0\.\.3 \(query's S1\)"),
        (PLAIN, Q, [-1, 3], rf"^{Q}\[0\] is -1; allowed: 0\.\.3"),
        (PLAIN, KV, [40, 41], rf"^{KV}\[1\] is 41; allowed: 0\.\.40 \(key's S2\)"),
        (PLAIN, KV, [-1, 3], rf"^{KV}\[0\] is -1; allowed: 0\.\.40"),
        (PAGED, Q, [4, 3], rf"^{Q}\[0\] is 4; allowed: 0\.\.3"),
        (PAGED, KV, [40, 49], rf"^{KV}\[1\] is 49; allowed: 0\.\.48 \(block_table's width"),
        (PAGED, KV, [40, -1], rf"^{KV}\[1\] is -1; allowed: 0\.\."),
        (PAGED, KV, [INT32_MAX, 0], rf"^{KV}\[0\] is {INT32_MAX}; allowed: 0\.\.48"),
        (RAGGED, Q, [3, 7], rf"^{Q}\[1\] is 7; allowed: at most 6 \(query's T\)"),
        (RAGGED, Q, [4, 3], rf"^{Q}\[1\] is 3; allowed: non-decreasing prefix sums, here 4 or more"),
        (RAGGED, Q, [-1, 6], rf"^{Q}\[0\] is -1; allowed: prefix sums of 0 or more"),
        (RAGGED, KV, [40, 81], rf"^{KV}\[1\] is 81; allowed: at most 80 \(key's T2\)"),
        (RAGGED, KV, [40, 39], rf"^{KV}\[1\] is 39; allowed: non-decreasing"),
        (RAGGED, KV, [-2, -1], rf"^{KV}\[0\] is -2; allowed: prefix sums of 0 or more"),
        (RAGGED_PAGED, Q, [3, 7], rf"^{Q}\[1\] is 7; allowed: at most 6"),
        (RAGGED_PAGED, KV, [49, 40], rf"^{KV}\[0\] is 49; allowed: 0\.\.48"),
        *((PLAIN, name, [3], rf"^{name} has shape \(1,\); allowed: \[2\]") for name in (Q, KV)),
        *((PLAIN, name, [3, 3, 3], rf"^{name} has shape \(3,\); allowed: \[2\]") for name in (Q, KV)),
        (PLAIN, Q, np.array([[3, 3]], np.int32), rf"^{Q} has shape \(1, 2\); allowed: \[2\]"),
        (RAGGED, Q, np.array([[3, 6]], np.int32), rf"^{Q} has shape \(1, 2\); allowed: \[B\]"),
        (RAGGED, KV, [40, 60, 80], rf"^{KV} has shape \(3,\); allowed: \[2\]"),
        (RAGGED_PAGED, KV, [40], rf"^{KV} has shape \(1,\); allowed: \[2\]"),
        *(
            (PLAIN, name, np.array([3, 2**31]), f"^{name} .*2147483648; allowed: values of int32")
            for name in (Q, KV)
        ),
        *(
            (PLAIN, name, np.array([3, 2**32]), f"^{name} .*4294967296; allowed: values of int32")
            for name in (Q, KV)
        ),
        *((PLAIN, name, [3, -(2**31) - 1], f"^{name} .*-2147483649; allowed") for name in (Q, KV)),
        *((PLAIN, name, [2**80, 3], f"^{name} .*; allowed: values of int32") for name in (Q, KV)),
        (PLAIN, TABLE, np.zeros((2, 3), np.int32), f"^{TABLE} is .*; allowed: None with layout_kv BSND"),
        (RAGGED, TABLE, np.zeros((2, 3), np.int32), f"^{TABLE} is .*; allowed: None with layout_kv TND"),
        (PAGED, TABLE, None, f"^{TABLE} is None; allowed: int32 .*required by layout_kv PA_BSND"),
        (PAGED, TABLE, np.zeros((1, 3), np.int32), rf"^{TABLE} has shape \(1, 3\); allowed: \[2, width"),
        (PAGED, TABLE, np.zeros((3, 3), np.int32), rf"^{TABLE} has shape \(3, 3\); allowed: \[2, width"),
        (PAGED, TABLE, np.zeros(6, np.int32), rf"^{TABLE} has shape \(6,\); allowed"),
        (
            PAGED,
            TABLE,
            np.zeros((2, 2), np.int32),
            rf"^{KV}\[0\] is 40; allowed: 0\.\.32 \(block_table's width",
        ),
        (PAGED, TABLE, np.zeros((2, 0), np.int32), rf"^{KV}\[0\] is 40; allowed: 0\.\.0"),
        (
            PAGED,
            TABLE,
            np.array([[0, 1, 2], [3, 4, 8]], np.int32),
            rf"^{TABLE}\[1, 2\] is 8; allowed: 0\.\.7",
        ),
        (
            PAGED,
            TABLE,
            np.array([[0, -1, 2], [3, 4, 5]], np.int32),
            rf"^{TABLE}\[0, 1\] is -1; allowed: 0\.\.7",
        ),
        (
            PAGED,
            TABLE,
            np.array([[0, 1, 2], [2**32, 4, 5]]),
            rf"^{TABLE}\[1, 0\] is 4294967296; allowed: 0\.\.7",
        ),
    ],
    ids=str,
)
def test_a_value_that_is_not_allowed(layouts: tuple[str, str], name: str, value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_call(**legal_arguments(*layouts) | {name: value})


@pytest.mark.parametrize("name", [Q, KV])
@pytest.mark.parametrize(
    "value",
    [
        3,
        "33",
        {3: 3},
        [3.0, 3.0],
        [3, True],
        [3, None],
        ["3", "3"],
        [[3], [3]],
        np.int32(3),
        *(
            np.array([3, 3], dtype)
            for dtype in (np.float32, np.int16, np.uint32, np.uint64, ">i4", ">i8", object)
        ),
        np.array([True, True]),
        np.ma.array([3, 3], dtype=np.int32),
    ],
    ids=repr,
)
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_lengths_of_the_wrong_kind(layouts: tuple[str, str], name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^(an element of )?{name} is .*; allowed: "):
        check_call(**legal_arguments(*layouts) | {name: value})


@pytest.mark.parametrize(
    "value",
    [
        [[0, 1, 2], [3, 4, 5]],
        7,
        "table",
        *(np.zeros((2, 3), dtype) for dtype in (np.float32, np.int16, np.uint32, ">i4", bool)),
        np.ma.zeros((2, 3), np.int32),
    ],
    ids=repr,
)
def test_a_table_of_the_wrong_kind(value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{TABLE} is .*; allowed: "):
        check_call(**legal_arguments(*PAGED) | {TABLE: value})


@pytest.mark.parametrize(
    ("layouts", "name", "value"),
    [
        (PLAIN, Q, [0, 3]),
        (PLAIN, KV, [0, 40]),
        (PAGED, KV, [0, 48]),
        (RAGGED, Q, [0, 0]),
        (RAGGED, Q, [6, 6]),
        (RAGGED, Q, [0, 5]),
        (RAGGED, KV, [0, 80]),
        (RAGGED, KV, [80, 80]),
        (RAGGED_PAGED, KV, [48, 0]),
    ],
)
@pytest.mark.parametrize("kind", [list, tuple, np.int32, np.int64], ids=lambda kind: kind.__name__)
def test_boundaries_and_kinds_of_lengths(
    layouts: tuple[str, str], name: str, value: list[int], kind: Any
) -> None:
    given = kind(value) if kind in (list, tuple) else np.array(value, kind)
    call = check_call(**legal_arguments(*layouts) | {name: given})
    lengths = call.query_lengths if name == Q else call.kv_lengths
    assert lengths.dtype == np.int32
    assert lengths.tolist() == value


def test_numpy_integers_in_a_list() -> None:
    call = check_call(**legal_arguments() | {Q: [np.int64(1), np.int32(2)]})
    assert call.query_lengths.tolist() == [1, 2]


@pytest.mark.parametrize("layouts", [PLAIN, PAGED], ids="-".join)
def test_lengths_left_out_are_filled_in(layouts: tuple[str, str]) -> None:
    arguments = legal_arguments(*layouts) | {Q: None}
    if layouts == PLAIN:
        arguments[KV] = None
    call = check_call(**arguments)
    assert (call.query_lengths.tolist(), call.kv_lengths.tolist()) == ([3, 3], [40, 40])
    assert call.query_lengths.dtype == call.kv_lengths.dtype == np.int32


def test_an_int32_array_is_used_as_it_is() -> None:
    arguments = legal_arguments(*RAGGED_PAGED)
    call = check_call(**arguments)
    assert np.shares_memory(call.query_lengths, arguments[Q])
    assert call.block_table is not None
    assert np.shares_memory(call.block_table, arguments[TABLE])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("junk", [-1, 8, 2_147_480_000, -(2**31)])
def test_table_entries_behind_the_last_used_page_may_be_anything(junk: int, dtype: Any) -> None:
    table = np.array([[7, 0, junk, junk], [junk, junk, junk, junk]], dtype)
    call = check_call(**legal_arguments(*PAGED) | {TABLE: table, KV: [32, 0]})
    assert call.block_table is not None
    assert call.block_table.dtype == np.int32
    assert call.block_table[0, :2].tolist() == [7, 0]
    with pytest.raises(ValueError, match=rf"^{TABLE}\[0, 2\] is {junk}; allowed: 0\.\.7"):
        check_call(**legal_arguments(*PAGED) | {TABLE: table, KV: [33, 0]})


def test_an_int64_table_may_hold_anything_behind_the_last_used_page() -> None:
    table = np.array([[7, 0, 2**40], [-(2**63), 2**63 - 1, 2**32]])
    call = check_call(**legal_arguments(*PAGED) | {TABLE: table, KV: [32, 0]})
    assert call.block_table is not None
    assert call.block_table.dtype == np.int32
    assert call.block_table[0, :2].tolist() == [7, 0]


def test_strided_lengths_and_table() -> None:
    arguments = legal_arguments(*RAGGED_PAGED)
    for name in (Q, KV, TABLE):
        spread = np.repeat(arguments[name], 2, axis=-1)[..., ::2]
        assert not spread.flags.c_contiguous
        arguments[name] = spread
    call, plain = check_call(**arguments), check_call(**legal_arguments(*RAGGED_PAGED))
    np.testing.assert_array_equal(call.query_lengths, plain.query_lengths)
    np.testing.assert_array_equal(call.kv_lengths, plain.kv_lengths)
    np.testing.assert_array_equal(call.block_table, plain.block_table)


def test_many_requests_name_the_one_that_is_wrong() -> None:
    arguments = legal_arguments(query_counts=(1,) * 500, kv_counts=(4,) * 500, heads=1)
    arguments[KV][321] = 5
    with pytest.raises(ValueError, match=rf"^{KV}\[321\] is 5; allowed: 0\.\.4"):
        check_call(**arguments)
