"""How much many calls of different sizes leave behind, in bytes."""

from __future__ import annotations

from common import call, memory, result

calls = [call(seed, rows) for seed in range(2) for rows in (1, 2, 3, 5, 8)]
for arguments in calls * 2:
    result(arguments)
before = memory("VmRSS")
for arguments in calls * 15:
    result(arguments)
print(memory("VmRSS") - before)
