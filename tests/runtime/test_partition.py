from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.fingerprint import check_fingerprint, fingerprint
from qsmla.runtime.partition import (
    METADATA_WORDS,
    Combine,
    CoreRange,
    Cursor,
    Partition,
    plan_rows,
)

from .plain_planner import plain_words

FINGERPRINT = 0xFEDCBA9876543210


@st.composite
def work(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `plan_rows`."""
    rows_per_batch = draw(st.lists(st.integers(0, 3), max_size=7))
    rows = sum(rows_per_batch)
    blocks = draw(st.lists(st.one_of(st.just(0), st.integers(0, 30)), min_size=rows, max_size=rows))
    # Rows of the output may lie between the batches.
    gaps = draw(st.lists(st.integers(0, 5), min_size=len(rows_per_batch), max_size=len(rows_per_batch)))
    first_rows = [
        sum(gaps[: batch + 1]) + sum(rows_per_batch[:batch]) for batch in range(len(rows_per_batch))
    ]
    return {
        "blocks": np.array(blocks, np.int64),
        "rows_per_batch": np.array(rows_per_batch, np.int32),
        "num_cores": draw(st.one_of(st.integers(1, 9), st.sampled_from([64, 132]))),
        "fingerprint": draw(st.integers(0, 2**64 - 1)),
        "first_rows": np.array(first_rows, np.int32),
        "row_overhead": draw(st.sampled_from([0, 1, 3])),
    }


def places_of(arguments: dict[str, Any]) -> list[tuple[int, int]]:
    """(batch, row in batch) of every row."""
    return [(batch, row) for batch, rows in enumerate(arguments["rows_per_batch"]) for row in range(rows)]


def owners_of(arguments: dict[str, Any], partition: Partition) -> dict[tuple[int, int, int], list[int]]:
    """The cores of each (batch, row, block); of block 0 where a row has no keys."""
    owners: dict[tuple[int, int, int], list[int]] = {}
    for (batch, row), count in zip(places_of(arguments), arguments["blocks"], strict=True):
        for block in range(max(count, 1)):
            place = (batch, row, block)
            owners[place] = [
                core for core, (start, end) in enumerate(partition.ranges) if start[:3] <= place < end[:3]
            ]
    return owners


def example() -> Partition:
    """Batches of 2, 0 and 2 rows on 3 cores; the last row of 10 blocks lies with cores 0, 1 and 2."""
    return plan_rows(
        np.array([2, 0, 1, 10]),
        np.array([2, 0, 2]),
        3,
        FINGERPRINT,
        first_rows=np.array([0, 4, 8]),
        row_overhead=1,
    )


@given(work())
def test_everything_belongs_to_exactly_one_core(arguments: dict[str, Any]) -> None:
    owners = owners_of(arguments, plan_rows(**arguments))
    assert all(len(cores) == 1 for cores in owners.values())
    in_order = [cores[0] for _, cores in sorted(owners.items())]
    assert in_order == sorted(in_order)


@given(work())
def test_words_equal_the_plain_loops(arguments: dict[str, Any]) -> None:
    words = plan_rows(**arguments).encode()
    assert words.dtype == np.int32
    assert words.view(np.uint32).tolist() == plain_words(
        arguments["blocks"].tolist(),
        arguments["rows_per_batch"].tolist(),
        arguments["first_rows"].tolist(),
        arguments["num_cores"],
        arguments["fingerprint"],
        KEY_BLOCK,
        arguments["row_overhead"],
    )


@given(work())
def test_decode_is_the_inverse_of_encode(arguments: dict[str, Any]) -> None:
    partition = plan_rows(**arguments)
    assert Partition.decode(partition.encode()) == partition
    assert plan_rows(**arguments).encode().tobytes() == partition.encode().tobytes()


@given(work())
def test_slots_number_the_blocks_of_split_rows_in_order(arguments: dict[str, Any]) -> None:
    partition = plan_rows(**arguments)
    owners = owners_of(arguments, partition)
    cores_of_row: dict[tuple[int, int], set[int]] = {}
    for (batch, row, _), cores in owners.items():
        cores_of_row.setdefault((batch, row), set()).update(cores)
    split = [place for place in places_of(arguments) if len(cores_of_row[place]) > 1]
    stored = [place for place in sorted(owners) if place[:2] in split]
    assert partition.slots == len(stored)
    # A core that counts on from its cursor's slot finds the slot of each block that it stores.
    for core, (start, _) in enumerate(partition.ranges):
        mine = [place for place in stored if owners[place] == [core]]
        assert [stored.index(place) for place in mine] == list(range(start.slot, start.slot + len(mine)))
    counts = Counter(place[:2] for place in stored)
    slots = itertools.accumulate((counts[place] for place in split), initial=0)
    rows = [int(arguments["first_rows"][batch]) + row for batch, row in split]
    assert partition.combines == tuple(
        Combine(row, first, counts[place]) for row, first, place in zip(rows, slots, split, strict=False)
    )
    assert partition.split_rows == tuple(rows)


@given(work())
def test_pieces_and_loads_follow_the_owners(arguments: dict[str, Any]) -> None:
    blocks, rows_per_batch = arguments["blocks"], arguments["rows_per_batch"]
    partition = plan_rows(**arguments)
    pieces = partition.pieces(blocks, rows_per_batch)
    places = places_of(arguments)
    expected: Counter[tuple[int, int]] = Counter()
    for (batch, row, block), (core,) in owners_of(arguments, partition).items():
        flat = places.index((batch, row))
        expected[core, flat] += block < blocks[flat]
    found = zip(pieces.core.tolist(), pieces.row.tolist(), strict=True)
    assert dict(zip(found, pieces.blocks.tolist(), strict=True)) == dict(expected)
    assert len(pieces.core) == len(expected)
    rows = Counter(row for _, row in expected)
    assert pieces.split.tolist() == [rows[row] > 1 for row in pieces.row.tolist()]
    begun: Counter[int] = Counter()
    for row, first, count in zip(pieces.row, pieces.first_block, pieces.blocks, strict=True):
        assert first == begun[row]
        begun[row] += count
    loads: Counter[int] = Counter()
    for (core, _), count in expected.items():
        loads[core] += count + partition.row_overhead * (count > 0)
    assert pieces.loads.tolist() == [loads[core] for core in range(partition.num_cores)]
    assert pieces.loads.sum() == partition.total_load
    assert pieces.loads.max() == partition.largest_load


def test_words_by_hand() -> None:
    words = example().encode().view(np.uint32).tolist()
    assert words[:16] == [0x314D5351, 1, 3, 3, 4, 256, 10, 1, 17, 0, 6, 0, 0x76543210, 0xFEDCBA98, 1, 0]
    cursors = [(0, 0, 0, 0), (2, 1, 0, 0), (2, 1, 5, 5), (3, 0, 0, 10)]
    assert words[16:32] == [word for cursor in cursors for word in cursor]
    assert words[32:35] == [9, 0, 10]
    assert words[35:] == [0] * (1024 - 35)


def test_partition_tells_what_the_cores_do() -> None:
    partition = example()
    assert partition.ranges[1] == CoreRange(Cursor(2, 1, 0, 0), Cursor(2, 1, 5, 5))
    assert [core.empty for core in partition.ranges] == [False, False, False]
    assert partition.split_rows == (9,)
    assert (partition.total_load, partition.largest_load) == (17, 6)
    assert partition.balance == pytest.approx(6 / (17 / 3))
    text = str(partition)
    assert "4 rows in 3 batches over 3 cores" in text
    assert "core 1: (2, 1, 0) up to (2, 1, 5), first slot 0" in text
    assert "split row 9: slots 0..9" in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        partition.rows = 5  # type: ignore[misc]
    assert hash(partition) == hash(example())


@pytest.mark.parametrize("rows_per_batch", [[], [0], [0, 0, 0]])
def test_no_rows(rows_per_batch: list[int]) -> None:
    partition = plan_rows(np.zeros(0, np.int64), np.array(rows_per_batch, np.int32), 4, 0)
    end = Cursor(len(rows_per_batch), 0, 0, 0)
    assert partition.cursors == (end,) * 5
    assert all(core.empty for core in partition.ranges)
    assert partition.balance == 1.0


def test_all_rows_without_keys_go_to_core_0() -> None:
    partition = plan_rows(np.zeros(6, np.int64), np.array([3, 3]), 4, 0)
    assert partition.cursors == (Cursor(0, 0, 0, 0),) + (Cursor(2, 0, 0, 0),) * 4
    assert (partition.total_load, partition.largest_load, partition.balance) == (0, 0, 1.0)


def test_batches_without_rows_are_passed_over() -> None:
    partition = plan_rows(np.array([1, 1]), np.array([0, 0, 1, 0, 1, 0]), 2, 0)
    assert [cursor[:3] for cursor in partition.cursors] == [(2, 0, 0), (4, 0, 0), (6, 0, 0)]


def test_slots_and_loads_over_31_bits() -> None:
    # 132 cores over 131 rows: every row is split, and the slots take more than 31 of their 32 bits.
    blocks = np.full(131, 2**24 + 1)
    partition = plan_rows(blocks, np.ones(131, np.int32), 132, 0)
    assert partition.slots == 131 * (2**24 + 1) > 2**31
    assert partition.total_load > 2**31
    assert Partition.decode(partition.encode()) == partition
    assert partition.pieces(blocks, np.ones(131, np.int32)).loads.max() == partition.largest_load


def test_encode_writes_in_place() -> None:
    wide = np.full((METADATA_WORDS, 2), -1, np.int32)
    out = wide[:, 0]
    assert example().encode(out) is out
    np.testing.assert_array_equal(out, example().encode())
    assert (wide[:, 1] == -1).all()
    assert Partition.decode(out) == example()


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros(1023, np.int32), ValueError),
        (np.zeros((1, 1024), np.int32), ValueError),
        (np.zeros(1024, np.int64), TypeError),
        ([0] * 1024, TypeError),
        (np.broadcast_to(np.int32(0), 1024), ValueError),
    ],
)
def test_out_that_cannot_be_written_is_refused(out: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^out "):
        example().encode(out)


def spoilt(word: int, value: int) -> NDArray[np.int32]:
    metadata = example().encode()
    metadata[word] = value
    return metadata


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (None, TypeError),
        (example().encode().tolist(), TypeError),
        (example().encode().astype(np.int64), TypeError),
        (example().encode().view(np.float32), TypeError),
        (example().encode()[:1000], ValueError),
        (example().encode().reshape(32, 32), ValueError),
        (np.zeros(1024, np.int32), ValueError),
        (spoilt(0, 0), ValueError),
        (spoilt(1, 2), ValueError),
        (spoilt(2, 0), ValueError),
        (spoilt(2, 133), ValueError),
        (spoilt(2, -1), ValueError),
        (spoilt(3, 4), ValueError),
        (spoilt(4, -1), ValueError),
        (spoilt(6, 11), ValueError),
        (spoilt(7, 3), ValueError),
        (spoilt(8, 19), ValueError),
        (spoilt(9, 1), ValueError),
        (spoilt(10, 5), ValueError),
        (spoilt(15, 1), ValueError),
        (spoilt(18, 1), ValueError),
        (spoilt(20, 3), ValueError),
        (spoilt(33, 1), ValueError),
        (spoilt(1023, 1), ValueError),
        # Of another call, and for another kernel.
        (spoilt(12, 1), ValueError),
        (spoilt(13, 1), ValueError),
        (spoilt(5, 128), ValueError),
    ],
)
def test_metadata_that_is_not_this_calls_is_refused(metadata: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^metadata "):
        check_fingerprint(metadata, FINGERPRINT)


def test_metadata_of_this_call_is_decoded() -> None:
    assert check_fingerprint(example().encode(), FINGERPRINT) == example()
    other_block = plan_rows(np.array([3]), np.array([1]), 2, 5, key_block=64)
    assert check_fingerprint(other_block.encode(), 5, key_block=64) == other_block


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"num_cores": 0}, "num_cores is 0"),
        ({"num_cores": 133}, "num_cores is 133"),
        ({"blocks": np.array([1, 2])}, "blocks has shape"),
        ({"blocks": np.array([[1], [2], [3]])}, "blocks has shape"),
        ({"blocks": np.array([1, -2, 3])}, "blocks holds -2"),
        ({"blocks": np.array([1, 2**31, 3])}, "blocks holds 1..2147483648"),
        ({"rows_per_batch": np.array([4, -1])}, "rows_per_batch holds -1"),
        # More slots than a word can count.
        ({"blocks": np.full(3, 2**31 - 1), "num_cores": 4}, "blocks: 6442450941"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changed: dict[str, Any], name: str) -> None:
    arguments = {"blocks": np.array([1, 2, 3]), "rows_per_batch": np.array([1, 2]), "num_cores": 2}
    with pytest.raises(ValueError, match=f"^{name}"):
        plan_rows(**arguments | {"fingerprint": 0} | changed)


def test_pieces_of_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="blocks has 3 rows"):
        example().pieces(np.array([1, 2, 3]), np.array([1, 1, 1]))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"lengths": np.array([1, 2, 3], ">i4")},
        {"lengths": np.array([1, 0, 2, 0, 3, 0], np.int32)[::2]},
        {"ratio": np.int64(4)},
    ],
)
def test_fingerprint_hashes_the_same_bytes_everywhere(changed: dict[str, Any]) -> None:
    fields = {"ratio": 4, "lengths": np.array([1, 2, 3], np.int32), "layout": "TND", "last": None, "on": True}
    text = (
        b"operator\0last\0None\0layout\0'TND'\0lengths\0<i4(3,)\0\x01\0\0\0\x02\0\0\0\x03\0\0\0"
        b"on\0True\0ratio\x004\0"
    )
    expected = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    assert fingerprint("operator", fields | changed) == expected


@pytest.mark.parametrize(
    ("operator", "fields"),
    [
        ("other", {"a": 1, "b": np.array([1, 2], np.int32)}),
        ("operator", {"a": 2, "b": np.array([1, 2], np.int32)}),
        ("operator", {"a": True, "b": np.array([1, 2], np.int32)}),
        ("operator", {"a": "1", "b": np.array([1, 2], np.int32)}),
        ("operator", {"a": None, "b": np.array([1, 2], np.int32)}),
        ("operator", {"b": np.array([1, 2], np.int32)}),
        ("operator", {"a": 1, "b": np.array([2, 1], np.int32)}),
        ("operator", {"a": 1, "b": np.array([[1, 2]], np.int32)}),
        ("operator", {"a": 1, "b": np.array([1], np.int32)}),
        ("operator", {"a": 1, "b": np.array([1 + 2 * 2**32], np.int64)}),
        ("operator", {"a": 1, "c": np.array([1, 2], np.int32)}),
        ("operator", {"a": 1, "b": np.array([1, 2], np.int32), "c": None}),
    ],
)
def test_fingerprint_tells_calls_apart(operator: str, fields: dict[str, Any]) -> None:
    assert fingerprint(operator, fields) != fingerprint("operator", {"a": 1, "b": np.array([1, 2], np.int32)})
