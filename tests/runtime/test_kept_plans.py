"""Plans that are kept are the plans that would be made."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import arguments_of, run
from matrix.cases import find
from plain import bits

import qsmla
from qsmla.runtime.kept_plans import own_plan
from qsmla.runtime.partition import plan_rows

SPEC = find(layout_query="BSND", layout_kv="BSND", sparse_mode=0, sparse_block_size=1)


@pytest.mark.parametrize("rows", [0, 1, 5, 4096, 4097])
@pytest.mark.parametrize("gap", [None, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_plan_is_what_plan_rows_makes(rows: int, gap: int | None, dtype: type) -> None:
    random = np.random.default_rng(rows)
    for _ in range(3):
        blocks = random.integers(0, 9, rows).astype(dtype)
        counts = np.array([rows // 2, rows - rows // 2])
        starts = None if gap is None else np.array([0, rows // 2 + gap])
        expected = plan_rows(blocks, counts, 3, 0, first_rows=starts)
        for _ in range(2):
            assert own_plan(blocks, counts, 3, first_rows=starts).partition == expected
        assert own_plan(blocks, counts, 2, first_rows=starts).partition.num_cores == 2


def test_equal_plans_of_few_rows_are_the_same_object() -> None:
    blocks, counts = np.array([4, 2]), np.array([2])
    kept = own_plan(blocks, counts, 2)
    assert own_plan(blocks.copy(), counts.copy(), 2) is kept
    assert own_plan(blocks[::-1], counts, 2) is not kept


@pytest.mark.parametrize("valid", [True, False], ids=["all ids valid", "some not"])
def test_metadata_that_changes_is_looked_at_again(valid: bool) -> None:
    """What was accepted once is known by its words and by the call."""
    arguments = arguments_of(SPEC, query_counts=(2, 1), kv_counts=(700, 700), selected=600)
    if valid:
        ids = np.broadcast_to(np.arange(600, dtype=np.int32), arguments["sparse_indices"].shape)
        arguments |= {"sparse_indices": ids}
    metadata = qsmla.plan(**arguments, num_cores=2)
    expected, _ = run(arguments, metadata=metadata)
    for word, change, complaint in (
        (8, 1, "metadata is damaged"),
        (12, 1, "metadata was planned for other lengths or attributes"),
        (19, 1, "metadata is damaged"),
    ):
        before = metadata[word]
        metadata[word] += change
        for _ in range(2):
            with pytest.raises(ValueError, match=complaint):
                run(arguments, metadata=metadata)
        metadata[word] = before
        output, _ = run(arguments, metadata=metadata)
        np.testing.assert_array_equal(bits(output), bits(expected))
    fewer = arguments | {"sparse_indices": arguments["sparse_indices"][..., :256].copy()}
    for _ in range(2):
        with pytest.raises(ValueError, match="metadata was planned for other lengths or attributes"):
            run(fewer, metadata=metadata)
        run(arguments, metadata=metadata)
    for wrong in (metadata.astype(np.int64), metadata[:1000], metadata.tolist()):
        with pytest.raises((TypeError, ValueError), match="metadata"):
            run(arguments, metadata=wrong)
