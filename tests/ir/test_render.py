"""The MLIR text of kernels: it parses, no field is lost in it, and its changes show in a diff."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import Any

import jinja2
import pytest
from iree.compiler import ir

from qsmla.ir.render import _digest_of, generator_digest, render
from qsmla.ir.schedule import AVX2, AVX512, AVX512_BF16, LINALG_FLOAT32, LINALG_QUERY, SCHEDULES, Schedule
from qsmla.ir.spec import KernelSpec, MlaSpec, Spec

GOLDEN = Path(__file__).parent / "golden"
KERNELS = [
    (LINALG_QUERY, KernelSpec(layout_query="TND", layout_kv="PA_BSND")),
    (
        LINALG_QUERY,
        KernelSpec(
            query_dtype="float16",
            kv_dtype="float8_e4m3",
            heads=1,
            sparse_block_size=16,
            byte_order="flashmla",
        ),
    ),
    (
        LINALG_FLOAT32,
        KernelSpec(
            layout_query="TND",
            layout_kv="TND",
            kv_dtype="hifloat8",
            heads=16,
            sparse_block_size=2,
            sparse_mode=3,
        ),
    ),
    (LINALG_QUERY, MlaSpec(kv_cache="paged")),
    (AVX2, KernelSpec(layout_kv="PA_BSND", heads=4)),
    (AVX2, KernelSpec(layout_query="TND", layout_kv="TND", query_dtype="float16", sparse_mode=3)),
    (AVX512, KernelSpec(query_dtype="float16", heads=8)),
    (AVX512_BF16, KernelSpec(kv_dtype="float8_e4m3", heads=16)),
    (AVX512_BF16, MlaSpec(ori="none", cmp="dense", heads=2)),
    (AVX2, MlaSpec(heads=21)),
]
by_kernel = pytest.mark.parametrize(
    ("schedule", "spec"), KERNELS, ids=[f"{schedule.label}-{spec.label}" for schedule, spec in KERNELS]
)


def variants() -> list[tuple[Schedule, Spec, str, Any]]:
    """Each schedule, and kernels that have each value of each field: schedule, kernel, field, value."""
    found: list[tuple[Schedule, Spec, str, Any]] = []
    bases: list[Spec] = [KernelSpec(layout_kv="PA_BSND"), MlaSpec()]
    for schedule in SCHEDULES.values():
        for base in bases:
            for field, values in base.CHOICES.items():
                chosen = values if isinstance(values, tuple) else (1, 7, 16, 127, 128)
                for value in chosen:
                    changes = {field: value}
                    if (field, value) == ("layout_kv", "TND"):
                        changes["layout_query"] = "TND"
                    spec = dataclasses.replace(base, **changes)
                    if schedule.serves(spec):
                        found.append((schedule, spec, field, value))
    return found


def parsed_and_printed(text: str) -> str:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return str(module)


def body(spec: Spec, schedule: Schedule) -> str:
    """The text without the kernel's name, which has every field in it."""
    return render(spec, schedule).replace(spec.label, "kernel")


@pytest.mark.parametrize(
    ("schedule", "spec"),
    [variant[:2] for variant in variants()],
    ids=["-".join(map(str, (s.label, spec.operator, field, value))) for s, spec, field, value in variants()],
)
def test_every_value_of_every_field_parses_and_prints_back_the_same(schedule: Schedule, spec: Spec) -> None:
    text = render(spec, schedule, {"key": "value"})
    printed = parsed_and_printed(text)
    assert parsed_and_printed(printed) == printed
    assert f"module @{spec.label}" in printed
    assert printed.count("iree.reflection") == 4


def test_every_value_of_every_field_has_a_body_of_its_own() -> None:
    """No field is in the name alone."""
    bodies: dict[tuple[Any, ...], dict[str, Any]] = {}
    for schedule, spec, field, value in variants():
        others = bodies.setdefault((schedule.label, spec.operator, field), {})
        text = body(spec, schedule)
        assert text not in others, (
            f"{field} {value!r} and {others[text]!r} are the same kernel in {schedule.label}"
        )
        others[text] = value
    assert len(bodies) > 20


