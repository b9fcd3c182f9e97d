"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

STAGING_SUFFIX: Final = ".staging"


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of reading or writing name `path`: opening a file does that, what comes behind it does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def staged(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file beside `path` that takes its place when the block ends well, and goes away otherwise.

    A link stays, and what it leads to is replaced, by a file with the same permissions. What is no file, such
    as a pipe or a terminal, is written to when the block has ended well.

    Raises:
        OSError: the folder is missing, full or not writable, or `path` is a folder.
    """
    final = Path(path)
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(final))
    if final.exists() and not final.is_file():
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            with naming(path), open(final, "wb") as device:
                shutil.copyfileobj(whole, device)
        return
    final = Path(os.path.realpath(final))
    staging = final.with_name(f".{final.name[:60]}.{secrets.token_hex(6)}{STAGING_SUFFIX}")
    try:
        # Callers know the file by its own name.
        with naming(path):
            with open(staging, "xb") as file:
                if final.exists():
                    os.chmod(staging, stat.S_IMODE(final.stat().st_mode))
                yield file
            os.replace(staging, final)
    except OSError:
        with contextlib.suppress(OSError):
            staging.unlink(missing_ok=True)
        raise
    except BaseException:
        staging.unlink(missing_ok=True)
        raise


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, all of it or none.

    Raises:
        OSError: as `staged`.
    """
    with staged(path) as file:
        file.write(data)
