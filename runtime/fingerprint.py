"""What ties a partition to its call: 64 bits over every length and attribute, kept in the metadata."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsmla.ir.schedule import KEY_BLOCK
from qsmla.runtime.partition import Partition, check_words


def fingerprint(operator: str, fields: Mapping[str, Any]) -> int:
    """64 bits over an operator's lengths and attributes: equal on every machine and in every process.

    Args:
        operator: its name.
        fields: by name: whole numbers, booleans, strings, None, or integer arrays. An array's shape and dtype
            count as well as its values; the order of the names does not.
    """
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{operator}\0".encode())
    for name in sorted(fields):
        value = fields[name]
        if isinstance(value, np.ndarray):
            little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
            digest.update(f"{name}\0{little.dtype.str}{little.shape}\0".encode())
            digest.update(little.data)
        else:
            value = value.item() if isinstance(value, np.generic) else value
            digest.update(f"{name}\0{value!r}\0".encode())
    return int.from_bytes(digest.digest(), "little")


def check_fingerprint(metadata: NDArray[np.int32], expected: int, key_block: int = KEY_BLOCK) -> Partition:
    """Decodes metadata that was made for exactly this call.

    Args:
        metadata: int32 [1024].
        expected: the fingerprint of the call's lengths and attributes.
        key_block: keys in one block of the kernel that is to run it.

    Raises:
        TypeError: `metadata` is no int32 array.
        ValueError: it is no partition, or one of another call or for another block.
    """
    check_words("metadata", metadata)
    partition = _decoded(metadata.tobytes())
    if partition.fingerprint != expected:
        raise ValueError(
            f"metadata was planned for other lengths or attributes: its fingerprint is "
            f"{partition.fingerprint:#018x}; allowed: {expected:#018x}, this call's"
        )
    if partition.key_block != key_block:
        raise ValueError(f"metadata counts blocks of {partition.key_block} keys; allowed: {key_block}")
    return partition


@functools.lru_cache(maxsize=16)
def _decoded(words: bytes) -> Partition:
    """The layers of a model are handed the same words one after the other."""
    return Partition.decode(np.frombuffer(words, np.int32))
