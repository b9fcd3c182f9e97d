"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from qsmla.ir.spec import SPECS, KernelSpec, Spec

_HELP: Final = {
    "layout_query": "Layout of the query.",
    "layout_kv": "Layout of the cache; without it the same as the query's.",
    "query_dtype": "Dtype of query, rope values and output.",
    "kv_dtype": "Code format of the cache.",
    "heads": "Query heads.",
    "sparse_block_size": "Tokens per selected block.",
    "sparse_mode": "0: no mask; 3: right-down causal.",
    "byte_order": "Order inside a packed cache row.",
    "ori": "The original tokens.",
    "cmp": "The compressed tokens.",
    "kv_cache": "Whether the cache has pages.",
}
_OWNERS: Final = {name: spec for spec in reversed(SPECS.values()) for name in spec.CHOICES}
"""The operator whose default a field's help tells; the first one's where several have the field."""


def named_path(text: str) -> Path:
    """A path that a user gave; an empty one, an unset shell variable's, would be the current folder."""
    if not text:
        raise typer.BadParameter("an empty path; allowed: the name of a file or folder")
    return Path(text)


TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        help="What to compile for: llvm-cpu[:CPU], vulkan:PROFILE, cuda[:sm_NN]; several, joined by commas, "
        "share one artifact.",
        metavar="TARGET",
    ),
]
RunTargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="What to run on; without it the first target of an artifact, or this machine's CPU.",
        metavar="TARGET",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, on standard error for failures.")]
ArtifactArgument = Annotated[Path, typer.Argument(help="A .vmfb file that qsmla wrote.", metavar="ARTIFACT")]
TimeoutOption = Annotated[
    float, typer.Option(help="Seconds after which the compiler is killed.", metavar="SECONDS")
]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Look in the artifact cache first, and store there.")
]


def with_spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `fields`, the specification's fields, one option for each of them.

    A field whose option is not given is absent from `fields`.
    """
    spec_parameters = [_operator_parameter(), *(_spec_parameter(name) for name in _HELP)]
    names = [parameter.name for parameter in spec_parameters]
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "fields"
    ]
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

    def wrapper(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in names}
        command(fields={name: value for name, value in given.items() if value is not None}, **arguments)

    signature = inspect.Signature([*keyword, *spec_parameters])
    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    return wrapper


def _operator_parameter() -> inspect.Parameter:
    option = typer.Option(
        "--operator",
        help=f"What the kernel computes. {KernelSpec.operator} by default.",
        metavar="|".join(SPECS),
        rich_help_panel="Kernel",
        show_default=False,
    )
    return _keyword("operator", Annotated[str, option])


def _spec_parameter(name: str) -> inspect.Parameter:
    owner = _OWNERS[name]
    choices = owner.CHOICES[name]
    default = "" if name == "layout_kv" else f" {getattr(owner, name)} by default."
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{_HELP[name]}{default}",
        metavar="|".join(map(str, choices)),
        rich_help_panel="Kernel" if owner is KernelSpec else f"Kernel of {owner.operator}",
        show_default=False,
    )
    kind: Any = type(choices[0])
    return _keyword(name, Annotated[kind, option])


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def spec_of(fields: dict[str, Any]) -> Spec:
    """The specification with `fields`; a cache layout that is left out follows the query's.

    Raises:
        ValueError: an unknown operator, a field that its kernels do not have, or a value outside its choices.
    """
    follows = {"layout_kv": fields["layout_query"]} if "layout_query" in fields else {}
    return Spec.from_dict({**follows, **fields})
