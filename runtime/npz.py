"""Arguments and results of operators in .npz files, bfloat16 and float8 arrays included.

NumPy writes dtypes it does not know as raw bytes. So such an array is stored as unsigned integers of the
same width, and the entry `dtypes`, a JSON text, says what they are: {"query": "bfloat16"}.
"""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from qsmla.compiler.files import naming, staged
from qsmla.runtime.arrays import aligned_empty

DTYPES_ENTRY: Final = "dtypes"
_NAMED_DTYPES: Final[dict[str, Any]] = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}
_UNREADABLE: Final = (
    # What NumPy's reader raises on files that are damaged or made to do harm.
    *(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError),
    *(SyntaxError, EOFError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, NotImplementedError),
)
_RAW_KINDS: Final = "uiV"
_ARRAY_FILE: Final = b"\x93NUMPY"
"""What an .npy file begins with."""


def save_npz(path: str | os.PathLike[str], **arrays: npt.ArrayLike) -> None:
    """Write arrays to `path`, all of them or no file; `load_npz` reads them back.

    Raises:
        ValueError: an array is called "dtypes" or holds Python objects.
        OSError: the folder is missing, full or not writable.
    """
    plain: dict[str, npt.NDArray[Any]] = {}
    dtypes: dict[str, str] = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        if name == DTYPES_ENTRY or array.dtype.hasobject:
            raise ValueError(
                f"{name} of dtype {array.dtype} cannot be stored; allowed: any name but "
                f"{DTYPES_ENTRY!r}, any dtype without Python objects"
            )
        if array.dtype.name in _NAMED_DTYPES:
            dtypes[name] = array.dtype.name
            array = array.view(f"u{array.dtype.itemsize}")
        plain[name] = array
    if dtypes:
        plain[DTYPES_ENTRY] = np.array(json.dumps(dtypes, sort_keys=True))
    with staged(path) as file:
        np.savez(file, allow_pickle=False, **plain)


def load_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an .npz file under their names, in 64-byte aligned memory; zero-dimensional ones as
    Python values.

    Raises:
        ValueError: not a readable .npz file, or an entry whose dtype is unknown or does not fit `dtypes`.
        OSError: the file cannot be read.
    """
    with naming(path), open(path, "rb") as file:
        try:
            _check_archive(file)
            with np.load(file, allow_pickle=False) as archive:
                entries = {name: _aligned(_plain(archive, name), name) for name in archive.files}
        except _UNREADABLE as error:
            raise ValueError(f"{Path(path)} is not a readable .npz file of plain arrays: {error}") from error
    dtypes = _declared(entries.pop(DTYPES_ENTRY, None), path)
    for name in dtypes:
        if name not in entries:
            raise ValueError(f"{Path(path)}: {DTYPES_ENTRY} names {name!r}, which the file does not hold")
    return {name: _restored(name, array, dtypes.get(name), path) for name, array in entries.items()}


def _check_archive(file: BinaryIO) -> None:
    """Refuse what NumPy reads as something else, or speaks of as if it were."""
    begin = file.read(len(_ARRAY_FILE))
    file.seek(0)
    if begin == _ARRAY_FILE:
        raise ValueError("it is an .npy file, of a single array")
    if not begin.startswith(b"PK"):
        raise ValueError("it is no zip archive" if begin else "it is empty")


def _plain(archive: NpzFile, name: str) -> Any:
    """An entry; one of Python objects is refused by its name, not by an argument of NumPy's."""
    try:
        return archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError(f"{name} holds Python objects") from error


def _aligned(entry: Any, name: str) -> npt.NDArray[Any]:
    """The same array where a CPU device can read it in place."""
    if not isinstance(entry, np.ndarray):
        raise ValueError(f"{name} is no array")
    array = aligned_empty(entry.shape, entry.dtype)
    array[...] = entry
    return array


def _declared(entry: npt.NDArray[Any] | None, path: str | os.PathLike[str]) -> dict[str, str]:
    if entry is None:
        return {}
    try:
        dtypes = json.loads(str(entry))
        if isinstance(dtypes, dict) and all(name in _NAMED_DTYPES for name in dtypes.values()):
            return dtypes
    except (ValueError, TypeError):
        pass
    raise ValueError(
        f"{Path(path)}: {DTYPES_ENTRY} is {str(entry)!r}; allowed: a JSON object from array names to "
        f"{' or '.join(_NAMED_DTYPES)}"
    )


def _restored(name: str, array: npt.NDArray[Any], declared: str | None, path: str | os.PathLike[str]) -> Any:
    if declared is not None:
        dtype = np.dtype(_NAMED_DTYPES[declared])
        if array.dtype.kind not in _RAW_KINDS or array.dtype.itemsize != dtype.itemsize:
            raise ValueError(
                f"{Path(path)}: {name} is stored as {array.dtype} and declared {declared}; allowed: "
                f"integers of {8 * dtype.itemsize} bits"
            )
        array = array.view(dtype)
    elif array.dtype.kind == "V":
        raise ValueError(
            f"{Path(path)}: {name} has dtype {array.dtype.str}, which says nothing about its values; declare "
            f'it in {DTYPES_ENTRY}, a JSON text such as {{{json.dumps(name)}: "bfloat16"}}'
        )
    return array if array.ndim else array.item()
