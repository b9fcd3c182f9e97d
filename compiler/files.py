"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

STAGING_SUFFIX: Final = ".staging"


@contextmanager
def staged(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file beside `path` that takes its place when the block ends well, and goes away otherwise.

    Raises:
        OSError: the folder is missing, full or not writable, or `path` is a folder.
    """
    final = Path(path)
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(final))
    staging = final.with_name(f".{final.name[:60]}.{secrets.token_hex(6)}{STAGING_SUFFIX}")
    try:
        with open(staging, "xb") as file:
            yield file
        os.replace(staging, final)
    except OSError as error:
        staging.unlink(missing_ok=True)
        # Callers know the file by its own name.
        raise OSError(error.errno, error.strerror or str(error), str(final)) from error
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
