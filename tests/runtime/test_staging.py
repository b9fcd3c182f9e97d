"""Memory that calls pass on: each call sees its own values, and no memory is in two calls."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from compiled import aligned, arguments_of, check, run
from matrix.cases import find
from plain import bits

from qsmla.runtime import staging, workers
from qsmla.runtime.arrays import ALIGNMENT, aligned_empty
from qsmla.runtime.devices import KeptArray
from qsmla.runtime.staging import InPlace, Staging, in_place

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SPEC = find(layout_query="BSND", layout_kv="BSND", sparse_mode=3, sparse_block_size=1)


@pytest.fixture(autouse=True)
def empty_shelves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_free", staging._shelves())


def copied(one: Staging, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    readable = one.readable(array)
    assert isinstance(readable, KeptArray)
    assert readable.array.ctypes.data % ALIGNMENT == 0
    np.testing.assert_array_equal(readable.array, array)
    return readable.array


def unaligned(size: int, dtype: npt.DTypeLike = np.int32) -> npt.NDArray[np.generic]:
    return np.arange(size + 1).astype(dtype)[1:]


def test_a_call_gets_the_memory_of_the_last_with_its_own_values() -> None:
    first, second = Staging(), Staging()
    memory = copied(first, unaligned(40))
    first.give_back()
    assert copied(second, unaligned(40)[::-1]) is memory
    assert copied(second, unaligned(40)) is not memory
    assert copied(second, unaligned(40, np.float32)) is not memory
    assert copied(second, unaligned(20)) is not memory
    np.testing.assert_array_equal(memory, unaligned(40)[::-1])


def test_memory_comes_back_once_and_only_when_it_is_given() -> None:
    first, second, third = Staging(), Staging(), Staging()
    memory = copied(first, unaligned(7))
    assert copied(second, unaligned(7)) is not memory
    first.give_back()
    first.give_back()
    assert copied(second, unaligned(7)) is memory
    assert copied(third, unaligned(7)) is not memory


@pytest.mark.parametrize(("size", "kept"), [(1, True), (64 << 10, True), (16 << 20, True), (17 << 20, False)])
def test_what_is_kept(size: int, kept: bool) -> None:
    first = Staging()
    memory = copied(first, unaligned(size, np.int8))
    first.give_back()
    assert (copied(Staging(), unaligned(size, np.int8)) is memory) == kept


@pytest.mark.parametrize(("size", "most"), [(1000, 64), (1 << 20, 4)])
def test_so_many_are_kept_and_no_more(size: int, most: int) -> None:
    for count in range(3 * most):
        one = Staging()
        copied(one, unaligned(size + count, np.int8))
        one.give_back()
        assert sum(len(shelf._free) for _, shelf in staging._free) <= most


def test_a_call_that_outlasts_its_devices_gives_nothing_back() -> None:
    before = Staging()
    memory = copied(before, unaligned(9))
    workers.close_all()
    before.give_back()
    assert copied(Staging(), unaligned(9)) is not memory


def test_what_lies_well_is_read_where_it_lies() -> None:
    small, large = aligned_empty(100, np.int32), aligned_empty(10_000, np.int32)
    assert isinstance(Staging().readable(large), InPlace)
    assert isinstance(Staging().readable(small), KeptArray)
    assert isinstance(in_place(small), InPlace)
    assert in_place(small[:0]) is None
    assert in_place(small[1:]) is None
    assert in_place(large.reshape(100, 100)[:, :16]) is None


def test_another_cache_at_the_same_address_is_another_cache() -> None:
    """The view of memory is kept from call to call; what is in it, and its shape, are the call's."""
    arguments = arguments_of(SPEC, query_counts=(2,), kv_counts=(64,), selected=32)
    key = arguments["key"]
    memory = aligned_empty(key.nbytes, np.uint8)

    def cache(rows: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        memory[: rows.nbytes] = np.ascontiguousarray(rows).view(np.uint8).reshape(-1)
        return memory[: rows.nbytes].view(key.dtype).reshape(rows.shape)

    results = []
    for rows in (key, key[:, ::-1], key[:, :40]):
        given = arguments | {"key": cache(rows), "value": None}
        if "actual_seq_lengths_kv" in given:
            given["actual_seq_lengths_kv"] = np.array([rows.shape[1]], np.int32)
        given["sparse_indices"] = np.minimum(arguments["sparse_indices"], rows.shape[1] - 1)
        output, _ = check(given)
        results.append(bits(output))
    assert (results[0] != results[1]).any()


def test_inputs_may_change_as_soon_as_a_call_is_over() -> None:
    arguments = arguments_of(SPEC, query_counts=(2,), kv_counts=(300,), selected=256)
    query, ids = arguments["query"].copy(), arguments["sparse_indices"].copy()
    given = arguments | {"query": query, "sparse_indices": ids}
    expected, expected_lse = (one.copy() for one in run(given))
    query[...], ids[...] = 0, 0
    run(given)
    query[...], ids[...] = arguments["query"], arguments["sparse_indices"]
    output, lse = run(given)
    np.testing.assert_array_equal(bits(output), bits(expected))
    np.testing.assert_array_equal(lse, expected_lse)


def test_calls_at_the_same_time_have_memory_of_their_own() -> None:
    calls = [
        arguments_of(SPEC, query_counts=(1,), kv_counts=(90,), selected=64, seed=seed) for seed in range(4)
    ]
    expected = [bits(run(one)[0]) for one in calls]
    wrong = []

    def repeat(number: int) -> None:
        for _ in range(50):
            if (bits(run(calls[number])[0]) != expected[number]).any():
                wrong.append(number)

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_that_fails_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(SPEC, query_counts=(1,), kv_counts=(90,), selected=64)
    run(arguments)
    assert any(shelf._free for _, shelf in staging._free)
    monkeypatch.setattr(staging, "_free", staging._shelves())

    class LostError(Exception):
        pass

    def lose(*_: object) -> None:
        raise LostError

    monkeypatch.setattr("qsmla.runtime.lanes.LoadedKernel._call", lose)
    with pytest.raises(LostError):
        run(arguments)
    assert not any(shelf._free for _, shelf in staging._free)


def test_an_aligned_cache_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(SPEC, query_counts=(1,), kv_counts=(90,), selected=64)
    arguments |= {"key": aligned(arguments["key"]), "value": None}
    seen: list[npt.NDArray[np.generic]] = []
    original = InPlace.__init__

    def note(self: InPlace, array: npt.NDArray[np.generic], at: int) -> None:
        seen.append(array)
        original(self, array, at)

    monkeypatch.setattr(InPlace, "__init__", note)
    check(arguments)
    assert any(np.shares_memory(array, arguments["key"]) for array in seen)
