"""A caller whose own stack is too small for a kernel gets its result all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys, threading
import ml_dtypes, numpy as np, qsmla

random = np.random.default_rng(0)
nope, rope = random.standard_normal((1, 300, 1, 512), np.float32), random.standard_normal((1, 300, 1, 64))
key = qsmla.pack_kv(nope, rope.astype(ml_dtypes.bfloat16), "int8")
query = random.standard_normal((1, 2, 16, 576)).astype(ml_dtypes.bfloat16)
indices = random.integers(0, 300, (1, 2, 1, 280)).astype(np.int32)
results = []

def call():
    results.append(qsmla.kv_quant_sparse_flash_attention(query, key, None, indices, 0.05, sparse_mode=0))

if sys.argv[1] == "thread":
    threading.stack_size(128 << 10)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
else:
    call()
expected = qsmla.reference.kv_quant_sparse_flash_attention(query, key, None, indices, 0.05, sparse_mode=0)
print(np.abs(results[0].astype(np.float32) - expected.astype(np.float32)).max())
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["thread", "main"])
def test_small_stack(where: str, workers: int) -> None:
    limit = "ulimit -s 512; " if where == "main" else ""
    command = f'{limit}QSMLA_NUM_WORKERS={workers} exec "$0" -c "$1" {where}'
    finished = subprocess.run(
        ["bash", "-c", command, sys.executable, _PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    assert float(finished.stdout) < 0.01
