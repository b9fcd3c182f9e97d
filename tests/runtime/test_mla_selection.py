from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mla_calls import Arguments, metadata_arguments, mla_arguments, plain_tokens, rows_of

from qsmla.runtime import row_keys
from qsmla.runtime.metadata import mla_fingerprint, quant_sparse_flash_mla_metadata
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_reference import attended_tokens
from qsmla.runtime.mla_selection import select
from qsmla.runtime.partition import Partition

KEY_BLOCK = 256


@st.composite
def calls(draw: st.DrawFn, most: int = 700) -> Arguments:
    """Legal calls of every layout, mask, window, ratio and residual."""
    batch = draw(st.integers(1, 3))
    ratio = draw(st.sampled_from([1, 2, 4, 128]))
    present = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    counts: dict[str, Any] = {
        f"{name}_counts": tuple(draw(st.lists(st.integers(0, longest), min_size=batch, max_size=batch)))
        if there
        else None
        for name, longest, there in (("query", 6, True), ("ori", most, present[0]), ("cmp", most, present[1]))
    }
    residual = draw(st.lists(st.integers(0, ratio - 1), min_size=batch, max_size=batch))
    return mla_arguments(
        draw(st.sampled_from(["BSND", "TND"])),
        draw(st.sampled_from(["BSND", "TND", "PA_BBND"])),
        **counts,
        heads=1,
        ori_topk=draw(st.sampled_from([0, 0, 1, 300])),
        cmp_topk=draw(st.sampled_from([0, 0, 1, 300])),
        padding=draw(st.integers(0, 2)),
        seed=draw(st.integers(0, 99)),
        ori_mask_mode=draw(st.sampled_from([0, 3, 4])),
        cmp_mask_mode=draw(st.sampled_from([0, 3])),
        ori_win_left=draw(st.sampled_from([-1, 0, 1, 127, 600])),
        ori_win_right=draw(st.sampled_from([-1, 0, 3, 400])),
        cmp_ratio=ratio,
        cmp_residual_kv=np.array(residual, np.int32),
    )


def without_lists(arguments: Arguments) -> Arguments:
    return {name: value for name, value in arguments.items() if not name.endswith("_sparse_indices")}


@settings(max_examples=150)
@given(arguments=calls())
def test_the_planner_counts_the_keys_that_the_reference_attends_to(arguments: Arguments) -> None:
    """Without a list exactly those; with one, as many as the mask leaves, and no more than the list holds."""
    dense = check_mla_call(**without_lists(arguments))
    call = check_mla_call(**arguments)
    planned = row_keys.row_keys(call.attributes, call.lengths)
    attended: dict[str, list[int]] = {"ori": [], "cmp": []}
    for _, batch, row in rows_of(arguments):
        for part in attended:
            seen = attended_tokens(dense, batch, row).get(part, np.zeros(0))
            attended[part].append(len(seen))
    for part, counts in zip(("ori", "cmp"), planned, strict=True):
        topk = getattr(call.attributes, f"{part}_topk")
        expected = [min(count, topk) if topk else count for count in attended[part]]
        assert counts.tolist() == expected


@settings(max_examples=100)
@given(arguments=calls())
def test_rows_see_what_the_specification_says(arguments: Arguments) -> None:
    """The ranges and lists that kernels read give the tokens of the plain loops, in their order."""
    call = check_mla_call(**arguments)
    selection = select(call)
    rows = rows_of(arguments)
    assert len(selection.order.output_row) == len(rows)
    keyless = []
    for number, (place, batch, row) in enumerate(rows):
        flat = int(np.ravel_multi_index(place, arguments["q"].shape[:-2]))
        assert (selection.order.output_row[number], selection.order.batch[number]) == (flat, batch)
        numbers = selection.ranges.array[flat].tolist()
        blocks, keys = [], 0
        for part, (start, first, end) in {"ori": numbers[:3], "cmp": numbers[3:6]}.items():
            expected = plain_tokens(arguments, part, place, batch, row)
            if part in selection.indices:
                listed = selection.indices[part][flat].tolist()
                assert [token for token in listed[: len(expected)] if first <= token < end] == expected
                assert set(listed[len(expected) :]) <= {-1} or listed == expected
                blocks.append(-(-max(len(expected), min(end - first, len(listed))) // KEY_BLOCK))
            else:
                assert list(range(first, end)) == expected
                blocks.append(-(-len(expected) // KEY_BLOCK))
            if part in call.parts:
                assert start == call.parts[part].starts[batch]
            keys += len(expected)
        assert (numbers[6], selection.order.blocks[number]) == (blocks[0], sum(blocks))
        if keys == 0:
            keyless.append(flat)
    assert selection.keyless.tolist() == keyless
    nowhere = np.setdiff1d(np.arange(len(call.query)), selection.order.output_row)
    assert not selection.ranges.array[nowhere].any()


@settings(max_examples=100)
@given(arguments=calls(), num_cores=st.integers(1, 9))
def test_metadata_of_the_same_lengths_is_for_the_call(arguments: Arguments, num_cores: int) -> None:
    """What the planner makes of the lengths alone carries the call's fingerprint and its blocks."""
    words = quant_sparse_flash_mla_metadata(**metadata_arguments(arguments), num_cores=num_cores)
    partition = Partition.decode(words)
    call = check_mla_call(**arguments)
    selection = select(call)
    assert partition.fingerprint == mla_fingerprint(call.attributes, call.lengths)
    assert partition.rows == len(selection.order.output_row)
    work = int(selection.planned_blocks.sum())
    pieces = partition.pieces(selection.planned_blocks, call.lengths.query)
    assert int(pieces.blocks.sum()) == work
    assert {combine.row for combine in partition.combines} <= set(selection.order.output_row.tolist())


def test_ids_that_occur_several_times_make_more_blocks_than_are_planned() -> None:
    arguments = mla_arguments(ori_counts=None, cmp_counts=(3, 3), cmp_topk=600)
    arguments["cmp_sparse_indices"][...] = 2
    selection = select(check_mla_call(**arguments))
    assert selection.planned_blocks.tolist() == [1] * 5
    assert selection.order.blocks.tolist() == [3] * 5


@pytest.mark.parametrize("ids", [[0, 1, 2, -1], [3, 0, 1, -1]])
def test_a_list_whose_valid_ids_are_in_front_is_taken_as_it_is(ids: list[int]) -> None:
    arguments = mla_arguments(query_counts=(2, 2), ori_counts=None, cmp_counts=(4, 4), cmp_topk=4)
    arguments["cmp_sparse_indices"][...] = ids
    call = check_mla_call(**arguments)
    assert select(call).indices["cmp"] is call.parts["cmp"].indices
