"""Whether the matrix covers what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matrix.cases import SHAPES, Case, cases, find, specs

from qsmla.ir.spec import KernelSpec
from qsmla.runtime.checks import check_call
from qsmla.runtime.selection import row_geometry, valid_counts

FIELDS = ("layouts", *list(KernelSpec.CHOICES)[2:])


def values(spec: KernelSpec) -> dict[str, object]:
    fields = spec.to_dict()
    return fields | {"layouts": (fields["layout_query"], fields["layout_kv"])}


def combinations(*fields: str) -> set[tuple[object, ...]]:
    return {tuple(values(spec)[field] for field in fields) for spec in specs()}


@pytest.mark.parametrize(("a", "b"), [*itertools.combinations(FIELDS, 2)])
def test_every_pair_of_values_occurs(a: str, b: str) -> None:
    sizes = [4 if field == "layouts" else len(KernelSpec.CHOICES[field]) for field in (a, b)]
    assert len(combinations(a, b)) == sizes[0] * sizes[1]


@pytest.mark.parametrize(("field", "count"), [("sparse_block_size", 8), ("heads", 9)])
def test_every_layout_and_mode_with_each(field: str, count: int) -> None:
    assert len(combinations("layouts", "sparse_mode", field)) == 4 * 2 * count


def test_names_are_distinct_and_there_are_enough() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names) == 72 * len(SHAPES) >= 400


def test_a_kernel_is_found_by_its_fields() -> None:
    spec = find(sparse_block_size=16, sparse_mode=3, layout_kv="PA_BSND")
    assert (spec.sparse_block_size, spec.sparse_mode, spec.layout_kv) == (16, 3, "PA_BSND")
    assert spec in specs()
    with pytest.raises(LookupError, match="heads"):
        find(heads=3)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_rows_with_and_without_tokens_and_unselected_ones(shape: str) -> None:
    """Of the kernels with one token a block: what is drawn at random selects neither all nor nothing."""
    for number, spec in enumerate(spec for spec in specs() if spec.sparse_block_size == 1):
        arguments = Case(spec, shape, number).arguments()
        call = check_call(**arguments)
        counts = valid_counts(call, row_geometry(call))
        assert 0 < counts.sum() < call.indices.size or shape in ("one_id", "more_ids_than_keys")
        assert counts.any()


def test_what_is_not_selected_is_nan() -> None:
    arguments = Case(find(kv_dtype="float8_e4m3", layout_kv="PA_BSND"), "prefill", 0).arguments()
    rows = arguments["key"].view(np.uint8).reshape(-1, 656)
    unused = (rows[:, :512] == 0xFF).all(axis=1)
    assert 20 < unused.sum() < len(rows)
    assert (arguments["block_table"] == 2_147_480_000).any()