def test_schedules_have_bodies_of_their_own() -> None:
    assert len({body(KernelSpec(), schedule) for schedule in SCHEDULES.values()}) == len(SCHEDULES)


@by_kernel
def test_rendering_is_deterministic_and_reflection_is_all_that_it_adds(
    schedule: Schedule, spec: Spec
) -> None:
    plain = render(spec, schedule)
    assert render(spec, schedule) == plain
    assert render(spec, schedule, {"a": "b"}).replace('a = "b"', "") == plain


@by_kernel
def test_golden_text(schedule: Schedule, spec: Spec, request: pytest.FixtureRequest) -> None:
    """What a change does to the IR, for a reviewer to read; --update-golden accepts it."""
    path = GOLDEN / f"{schedule.label}-{spec.label}.mlir"
    text = render(spec, schedule)
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    golden = path.read_text() if path.exists() else ""
    difference = "".join(
        difflib.unified_diff(
            golden.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"golden/{path.name}",
            "rendered",
        )
    )
    if difference:
        pytest.fail(f"{difference}\npytest tests/ir --update-golden accepts the change", pytrace=False)


def test_every_golden_file_belongs_to_a_kernel() -> None:
    names = {f"{schedule.label}-{spec.label}.mlir" for schedule, spec in KERNELS}
    assert {path.name for path in GOLDEN.iterdir()} == names


@by_kernel
def test_an_undefined_variable_raises(
    schedule: Schedule, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every variable that is handed to the template is needed, and none turns into nothing."""
    template, context = template_of(schedule, spec, monkeypatch)
    assert template.render(context) == render(spec, schedule)
    unused = {"code_table"} if spec.kv_dtype == "int8" and not schedule.lanes else set()
    for name in context.keys() - unused:
        with pytest.raises(jinja2.UndefinedError, match=name):
            template.render({key: value for key, value in context.items() if key != name})


def template_of(
    schedule: Schedule, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> tuple[jinja2.Template, dict[str, Any]]:
    """What `render` renders: a template, and the variables it gets."""
    seen: list[tuple[jinja2.Template, dict[str, Any]]] = []

    def look(self: jinja2.Template, **context: Any) -> str:
        seen.append((self, context))
        return ""

    with monkeypatch.context() as patch:
        patch.setattr(jinja2.Template, "render", look)
        render(spec, schedule)
    return seen[0]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        'quote " and \\ backslash',
        "line\nbreak\ttab",
        "μ-bändig ✓",
        "",
        "%name @symbol {%x} {{ y }} <% z %>",
    ],
)
def test_reflection_survives_as_it_is(text: str) -> None:
    module_text = render(KernelSpec(heads=1), LINALG_QUERY, {"note": text, "another": "value"})
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)
        functions = list(module.body.operations)
        assert [ir.StringAttr(f.attributes["sym_name"]).value for f in functions] == [
            "attend",
            "fold",
            "attend_into",
            "attend_rows",
        ]
        for function in functions:
            reflection = ir.DictAttr(function.attributes["iree.reflection"])
            assert ir.StringAttr(reflection["note"]).value_bytes == text.encode()
            assert ir.StringAttr(reflection["another"]).value == "value"


def test_module_attributes_are_the_module_s() -> None:
    text = render(KernelSpec(heads=1), LINALG_QUERY, module_attributes="test.note = 7 : i32")
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        assert ir.IntegerAttr(module.operation.attributes["test.note"]).value == 7


def test_the_digest_is_over_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    seen = set()
    for name, content in (
        ("render.py", "a"),
        ("render.py", "b"),
        ("templates/a.mlir.j2", ""),
        ("templates/a.mlir.j2", "a"),
        ("templates/b.mlir.j2", "a"),
    ):
        (tmp_path / name).write_text(content)
        seen.add(_digest_of(tmp_path))
    assert len(seen) == 5
    (tmp_path / "notes.txt").write_text("not a part of it")
    assert _digest_of(tmp_path) in seen
    assert generator_digest() not in seen
