"""`qsmla metadata`: how the work of a `quant_sparse_flash_mla` call is cut into ranges, one a core."""

from __future__ import annotations

import inspect
import json
import re
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from qsmla.cli.options import JsonOption
from qsmla.cli.report import CommandError, print_json
from qsmla.compiler.files import naming
from qsmla.runtime.metadata import plan_mla, quant_sparse_flash_mla_metadata
from qsmla.runtime.npz import load_npz
from qsmla.runtime.partition import Cursor, Partition, Pieces
from qsmla.runtime.row_keys import MlaAttributes, MlaLengths, row_blocks
from qsmla.tools.picture import check_picture

_HELP: Final = {
    "num_heads_q": "Query heads, 1..128.",
    "num_heads_kv": "Key/value heads.",
    "head_dim": "Columns of a head.",
    "quant_mode": "1: one scale a tensor, hifloat8.",
    "cu_seqlens_q": "Query rows, prefix sums from 0; layout TND.",
    "cu_seqlens_ori_kv": "Original tokens, prefix sums from 0; layout TND.",
    "cu_seqlens_cmp_kv": "Compressed tokens, prefix sums from 0; layout TND.",
    "seqused_q": "Query rows really used of each batch.",
    "seqused_ori_kv": "Original tokens really used of each batch.",
    "seqused_cmp_kv": "Compressed tokens really used of each batch.",
    "cmp_residual_kv": "What compression left over of each batch, less than the ratio.",
    "batch_size": "Batches, where no lengths say.",
    "max_seqlen_q": "Query rows of a batch where no lengths say, and the query's S1.",
    "max_seqlen_ori_kv": "Original tokens of a batch where no lengths say.",
    "max_seqlen_cmp_kv": "Compressed tokens of a batch where no lengths say.",
    "ori_topk": "Selected original tokens of a row; 0: not sparse.",
    "cmp_topk": "Selected compressed tokens of a row; 0: not sparse.",
    "cmp_ratio": "Original tokens in one compressed token.",
    "ori_mask_mode": "0: none; 3: right-down causal; 4: band.",
    "cmp_mask_mode": "0: none; 3: right-down causal.",
    "ori_win_left": "How far back the band reaches; -1: unlimited.",
    "ori_win_right": "How far ahead the band reaches; -1: unlimited.",
    "layout_q": "BSND or TND.",
    "layout_kv": "BSND, TND or PA_BBND.",
    "has_ori_kv": "Whether there are original tokens.",
    "has_cmp_kv": "Whether there are compressed tokens.",
    "num_cores": "Ranges, 1..132; without it the workers of this CPU.",
}
_DEFAULTS: Final = {
    name: parameter.default
    for name, parameter in inspect.signature(quant_sparse_flash_mla_metadata).parameters.items()
    if name in _HELP
}
# Python reads more as a number: other scripts' digits, and underscores between them.
_WHOLE_NUMBER: Final = re.compile(r" *[-+]?[0-9]{1,20} *")
_LENGTHS: Final = [name for name in _HELP if name.startswith(("cu_", "seqused_", "cmp_residual"))]


def _with_argument_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `given`, the arguments of the planner, one option for each of them.

    An argument whose option is not given is absent from `given`.
    """
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "given"
    ]

    def wrapper(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in _HELP}
        command(given={name: value for name, value in options.items() if value is not None}, **arguments)

    signature = inspect.Signature([*own, *map(_parameter, _HELP)])
    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    return wrapper


def _parameter(name: str) -> inspect.Parameter:
    default = _DEFAULTS[name]
    flag, kind, metavar, shown = f"--{name.replace('_', '-')}", type(default), "N", f" {default} by default."
    if name in _LENGTHS:
        kind, metavar, shown = str, "N,N,...", ""
    elif isinstance(default, bool):
        flag, metavar, shown = f"{flag}/--no-{flag[6:]}", "", " Yes by default."
    elif isinstance(default, str):
        metavar = "LAYOUT"
    elif not isinstance(default, int):
        kind, shown = int, ""
    panel = "Lengths" if name in _LENGTHS or name.startswith(("batch", "max")) else "Attributes"
    option = typer.Option(
        flag, help=_HELP[name] + shown, metavar=metavar or None, rich_help_panel=panel, show_default=False
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


@_with_argument_options
def metadata(
    given: dict[str, Any],
    source: Annotated[
        Path | None,
        typer.Argument(
            help="A JSON object or an .npz file of arguments by name; options override it.",
            metavar="[FILE]",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the cores' loads into a picture.", metavar="FILE.png", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how the work of a quant_sparse_flash_mla call is cut into ranges of equal load, one a core.

    Lengths and attributes have the names of qsmla.quant_sparse_flash_mla_metadata.
    """
    if plot is not None:
        check_picture(plot)
    arguments = _read(source) | {name: _parsed(name, value) for name, value in given.items()}
    if "num_heads_q" not in arguments:
        raise CommandError("num_heads_q is missing; give --num-heads-q or a file that holds it")
    num_cores = arguments.pop("num_cores", None)
    names = MlaAttributes.__dataclass_fields__.keys()
    attributes = MlaAttributes(**{name: arguments.pop(name) for name in names & arguments.keys()})
    lengths = MlaLengths.resolve(attributes, **arguments)
    partition = plan_mla(attributes, lengths, num_cores)
    blocks = row_blocks(attributes, lengths, partition.key_block)
    pieces = partition.pieces(blocks, lengths.query)
    if plot is not None:
        from qsmla.cli.plot_partition import plot_partition

        plot_partition(partition, pieces, lengths.query, plot)
    if as_json:
        print_json(_as_json(partition, pieces))
    else:
        _print_tables(partition, pieces)


