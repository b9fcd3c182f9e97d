"""Plans that are kept are the plans that would be made."""

from __future__ import annotations

import numpy as np
import pytest

from qsmla.runtime.kept_plans import own_plan
from qsmla.runtime.partition import plan_rows


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
