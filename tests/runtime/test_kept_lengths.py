"""Kept attributes and lengths are those that would be made, whatever becomes of the arrays afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qsmla.runtime.kept_lengths import kept_attributes, kept_lengths
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths

ATTRIBUTES = MlaAttributes(num_heads_q=4, cmp_ratio=4, cmp_mask_mode=3)
FIELDS = ("query", "first_rows", "ori", "cmp", "residual")


def lengths_of(kind: Any) -> dict[str, Any]:
    return {
        "seqused_q": kind([1, 2]),
        "seqused_ori_kv": kind([30, 7]),
        "seqused_cmp_kv": kind([7, 1]),
        "cmp_residual_kv": kind([2, 3]),
        "max_seqlen_q": 2,
    }


KINDS = {
    "int32": lambda values: np.array(values, np.int32),
    "int64": lambda values: np.array(values, np.int64),
    "list": list,
    "tuple": tuple,
    "strided": lambda values: np.repeat(np.array(values, np.int32), 2)[::2],
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_lengths_are_those_that_resolve_makes(kind: Any) -> None:
    given = lengths_of(kind)
    expected = MlaLengths.resolve(ATTRIBUTES, **given)
    kept = kept_lengths(ATTRIBUTES, **given)
    assert kept_lengths(ATTRIBUTES, **lengths_of(kind)) is kept
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(kept, name), getattr(expected, name))


def test_other_values_and_other_attributes_are_other_lengths() -> None:
    given = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in lengths_of(list).items()
    }
    kept = kept_lengths(ATTRIBUTES, **given)
    given["seqused_q"][0] = 2
    assert kept.query.tolist() == [1, 2]
    assert kept_lengths(ATTRIBUTES, **given).query.tolist() == [2, 2]
    without = kept_attributes(num_heads_q=4, has_cmp_kv=False, cmp_ratio=4)
    assert kept_lengths(without, **given).cmp.tolist() == [0, 0]


def test_what_is_wrong_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^cmp_residual_kv\[0\] is 4; allowed: 0\.\.3"):
            kept_lengths(ATTRIBUTES, **lengths_of(list) | {"cmp_residual_kv": [4, 0]})
        with pytest.raises(TypeError, match=r"^an element of seqused_q is 1\.0 \(float\)"):
            kept_lengths(ATTRIBUTES, **lengths_of(list) | {"seqused_q": [1.0, 2]})
        with pytest.raises(TypeError, match=r"^an element of seqused_q is True \(bool\)"):
            kept_lengths(ATTRIBUTES, **lengths_of(list) | {"seqused_q": [True, 2]})
        with pytest.raises(TypeError, match=r"^cmp_ratio is 4\.0 \(float\)"):
            kept_attributes(num_heads_q=4, cmp_ratio=4.0)
        with pytest.raises(TypeError, match=r"^cmp_ratio is True \(bool\)"):
            kept_attributes(num_heads_q=4, cmp_ratio=True)
        with pytest.raises(TypeError, match=r"^layout_q is \[\] \(list\)"):
            kept_attributes(num_heads_q=4, layout_q=[])
    assert kept_attributes(num_heads_q=4, cmp_ratio=1) is kept_attributes(num_heads_q=4, cmp_ratio=1)


def test_long_arrays_are_not_kept() -> None:
    given = {
        "seqused_q": np.ones(5000, np.int32),
        "seqused_ori_kv": np.ones(5000, np.int32),
        "max_seqlen_cmp_kv": 1,
    }
    plain = MlaAttributes(num_heads_q=4)
    first = kept_lengths(plain, **given)
    assert kept_lengths(plain, **given) is not first
    assert first.ori.sum() == 5000
