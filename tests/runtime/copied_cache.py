"""Two calls with a cache that cannot be read in place, for a process of their own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from compiled import arguments_of, run
from matrix.cases import find

arguments = arguments_of(find(layout_query="BSND", layout_kv="BSND", sparse_mode=3, sparse_block_size=1))
strided = np.repeat(arguments["key"], 2, axis=1)[:, ::2]
for _ in range(2):
    run(arguments | {"key": strided, "value": None})
