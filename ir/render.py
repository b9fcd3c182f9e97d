"""From a kernel's specification to its MLIR text."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from qsmla.ir import codes
from qsmla.ir.blocking import blocking
from qsmla.ir.schedule import KEY_BLOCK, Schedule
from qsmla.ir.spec import NOPE_DIM, ROPE_DIM, ROW_BYTES, TILE_SIZE, KernelSpec, Spec

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jinja2 import Environment

_FLOAT_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
_SCALE_BYTES = NOPE_DIM // TILE_SIZE * 4


@functools.cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("rendering needs jinja2: pip install 'qsmla[compiler]'") from error
    # MLIR spells dynamic sizes `{%n}`, which would open a Jinja block: blocks are written `<% ... %>`.
    environment = Environment(
        loader=PackageLoader("qsmla.ir"),
        undefined=StrictUndefined,
        block_start_string="<%",
        block_end_string="%>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["byte"] = lambda word, number: word >> 8 * number & 0xFF
    return environment


def render(
    spec: Spec,
    schedule: Schedule,
    reflection: Mapping[str, str] | None = None,
    module_attributes: str = "",
) -> str:
    """Render the MLIR module of a kernel.

    Args:
        spec: what the kernel computes.
        schedule: how its body is arranged.
        reflection: text attached to every exported function as `iree.reflection`.
        module_attributes: attributes of the module, for instance `hal.device.targets = [...]`.

    Returns:
        A `builtin.module` with four functions: `attend`, from query, cache and selection to one partial
        result per work item; `attend_into`, the same into the caller's memory; `fold`, from a row's partial
        results to its output; `attend_rows`, which attends and folds.

    Raises:
        ImportError: jinja2 is not installed.
    """
    template = _environment().get_template(f"{spec.operator}.mlir.j2")
    return template.render(
        spec=spec,
        schedule=schedule,
        label=spec.label,
        reflection=_string_attributes(reflection or {}),
        module_attributes=module_attributes,
        **_types(spec, schedule),
    )


@functools.cache
def generator_digest() -> str:
    """A SHA-256 over this package, its templates too: where it is equal, so is what `render` makes."""
    return _digest_of(resources.files("qsmla.ir"))


def _digest_of(folder: Traversable) -> str:
    """Over the names and contents of a folder's modules and templates."""
    digest = hashlib.sha256()
    for place in (folder, folder / "templates"):
        for file in sorted(place.iterdir(), key=lambda file: file.name):
            if file.name.endswith((".py", ".j2")):
                content = file.read_bytes()
                digest.update(f"{file.name}\0{len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()


def _types(spec: Spec, schedule: Schedule) -> dict[str, Any]:
    """The values that templates write into types and constants."""
    contraction = spec.query_dtype if schedule.contraction_dtype == "query" else "float32"
    return {
        "heads": spec.heads,
        "nope": NOPE_DIM,
        "width": spec.query_dim,
        "key_block": KEY_BLOCK,
        "query_type": _FLOAT_TYPES[spec.query_dtype],
        "operand_type": _FLOAT_TYPES[contraction],
        **(_packed_row(spec) if isinstance(spec, KernelSpec) else {}),
        **(_hand_scheduled(spec, schedule) if schedule.lanes else _portable(spec)),
    }


def _portable(spec: Spec) -> dict[str, Any]:
    """What bodies in linalg need besides."""
    return {"code_table": "" if spec.kv_dtype == "int8" else _table_hex(spec.kv_dtype)}


def _hand_scheduled(spec: Spec, schedule: Schedule) -> dict[str, Any]:
    """What bodies that are written out in vectors need besides."""
    values = {"blocking": blocking(schedule, spec.heads)}
    if spec.kv_dtype != "hifloat8":
        return values
    magnitudes = codes.decode_table(spec.kv_dtype)[:128].view(np.uint32)
    return {**values, "code_words": [int(bits) >> 16 for bits in magnitudes]}


def _packed_row(spec: KernelSpec) -> dict[str, int]:
    """Where things lie in a packed row of the cache."""
    ascend = spec.byte_order == "ascend"
    return {
        "rope": ROPE_DIM,
        "tile": TILE_SIZE,
        "row_bytes": ROW_BYTES,
        # First rope value and first scale of a row, in units of their own size.
        "rope_at": (NOPE_DIM if ascend else NOPE_DIM + _SCALE_BYTES) // 2,
        "scale_at": (NOPE_DIM + 2 * ROPE_DIM if ascend else NOPE_DIM) // 4,
    }


def _string_attributes(texts: Mapping[str, str]) -> str:
    """A dictionary attribute of strings; all but plain ASCII is written as MLIR's hexadecimal escapes."""

    def quoted(text: str) -> str:
        plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
        return '"' + "".join(plain) + '"'

    return "{" + ", ".join(f"{key} = {quoted(texts[key])}" for key in sorted(texts)) + "}"


def _table_hex(kv_dtype: str) -> str:
    """The 256 float32 values of a code format as MLIR's hexadecimal dense elements, NaN included."""
    values = codes.decode_table(kv_dtype).astype(np.float32)
    return ", ".join(f"0x{bits:08X}" for bits in values.view(np.uint32))
