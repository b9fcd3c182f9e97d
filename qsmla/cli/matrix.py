"""A matrix of kernels: lists per field, and the product of them."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qsmla.cli.options import spec_of
from qsmla.compiler.targets import parse_targets
from qsmla.ir.spec import KernelSpec


@dataclass(frozen=True)
class Matrix:
    """The kernels of a matrix file.

    Attributes:
        kernels: specification and target of each artifact.
        skipped: combinations that no kernel exists for, and why.
    """

    kernels: list[tuple[KernelSpec, str]]
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
        table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    lists = {
        name: _choices(path, name, value) for name, value in ({"target": target} | fields | table).items()
    }
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


def _choices(path: Path, name: str, value: Any) -> list[Any]:
    """The values of one key, each allowed by itself."""
    known = ("target", *KernelSpec.CHOICES)
    if name not in known:
        raise ValueError(f"{path}: unknown key {name!r}; allowed: {', '.join(known)}")
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError(f"{path}: {name} is an empty list; give at least one value")
    for one in values:
        allowed = KernelSpec.CHOICES.get(name)
        if name == "target" and not isinstance(one, str):
            raise ValueError(f'{path}: target is {one!r}; allowed: text such as "llvm-cpu"')
        if allowed is not None and (type(one) is not type(allowed[0]) or one not in allowed):
            raise ValueError(f"{path}: {name} is {one!r}; allowed: {', '.join(map(str, allowed))}")
    return values
