"""The demo's second part, on a small step."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.mla_selection import select
from qsmla.tools import demo_mla


def test_a_small_step_passes_and_says_so() -> None:
    text = io.StringIO()
    console = Console(file=text, width=200)
    assert demo_mla.run(demo_mla.build_step((100, 900), heads=2), console)
    assert "reference passed: 3072 elements" in text.getvalue()
    assert "plan      3 rows over" in text.getvalue()


def test_each_row_sees_its_window_and_its_selection() -> None:
    arguments = demo_mla.build_step((100, 9000, 4000), heads=1)
    ranges = select(check_mla_call(**arguments)).ranges.array
    seen = [
        (end - first).tolist() for first, end in ((ranges[:, 1], ranges[:, 2]), (ranges[:, 4], ranges[:, 5]))
    ]
    assert seen == [[100, 128, 128, 128], [25, 2249, 2250, 1000]]
    valid = (arguments["cmp_sparse_indices"] >= 0).sum(axis=-1).ravel()
    np.testing.assert_array_equal(valid, [25, 512, 512, 512])
