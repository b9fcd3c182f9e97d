"""The commands of `qsmla`, put together."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from qsmla.cli.bench import bench
from qsmla.cli.cache import app as cache_app
from qsmla.cli.compile import compile_command
from qsmla.cli.devices import devices
from qsmla.cli.emit import emit
from qsmla.cli.inspect import inspect
from qsmla.cli.metadata import metadata
from qsmla.cli.replay import replay
from qsmla.cli.run import run
from qsmla.cli.verify import verify

app = typer.Typer(
    name="qsmla",
    help="Quantised sparse MLA attention kernels: compile, look at and run them.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(emit)
app.command("compile")(compile_command)
app.command()(inspect)
app.command()(run)
app.command()(verify)
app.command()(replay)
app.command()(metadata)
app.command()(devices)
app.command()(bench)
app.add_typer(cache_app, name="cache")


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    """Quantised sparse MLA attention kernels: compile, look at and run them."""
    if version:
        print(importlib.metadata.version("qsmla"))
    elif context.invoked_subcommand is None:
        print(context.get_help())
