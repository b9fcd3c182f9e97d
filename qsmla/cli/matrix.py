"""A matrix of kernels: lists per field, and the product of them."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qsmla.cli.options import spec_of
from qsmla.compiler.files import naming
from qsmla.compiler.targets import parse_targets
from qsmla.ir.spec import SPECS, KernelSpec, Spec, choices_text


@dataclass(frozen=True)
class Matrix:
    """The kernels of a matrix file.

    Attributes:
        kernels: specification and target of each artifact.
        skipped: combinations that no kernel exists for, and why.
    """

    kernels: list[tuple[Spec, str]]
    skipped: list[str]


def read_matrix(path: Path, fields: dict[str, Any], target: str) -> Matrix:
    """The product of the lists in a TOML file.

    Args:
        path: the file; its keys are fields of a specification and `target`, its values one or a list.
        fields: values of fields that the file leaves out.
        target: the target if the file leaves it out.

    Raises:
        ValueError: not TOML, an unknown key, an empty list, or a value outside its field's choices.
        OSError: the file cannot be read.
    """
    try:
        with naming(path):
            table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    given = {"target": target} | fields | table
    operators = _as_list(path, "operator", given.get("operator", KernelSpec.operator))
    lists = {name: _choices(path, name, value, operators) for name, value in given.items()}
    for text in lists["target"]:
        parse_targets(text)
    matrix = Matrix([], [])
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        label = chosen.pop("target")
        try:
            kernel = (spec_of(chosen), label)
        except ValueError as error:
            reason = f"{', '.join(f'{name}={value}' for name, value in chosen.items())}: {error}"
            if reason not in matrix.skipped:
                matrix.skipped.append(reason)
            continue
        if kernel not in matrix.kernels:
            matrix.kernels.append(kernel)
    if not matrix.kernels:
        raise ValueError(f"{path} holds no valid combination; the first is {matrix.skipped[0]}")
    return matrix


def _choices(path: Path, name: str, value: Any, operators: list[Any]) -> list[Any]:
    """The values of one key, each allowed by itself in a kernel of some of the operators."""
    specs = [spec for operator, spec in SPECS.items() if operator in operators]
    choices = [spec.CHOICES[name] for spec in specs if name in spec.CHOICES]
    if name == "operator":
        choices = [tuple(SPECS)]
    elif name == "target":
        choices = []
    elif not choices:
        known = ("target", *dict.fromkeys(field for spec in specs for field in spec.CHOICES), "operator")
        raise ValueError(f"{path}: unknown key {name!r}; allowed: {', '.join(known)}")
    values = _as_list(path, name, value)
    for one in values:
        if name == "target" and not isinstance(one, str):
            raise ValueError(f'{path}: target is {one!r}; allowed: text such as "llvm-cpu"')
        if choices and not any(type(one) is type(allowed[0]) and one in allowed for allowed in choices):
            allowed_text = " or ".join(map(choices_text, choices))
            raise ValueError(f"{path}: {name} is {one!r}; allowed: {allowed_text}")
    return values


def _as_list(path: Path, name: str, value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError(f"{path}: {name} is an empty list; give at least one value")
    return values
