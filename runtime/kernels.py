"""From a specification or an artifact, and the name of a target, to what runs."""

from __future__ import annotations

import functools
import threading

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.build import compile
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.ir.spec import Spec
from qsmla.runtime.lanes import Kernel

_kernels: dict[tuple[Spec, Target], Kernel] = {}
_kernels_guard = threading.Lock()


def resolve_target(target: str | Target) -> Target:
    """The target called `target`, if this machine runs it.

    Raises:
        TypeError: neither a string nor a Target.
        ValueError: unknown, or nothing here runs it; the text says why.
    """
    if not isinstance(target, str | Target):
        raise TypeError(f"target is a {type(target).__name__}; allowed: a string or a Target")
    return _resolved(target)


@functools.lru_cache(maxsize=64)
def _resolved(target: str | Target) -> Target:
    chosen = target if isinstance(target, Target) else Target.parse(target)
    if reason := chosen.unmet():
        raise ValueError(f"target is {chosen.label!r}, which cannot run here: {reason}")
    return chosen


def target_of(artifact: Artifact, wanted: str | Target | None) -> Target:
    """The one of an artifact's targets that is wanted, if it runs here; None is the first.

    Raises:
        ArtifactError: the artifact is not for it, or this machine does not run it.
    """
    name = wanted.label if isinstance(wanted, Target) else wanted
    for target in artifact.targets:
        if name is None or name in (target.kind, target.label):
            if reason := target.unmet():
                others = [other.label for other in artifact.targets if other.unmet() is None]
                hint = f"; choose another of its targets: {', '.join(others)}" if others else ""
                raise ArtifactError(f"the artifact for {target.label} cannot run here: {reason}{hint}")
            return target
    labels = ", ".join(target.label for target in artifact.targets)
    raise ArtifactError(f"target is {name!r}; the artifact is compiled for {labels}")


def kernel_for(spec: Spec, target: Target) -> Kernel:
    """The kernel from memory, from the cache, or from the compiler.

    Raises:
        CompileError: it is not in the cache and could not be compiled.
    """
    kernel = _kernels.get((spec, target))
    if kernel is None:
        artifact = compile(spec, target)
        with _kernels_guard:
            kernel = _kernels.setdefault((spec, target), Kernel(artifact))
    return kernel
