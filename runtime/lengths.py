"""Index arrays: sequence lengths, prefix sums and the block table, cast and checked."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsmla.runtime.attributes import refuse, refuse_kind

INT32_MAX: Final = 2**31 - 1
_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)


def as_array(name: str, value: Any) -> npt.NDArray[Any]:
    """The value if it is a NumPy array whose elements all count.

    Raises:
        TypeError: no array, or a masked one, whose mask would be ignored.
    """
    if type(value) is np.ndarray:
        return value
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        refuse_kind(name, value, "a NumPy array")
    return value.view(np.ndarray)


def check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int | str, ...]) -> None:
    """Check the shape of an array; a dimension given as text may have any size.

    Raises:
        ValueError: the shape differs; the text shows both.
    """
    if shape == wanted:
        return
    # A loop, not all() over a generator: this runs several times a call.
    if len(shape) == len(wanted):
        for have, want in zip(shape, wanted, strict=True):
            if have != want and type(want) is int:
                break
        else:
            return
    raise ValueError(f"{name} has shape {shape}; allowed: [{', '.join(map(str, wanted))}]")


def as_int32(name: str, value: Any) -> npt.NDArray[np.int32]:
    """An int32 array as it is, an int64 array as int32.

    Raises:
        TypeError: no array, or of another dtype.
        ValueError: a value lies outside int32.
    """
    array = as_array(name, value)
    if array.dtype == _INT32:
        return array
    _check_int64(name, array)
    if array.size and (array.min() < -INT32_MAX - 1 or array.max() > INT32_MAX):
        outside = array[(array < -INT32_MAX - 1) | (array > INT32_MAX)]
        refuse(f"{name} holds a value that", int(outside[0]), "values of int32")
    return array.astype(np.int32)


def as_lengths(name: str, value: Any, batch: int | None) -> npt.NDArray[np.int32]:
    """One integer per request, int32 [batch], from an int32 or int64 array or a sequence of ints.

    Raises:
        TypeError: neither of those.
        ValueError: another number of values than batch (None: any number), or a value outside int32.
    """
    if isinstance(value, (list, tuple)):
        value = _from_sequence(name, value)
    lengths = as_int32(name, value)
    check_shape(name, lengths.shape, ("B" if batch is None else batch,))
    return lengths


def check_counts(name: str, lengths: npt.NDArray[np.int32], upper: int, meaning: str) -> None:
    """Check that every length lies in 0..upper.

    Raises:
        ValueError: one does not; the text says which, and what upper means.
    """
    if not len(lengths):
        return
    # Up to about a hundred requests a list is faster than a reduction.
    values = lengths.tolist() if len(lengths) < 128 else [int(lengths.min()), int(lengths.max())]
    if not 0 <= min(values) <= max(values) <= upper:
        first = next(i for i, length in enumerate(lengths.tolist()) if not 0 <= length <= upper)
        refuse(f"{name}[{first}]", int(lengths[first]), f"0..{upper} ({meaning})")


def check_prefix_sums(name: str, sums: npt.NDArray[np.int32], upper: int, meaning: str) -> None:
    """Check inclusive prefix sums: not negative, non-decreasing, the last at most upper.

    Raises:
        ValueError: they are not; the text says which one.
    """
    if not len(sums):
        return
    falls = sums[1:] < sums[:-1]
    if np.count_nonzero(falls):
        first = int(falls.argmax()) + 1
        refuse(
            f"{name}[{first}]",
            int(sums[first]),
            f"non-decreasing prefix sums, here {sums[first - 1]} or more",
        )
    if sums[0] < 0:
        refuse(f"{name}[0]", int(sums[0]), "prefix sums of 0 or more")
    if sums[-1] > upper:
        refuse(f"{name}[{len(sums) - 1}]", int(sums[-1]), f"at most {upper} ({meaning})")


def as_block_table(
    value: Any,
    kv_lengths: npt.NDArray[np.int32],
    page_size: int,
    pages: int,
    *,
    name: str = "block_table",
    lengths_name: str = "actual_seq_lengths_kv",
    cache_name: str = "key",
) -> npt.NDArray[np.int32]:
    """The block table as int32 [B, width], each entry in use checked; the others are never looked at.

    Raises:
        TypeError: neither an int32 nor an int64 array.
        ValueError: wrong shape, or an entry in use is no page of the cache.
    """
    table = as_array(name, value)
    if table.dtype != _INT32:
        _check_int64(name, table)
    check_shape(name, table.shape, (len(kv_lengths), "width >= ceil(max kv_len / block_size)"))
    width = table.shape[1]
    check_counts(lengths_name, kv_lengths, min(width * page_size, INT32_MAX), f"{name}'s width in tokens")
    unsigned: npt.NDArray[Any] = table.view(np.uint32 if table.dtype == _INT32 else np.uint64)
    inside = unsigned < pages
    if np.count_nonzero(inside) != inside.size:
        # Only entries behind the last used page may be anything.
        used = np.arange(width) < -(-kv_lengths[:, None].astype(np.int64) // page_size)
        wrong = used & ~inside
        if wrong.any():
            row, page = (int(n) for n in np.argwhere(wrong)[0])
            allowed = f"0..{pages - 1}, the pages of {cache_name}"
            refuse(f"{name}[{row}, {page}]", int(table[row, page]), allowed)
    # What does not fit wraps: it is behind the last used page.
    return table.astype(np.int32, copy=False)


def _check_int64(name: str, array: npt.NDArray[Any]) -> None:
    if array.dtype != _INT64:
        raise TypeError(f"{name} is dtype {array.dtype}; allowed: int32, int64")


def _from_sequence(name: str, values: list[Any] | tuple[Any, ...]) -> npt.NDArray[np.int32]:
    for value in values:
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            refuse_kind(f"an element of {name}", value, "integers")
        if not -INT32_MAX - 1 <= value <= INT32_MAX:
            refuse(f"{name} holds a value that", value, "values of int32")
    return np.array(values, np.int32)
