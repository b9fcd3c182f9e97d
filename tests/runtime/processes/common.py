"""What the scripts share: calls of small kernels that the tests compile anyway."""

from __future__ import annotations

import sys
from pathlib import Path

# A script runs in a process of its own, without pytest's search path.
sys.path.insert(0, str(Path(__file__).parents[2]))

from compiled import arguments_of, run
from matrix.cases import find
from plain import Arguments

PAGED = find(layout_query="TND", layout_kv="PA_BSND", sparse_mode=0, sparse_block_size=1)
PLAIN = find(layout_query="BSND", layout_kv="BSND", sparse_mode=0, sparse_block_size=1)


def call(seed: int = 0, rows: int = 4) -> Arguments:
    """A few rows of five key blocks each, so that every worker gets some."""
    spec = (PAGED, PLAIN)[seed % 2]
    return arguments_of(spec, query_counts=(rows, rows), kv_counts=(1200, 1100), selected=1200, seed=seed)


def result(arguments: Arguments) -> bytes:
    """Output and lse."""
    return b"".join(array.tobytes() for array in run(arguments))


def memory(field: str) -> int:
    """Bytes of a field of this process's status: VmRSS now, VmHWM at most since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))
