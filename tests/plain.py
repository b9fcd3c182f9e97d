"""The specification in plain loops, from a call's raw arguments: what is attended, and the attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from qsmla.runtime.packing import unpack_kv
from qsmla.runtime.reference import kv_quant_sparse_flash_attention

Arguments = dict[str, Any]


def run(arguments: Arguments) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Output and lse of the reference."""
    output, lse = kv_quant_sparse_flash_attention(**arguments, return_softmax_lse=True)
    return output, lse


def bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of 16 bits as integers, so that NaN and signed zeros compare."""
    return array.view(np.uint16)


def counts(arguments: Arguments, which: str) -> list[int]:
    """Tokens of each request, on the query's or the cache's side."""
    lengths = arguments[f"actual_seq_lengths_{which}"]
    ragged = arguments[f"layout_{which}"] == "TND"
    return list(map(int, np.diff(lengths, prepend=0) if ragged else lengths))


def rows_of(arguments: Arguments) -> list[tuple[tuple[int, ...], int, int]]:
    """Index of each query row that belongs to a request, the request, and the row's place in it."""
    rows: list[tuple[tuple[int, ...], int, int]] = []
    for b, count in enumerate(counts(arguments, "query")):
        start = 0 if b == 0 else int(arguments["actual_seq_lengths_query"][b - 1])
        for s in range(count):
            rows.append(((start + s,) if arguments["layout_query"] == "TND" else (b, s), b, s))
    return rows


def cache_index(arguments: Arguments, b: int, token: int) -> tuple[int, ...]:
    """Where a request's token lies in key."""
    if arguments["layout_kv"] == "BSND":
        return b, token
    if arguments["layout_kv"] == "TND":
        return ((0 if b == 0 else int(arguments["actual_seq_lengths_kv"][b - 1])) + token,)
    page_size = arguments["key"].shape[1]
    return int(arguments["block_table"][b, token // page_size]), token % page_size


def plain_tokens(arguments: Arguments, row: tuple[int, ...], b: int, s: int) -> list[int]:
    """The specification's pseudo-code."""
    q_len, kv_len = counts(arguments, "query")[b], counts(arguments, "kv")[b]
    block = arguments["sparse_block_size"]
    limit = kv_len if arguments["sparse_mode"] == 0 else kv_len - q_len + s + 1
    tokens: list[int] = []
    for index in arguments["sparse_indices"][row][0].tolist():
        if index < 0 or index * block >= min(limit, kv_len):
            continue
        tokens.extend(range(index * block, min((index + 1) * block, limit, kv_len)))
    return tokens


def plain_attention(arguments: Arguments) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """One score, one weight, one sum at a time."""
    query = arguments["query"]
    nope, rope = unpack_kv(arguments["key"], arguments["kv_dtype"], query.dtype, arguments["byte_order"])
    output = np.zeros((*query.shape[:-1], 512))
    lse = np.full(query.shape[:-1], -np.inf)
    for row, b, s in rows_of(arguments):
        places = [cache_index(arguments, b, token) for token in plain_tokens(arguments, row, b, s)]
        values = [nope[place][0].astype(query.dtype).astype(np.float64) for place in places]
        keys = [
            np.concatenate([v, rope[p][0].astype(np.float64)]) for v, p in zip(values, places, strict=True)
        ]
        for head in range(query.shape[-2]):
            q = query[row][head].astype(np.float64)
            scores = [float(np.float32(arguments["scale_value"])) * math.fsum(q * key) for key in keys]
            if not scores:
                continue
            weights = [math.exp(score - max(scores)) for score in scores]
            total = math.fsum(weights)
            output[(*row, head)] = sum(w * v for w, v in zip(weights, values, strict=True)) / total
            lse[(*row, head)] = max(scores) + math.log(total)
    return output, lse


def poison(arguments: Arguments) -> Arguments:
    """The same call with NaN in every cache row that no query row attends to."""
    key = arguments["key"].copy()
    used = {
        cache_index(arguments, b, token)
        for row, b, s in rows_of(arguments)
        for token in plain_tokens(arguments, row, b, s)
    }
    rows = key.view(np.uint8)
    for place in np.ndindex(*key.shape[:-2]):
        if place not in used:
            rows[place] = 0xFF  # NaN as e4m3 code, as bfloat16, as float16 and as float32
    return arguments | {"key": key, "value": key}


def assert_same_bits(a: Arguments, b: Arguments) -> None:
    """Assert that two calls have the same finite results."""
    (output_a, lse_a), (output_b, lse_b) = run(a), run(b)
    np.testing.assert_array_equal(bits(output_a), bits(output_b))
    np.testing.assert_array_equal(lse_a, lse_b)
    assert np.isfinite(output_a.astype(np.float32)).all()


def assert_same_bytes(
    results: tuple[npt.NDArray[Any], ...], expected: tuple[npt.NDArray[Any], ...], rows: Any = slice(None)
) -> None:
    """Whether results are, byte for byte, some rows of others."""
    for result, wanted in zip(results, expected, strict=True):
        assert result.tobytes() == wanted[rows].tobytes()