def _read(source: Path | None) -> dict[str, Any]:
    """The arguments that a file holds, by name."""
    if source is None:
        return {}
    if source.suffix == ".npz":
        arguments = load_npz(source)
    else:
        try:
            with naming(source):
                arguments = json.loads(source.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise CommandError(f"{source} is neither an .npz file nor readable JSON: {reason}") from error
        if not isinstance(arguments, dict):
            raise CommandError(f"{source} holds a JSON {type(arguments).__name__}; allowed: an object")
    for name in arguments:
        if name not in _HELP:
            raise CommandError(f"{source} holds {name!r}, no argument; allowed: {', '.join(_HELP)}")
    for name in _LENGTHS:
        value = arguments.get(name)
        if not (value is None or isinstance(value, list | np.ndarray)):
            kind = "an array" if source.suffix == ".npz" else "a list"
            raise CommandError(
                f"{source} holds {reprlib.repr(value)} as {name}; allowed: {kind} of whole numbers"
            )
    return arguments


def _parsed(name: str, value: Any) -> Any:
    """An option's value as the planner takes it."""
    if name not in _LENGTHS:
        return value
    words = value.split(",")
    if not all(_WHOLE_NUMBER.fullmatch(word) for word in words):
        raise CommandError(f"{name} is {reprlib.repr(value)}; allowed: whole numbers joined by commas")
    return list(map(int, words))


def _as_json(partition: Partition, pieces: Pieces) -> dict[str, Any]:
    loads = pieces.loads.tolist()
    return {
        "num_cores": partition.num_cores,
        "batch_size": partition.batch_size,
        "rows": partition.rows,
        "key_block": partition.key_block,
        "row_overhead": partition.row_overhead,
        "slots": partition.slots,
        "total_load": partition.total_load,
        "largest_load": partition.largest_load,
        "balance": partition.balance,
        "fingerprint": f"{partition.fingerprint:#018x}",
        "cores": [
            {"start": list(start[:3]), "end": list(end[:3]), "first_slot": start.slot, "load": load}
            for (start, end), load in zip(partition.ranges, loads, strict=True)
        ],
        "split_rows": [combine._asdict() for combine in partition.combines],
    }


def _print_tables(partition: Partition, pieces: Pieces) -> None:
    console = Console(highlight=False)
    titles = ("core", "from", "up to", "rows", "blocks", "load", "of mean")
    cores = Table(*titles, title="Cores", title_justify="left")
    for column in cores.columns:
        column.justify, column.no_wrap = "right", True
    rows = np.bincount(pieces.core, minlength=partition.num_cores)
    blocks = _sums(pieces.blocks, rows)
    for core, (start, end) in enumerate(partition.ranges):
        load = pieces.loads[core]
        share = f"{load / partition.mean_load:.1%}" if partition.total_load else "-"
        cores.add_row(
            str(core), _place(start), _place(end), str(rows[core]), str(blocks[core]), str(load), share
        )
    console.print(cores)
    if partition.combines:
        split = Table("row", "slots", "cores", title="Split rows", title_justify="left")
        first, last = _cores_of_split_rows(pieces)
        for combine, begin, end in zip(partition.combines, first, last, strict=True):
            slots = f"{combine.first_slot}..{combine.first_slot + combine.slots - 1}"
            split.add_row(str(combine.row), slots, f"{begin}..{end}")
        console.print(split)
    console.print(str(partition).splitlines()[0], soft_wrap=True)


def _place(cursor: Cursor) -> str:
    return f"{cursor.batch}:{cursor.row}" + (f" block {cursor.block}" if cursor.block else "")


def _sums(values: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of `counts[i]` values each, one behind the other."""
    return np.diff(np.concatenate(([0], np.cumsum(values)))[np.concatenate(([0], np.cumsum(counts)))])


def _cores_of_split_rows(pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last core of each split row, in order."""
    cores, rows = pieces.core[pieces.split], pieces.row[pieces.split]
    new = np.append(True, rows[1:] != rows[:-1])
    return cores[new], cores[np.append(new[1:], True)]
