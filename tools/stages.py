"""One call of an operator on one target, stage by stage, and the folder that a failure leaves behind."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import qsmla
from qsmla.compiler.build import plan
from qsmla.compiler.errors import CompileError
from qsmla.compiler.files import naming
from qsmla.compiler.targets import Target
from qsmla.compiler.toolchain import compiler_version, runtime_version
from qsmla.ir.spec import KernelSpec, MlaSpec, Spec
from qsmla.runtime import mla_reference, reference
from qsmla.runtime.checks import check_call
from qsmla.runtime.compare import Comparison, compare
from qsmla.runtime.jobs import Check
from qsmla.runtime.kernels import kernel_for, resolve_target
from qsmla.runtime.lanes import Lane
from qsmla.runtime.mla_checks import check_mla_call
from qsmla.runtime.npz import load_npz, save_npz
from qsmla.runtime.reference import Attended
from qsmla.runtime.workers import pool

STAGES: Final = ("compile", "load", "run", "compare")
BESIDE: Final = "llvm-cpu"
"""The target whose result a result is held against, besides the reference."""


class StageError(AssertionError):
    """A call did not pass a stage; one class for each, so that a failure can be expected by its stage."""


class CompileStageError(StageError):
    """The kernel did not compile."""


class LoadStageError(StageError):
    """No device here runs the kernel, or the device does not take it."""


class RunStageError(StageError):
    """The call raised."""


class CompareStageError(StageError):
    """The result is wrong."""


ERRORS: Final = dict(
    zip(STAGES, (CompileStageError, LoadStageError, RunStageError, CompareStageError), strict=True)
)


def reference_of(spec: Spec, arguments: dict[str, Any]) -> Attended:
    """The float64 results of a call of the operator that `spec` is a kernel of."""
    if isinstance(spec, MlaSpec):
        return mla_reference.attend(check_mla_call(**arguments))
    return reference.attend(check_call(**arguments))


@dataclass(kw_only=True)
class Attempt:
    """A call, how far it came, and what it gave."""

    spec: Spec
    target: str
    arguments: dict[str, Any] = field(repr=False)
    """The operator's arguments, without target, out and return_softmax_lse."""
    failed_stage: str | None = None
    """The stage that it did not pass; None if it passed all."""
    reason: str = ""
    """What went wrong."""
    results: dict[str, dict[str, npt.NDArray[Any]]] = field(default_factory=dict, repr=False)
    """`output` and `lse` by who computed them: the target, "reference", "llvm-cpu"."""
    comparison: Comparison | None = None
    """With the reference."""

    @property
    def passed(self) -> bool:
        """Whether it passed all stages."""
        return self.failed_stage is None

    def check(self, folder: Path | None = None) -> None:
        """Raise the error of the stage that failed, if one did; with a folder, first leave the case there.

        Raises:
            StageError: a stage failed.
        """
        if self.failed_stage is None:
            return
        where = ""
        if folder is not None:
            save(self, folder)
            where = f"\nrun it again: qsmla replay {folder}"
        text = f"{self.spec.label} on {self.target} failed at stage {self.failed_stage}: {self.reason}{where}"
        raise ERRORS[self.failed_stage](text)


def attempt(
    spec: Spec,
    arguments: dict[str, Any],
    target: str,
    *,
    out: npt.NDArray[Any] | None = None,
    beside: str | None = BESIDE,
) -> Attempt:
    """Compile, load and run a call, and compare its result with the reference and another target's.

    Args:
        spec: the kernel that the arguments ask for.
        arguments: the operator's, by name; return_softmax_lse is added.
        target: what to run on.
        out: the operator's `out`.
        beside: the other target; None, or the target itself, for none.
    """
    made = Attempt(spec=spec, target=target, arguments=arguments)
    steps: tuple[Callable[[Attempt], str | None], ...] = (
        _compile,
        _load,
        partial(_run, out=out),
        partial(_compare, beside=beside),
    )
    for stage, step in zip(STAGES, steps, strict=True):
        try:
            reason = step(made)
        except CompileError as error:
            reason = error.summary
        except Exception as error:  # whatever a back end raises is that stage's failure
            reason = f"{type(error).__name__}: {error}"
        if reason:
            made.failed_stage, made.reason = stage, reason
            break
    return made


