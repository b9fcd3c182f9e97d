"""The plain values and the lengths of `quant_sparse_flash_mla` calls, checked once and kept for the next.

The layers of a model call with the same lengths one after the other.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from qsmla.runtime.row_keys import MlaAttributes, MlaLengths

_MOST_KEPT: Final = 4096
"""Values of an array; beyond, comparing with what is kept takes as long as it saves."""
_DTYPES: Final = (np.dtype(np.int32), np.dtype(np.int64))


def kept_attributes(**fields: Any) -> MlaAttributes:
    """`MlaAttributes`, checked once.

    Raises:
        TypeError, ValueError: as `MlaAttributes`.
    """
    try:
        return _attributes_once(**fields)
    except TypeError:
        # Either a wrong kind, or one that cannot be hashed; without the cache both name the field.
        return MlaAttributes(**fields)


# Typed, since True == 1 == 1.0 and only one of them is allowed.
_attributes_once = functools.lru_cache(maxsize=256, typed=True)(MlaAttributes)


def kept_lengths(attributes: MlaAttributes, **arguments: Any) -> MlaLengths:
    """`MlaLengths.resolve`: the same object for equal arguments, if they are arrays of few values.

    Raises:
        TypeError, ValueError: as `MlaLengths.resolve`.
    """
    try:
        known = tuple(map(_frozen, arguments.values()))
    except _NotKeptError:
        return MlaLengths.resolve(attributes, **arguments)
    return _lengths_once(attributes, tuple(arguments), known)


class _NotKeptError(Exception):
    """The value is large, or not of the usual kind."""


def _frozen(value: Any) -> Any:
    """An integer, None, the integers of a list, or an array's dtype and bytes."""
    if value is None or type(value) is int:
        return value
    if type(value) in (list, tuple) and len(value) <= _MOST_KEPT and all(type(one) is int for one in value):
        return None, tuple(value)
    usual = type(value) is np.ndarray and value.dtype in _DTYPES and value.ndim == 1
    if usual and value.size <= _MOST_KEPT:
        return value.dtype, value.tobytes()
    raise _NotKeptError


@functools.lru_cache(maxsize=16)
def _lengths_once(attributes: MlaAttributes, names: tuple[str, ...], known: tuple[Any, ...]) -> MlaLengths:
    return MlaLengths.resolve(attributes, **dict(zip(names, map(_thawed, known), strict=True)))


def _thawed(frozen: Any) -> Any:
    if not isinstance(frozen, tuple):
        return frozen
    dtype, values = frozen
    return values if dtype is None else np.frombuffer(values, dtype)
