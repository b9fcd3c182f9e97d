"""Pictures in files of any kind that matplotlib writes here."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from qsmla.compiler.files import staged

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_picture(path: Path) -> None:
    """Refuse what could not be drawn, before anything is done for it.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the suffix names no kind of picture that can be written here.
        OSError: there is no such folder, or `path` is one.
    """
    try:
        from matplotlib import rcParams
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'qsmla[plot]'") from error
    kinds = dict(FigureCanvasAgg.get_supported_filetypes())
    if shutil.which(rcParams["pgf.texsystem"]) is None:
        # Its texts are measured with TeX.
        kinds.pop("pgf", None)
    if _kind(path) not in kinds:
        raise ValueError(f"plot is {str(path)!r}; allowed suffixes: {', '.join(sorted(kinds))}")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure to `path`, as its suffix says; png without one.

    Raises:
        OSError: `path` cannot be written.
        ValueError: what matplotlib calls for that kind of picture failed.
    """
    try:
        with staged(path) as file:
            figure.savefig(file, format=_kind(path))
    except RuntimeError as error:
        raise ValueError(f"{path} cannot be drawn: {error}") from error


def _kind(path: Path) -> str:
    return path.suffix[1:].lower() or "png"