def _compile(made: Attempt) -> str | None:
    kernel_for(made.spec, Target.parse(made.target))
    return None


def _load(made: Attempt) -> str | None:
    target = resolve_target(made.target)
    kernel = kernel_for(made.spec, target)

    def load(lane: Lane, check: Check) -> None:
        lane.load(kernel)

    pool(target).run([load])
    return None


def _run(made: Attempt, out: npt.NDArray[Any] | None) -> str | None:
    output, _ = _call(made, made.target, **({} if out is None else {"out": out}))
    query = made.arguments["q" if isinstance(made.spec, MlaSpec) else "query"]
    if output.itemsize != 2 or output.shape != (*query.shape[:-1], 512):
        return f"the output is {output.dtype} {output.shape}"
    if out is not None and output is not out:
        return "the output is not the array that was given for it"
    return None


def _compare(made: Attempt, beside: str | None) -> str | None:
    expected = reference_of(made.spec, made.arguments)
    made.results["reference"] = {"output": expected.output, "lse": expected.lse, "vmax": expected.vmax}
    made.comparison = _held_against(made.results[made.target], expected)
    if not made.comparison.passed:
        return f"differs from the reference: {made.comparison}"
    if beside is None or Target.parse(beside) == Target.parse(made.target):
        return None
    output, lse = _call(made, beside)
    rows = output.astype(np.float64).reshape(expected.output.shape)
    other = Attended(rows, lse.astype(np.float64).reshape(expected.lse.shape), expected.vmax)
    found = _held_against(made.results[made.target], other)
    return None if found.passed else f"differs from {beside}: {found}"


def _call(made: Attempt, target: str, **more: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Output and lse on a target, kept in the results."""
    operator = getattr(qsmla, made.spec.operator)
    output, lse = operator(**made.arguments, return_softmax_lse=True, target=target, **more)
    made.results[target] = {"output": output, "lse": lse}
    return output, lse


def _held_against(result: dict[str, npt.NDArray[Any]], expected: Attended) -> Comparison:
    return compare(
        result["output"], expected.output, expected.vmax, lse=result["lse"], reference_lse=expected.lse
    )


def save(made: Attempt, folder: Path) -> None:
    """Leave a case in a folder: inputs, MLIR, command, every result, and what went wrong.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work = plan(made.spec, made.target)
    for name, text in {"kernel.mlir": work.source, **work.files}.items():
        (folder / name).write_text(text)
    command = shlex.join(["iree-compile", "kernel.mlir", "-o", "kernel.vmfb", *work.record.flags])
    (folder / "command.txt").write_text(f"{command}\n")
    inputs = {name: value for name, value in made.arguments.items() if value is not None and name != "value"}
    save_npz(folder / "inputs.npz", **inputs)
    for name, arrays in made.results.items():
        save_npz(folder / f"{name.replace(':', '-')}.npz", **arrays)
    case = {
        "spec": made.spec.to_dict(),
        "target": made.target,
        "failed_stage": made.failed_stage,
        "reason": made.reason,
        "versions": {"compiler": compiler_version(), "runtime": runtime_version()},
    }
    (folder / "case.json").write_text(json.dumps(case, indent=2) + "\n")


def read(folder: Path) -> Attempt:
    """The attempt that `save` left, without its results.

    Raises:
        ValueError: the folder holds no case.
        OSError: a file of it is missing or cannot be read.
    """
    try:
        with naming(folder / "case.json"):
            text = (folder / "case.json").read_text()
        case = json.loads(text)
        spec, target = Spec.from_dict(case["spec"]), str(case["target"])
        stage, reason = case["failed_stage"], str(case["reason"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / 'case.json'} describes no case: {error}") from error
    arguments = load_npz(folder / "inputs.npz")
    if isinstance(spec, KernelSpec):
        arguments["value"] = None
    return Attempt(spec=spec, target=target, arguments=arguments, failed_stage=stage, reason=reason)
