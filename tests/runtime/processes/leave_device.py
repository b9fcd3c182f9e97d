"""Ends with arrays on a device, a closed device, or an error: leave_device.py ENDING TARGET TESTS."""

from __future__ import annotations

import sys

ending, target, tests = sys.argv[1:]
sys.path.insert(0, tests)

from compiled import arguments_of, run  # noqa: E402
from matrix.cases import some_specs  # noqa: E402

import qsmla  # noqa: E402
from qsmla.runtime import lanes, workers  # noqa: E402

arguments = arguments_of(min(some_specs(), key=lambda spec: spec.heads))
handles = {name: qsmla.to_device(arguments[name], target) for name in ("query", "key", "sparse_indices")}
output, lse = run(arguments | handles | {"value": None}, target)
if ending == "closed":
    workers.close_all()
    try:
        output.numpy()
    except RuntimeError as error:
        print(error)
elif ending == "raised":

    def fail(*_: object) -> None:
        raise RuntimeError("of the test")

    lanes.LoadedKernel._call = fail  # type: ignore[method-assign]
    run(arguments | handles | {"value": None}, target)
print(ending)
