"""`qsmla cache`: the artifact cache."""

from __future__ import annotations

import typer

from qsmla.cli.options import JsonOption
from qsmla.cli.report import print_json, print_pairs
from qsmla.compiler.cache import ENVIRONMENT_VARIABLE, ArtifactCache

app = typer.Typer(
    help=f"Show or clear the artifact cache; {ENVIRONMENT_VARIABLE} names another folder.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show where the cache is and what it takes."""
    if context.invoked_subcommand is not None:
        context.obj = as_json
        return
    store = ArtifactCache()
    entries = store.entries()
    size = sum(entry.size for entry in entries)
    if as_json:
        print_json(
            {
                "path": str(store.folder),
                "entries": [{"path": str(entry.path), "bytes": entry.size} for entry in entries],
                "bytes": size,
            }
        )
    else:
        print_pairs({"path": store.folder, "entries": len(entries), "size": _readable(size)})


@app.command()
def clear(context: typer.Context, as_json: JsonOption = False) -> None:
    """Delete all entries; kernels are compiled again when they are next needed."""
    store = ArtifactCache()
    count, freed = store.clear()
    if as_json or context.obj:
        print_json({"path": str(store.folder), "deleted": count, "bytes": freed})
    else:
        print(f"deleted {count} artifacts, {_readable(freed)}, from {store.folder}")


def _readable(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
