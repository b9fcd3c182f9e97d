from __future__ import annotations

import dataclasses
import itertools
import json
import re
from typing import Any

import pytest

from qsmla.ir.spec import SPECS, KernelSpec, MlaSpec, Spec

FIELDS = [field.name for field in dataclasses.fields(KernelSpec)]
# How the label spells a field whose name it shortens.
LABEL_NAMES = {
    "layout_query": "layout_q",
    "query_dtype": "dtype_q",
    "kv_dtype": "dtype_kv",
    "sparse_block_size": "sparse_block",
}


def legal_specs() -> list[KernelSpec]:
    specs = []
    for values in itertools.product(*(KernelSpec.CHOICES[name] for name in FIELDS)):
        fields = dict(zip(FIELDS, values, strict=True))
        if fields["layout_kv"] in (fields["layout_query"], "PA_BSND"):
            specs.append(KernelSpec(**fields))
    return specs


def changes() -> list[tuple[str, Any]]:
    """Each field with each of its values, from a spec whose layouts allow any one change."""
    return [(name, value) for name in FIELDS for value in KernelSpec.CHOICES[name]]


def test_choices_name_every_field() -> None:
    assert list(KernelSpec.CHOICES) == FIELDS


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_in_the_label(field: str) -> None:
    spec = KernelSpec(layout_kv="PA_BSND")
    name = LABEL_NAMES.get(field, field)
    assert f"_{name}_{getattr(spec, field)}" in spec.label


@pytest.mark.parametrize(("field", "value"), changes())
def test_changing_any_field_changes_the_label(field: str, value: Any) -> None:
    if (field, value) == ("layout_kv", "TND"):
        base = KernelSpec(layout_query="TND", layout_kv="PA_BSND")
    else:
        base = KernelSpec(layout_kv="PA_BSND")
    changed = dataclasses.replace(base, **{field: value})
    assert (changed.label == base.label) == (value == getattr(base, field))


def test_labels_of_all_kernels_are_distinct_symbols_and_file_names() -> None:
    specs = legal_specs()
    labels = {spec.label for spec in specs}
    assert len(labels) == len(specs) == 4 * 2 * 3 * 9 * 8 * 2 * 2
    for label in labels:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", label)
    assert max(map(len, labels)) + len(".vmfb.lock") <= 255


def test_labels_differ_where_case_is_ignored() -> None:
    labels = {spec.label.casefold() for spec in legal_specs()}
    assert len(labels) == len(legal_specs())


def test_a_spec_survives_json() -> None:
    for spec in legal_specs()[::97]:
        assert KernelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_fields_that_are_left_out_take_their_defaults() -> None:
    assert KernelSpec.from_dict({"heads": 16}) == KernelSpec(heads=16)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"layout_query": "SBH"}, "layout_query is 'SBH'; allowed: BSND, TND"),
        ({"layout_kv": "BNSD"}, "layout_kv is 'BNSD'"),
        ({"layout_query": "TND", "layout_kv": "BSND"}, "layout_kv is 'BSND' with layout_query 'TND'"),
        ({"query_dtype": "float32"}, "query_dtype is 'float32'"),
        ({"kv_dtype": "fp8"}, "kv_dtype is 'fp8'"),
        ({"heads": 3}, "heads is 3"),
        ({"heads": 16.0}, r"heads is 16\.0"),
        ({"heads": True}, "heads is True"),
        ({"sparse_block_size": 256}, "sparse_block_size is 256"),
        ({"sparse_mode": 1}, "sparse_mode is 1"),
        ({"byte_order": "little"}, "byte_order is 'little'"),
        ({"operator": "flash_attention"}, "operator is 'flash_attention'"),
        ({"head": 16}, "unknown field 'head'"),
    ],
)
def test_what_is_not_allowed_is_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KernelSpec.from_dict(fields)


@pytest.mark.parametrize(("layout_kv", "paged"), [("BSND", False), ("PA_BSND", True)])
def test_paged(layout_kv: str, paged: bool) -> None:
    assert KernelSpec(layout_kv=layout_kv).paged is paged


def legal_mla_specs() -> list[MlaSpec]:
    choices = itertools.product(*MlaSpec.CHOICES.values())
    return [
        MlaSpec(**dict(zip(MlaSpec.CHOICES, values, strict=True)))
        for values in choices
        if values[:2] != ("none",) * 2
    ]


def test_labels_of_all_mla_kernels_are_distinct_symbols_that_spell_every_field() -> None:
    specs = legal_mla_specs()
    labels = {spec.label for spec in specs}
    assert len(labels) == len(specs) == 8 * 2 * 128
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", label) for label in labels)
    for name in MlaSpec.CHOICES:
        assert all(f"_{name}_{getattr(spec, name)}" in spec.label for spec in specs)
    assert not labels & {spec.label for spec in legal_specs()}


def test_from_dict_gives_the_operator_s_own_specification() -> None:
    for spec in (KernelSpec(heads=16), *legal_mla_specs()[::97]):
        assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
        assert type(Spec.from_dict(spec.to_dict())) is type(spec) is SPECS[spec.operator]
    assert MlaSpec.from_dict({"heads": 5}) == MlaSpec(heads=5)
    assert Spec.from_dict({"heads": 16}) == KernelSpec(heads=16)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ori": "none", "cmp": "none"}, "ori and cmp are both 'none'"),
        ({"ori": "some"}, "ori is 'some'; allowed: none, dense, sparse"),
        ({"kv_cache": "PA_BBND"}, "kv_cache is 'PA_BBND'; allowed: contiguous, paged"),
        ({"heads": 0}, r"heads is 0; allowed: 1\.\.128"),
        ({"heads": True}, "heads is True"),
        ({"sparse_mode": 0}, "unknown field 'sparse_mode'; allowed: ori, cmp, kv_cache, heads"),
        ({"operator": "kv_quant_sparse_flash_attention"}, "operator is 'kv_quant_sparse_flash_attention'"),
    ],
)
def test_what_an_mla_kernel_is_not_is_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MlaSpec.from_dict(fields)


def test_parts_that_there_are() -> None:
    assert MlaSpec(ori="none", cmp="sparse").parts == {"cmp": "sparse"}
    assert list(MlaSpec(ori="sparse", cmp="dense", kv_cache="paged").parts.values()) == ["sparse", "dense"]
    assert [MlaSpec(kv_cache=kind).paged for kind in ("contiguous", "paged")] == [False, True]
