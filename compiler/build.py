"""From a specification to an artifact: render, look in the cache, compile what is not there."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsmla.compiler import diagnostics, toolchain
from qsmla.compiler.artifact import REFLECTION_KEY, Artifact, Record, seal
from qsmla.compiler.cache import ArtifactCache
from qsmla.compiler.errors import ArtifactError, CompileError, CompilerMissingError
from qsmla.compiler.targets import Target, common_schedule, compile_flags, parse_targets
from qsmla.ir.render import generator_digest
from qsmla.ir.schedule import Schedule
from qsmla.ir.spec import Spec

DEFAULT_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True)
class Plan:
    """One kernel to compile, worked out far enough to know whether the cache has it.

    Attributes:
        record: what the artifact will say about itself.
    """

    record: Record

    @functools.cached_property
    def source(self) -> str:
        """The MLIR text, without what the artifact will say about itself.

        Raises:
            CompilerMissingError: jinja2 is not installed.
        """
        return _render(self.record.spec, self.record.schedule, {})

    @property
    def files(self) -> dict[str, str]:
        """What else the compiler reads, by the names that the flags give it."""
        return {name: text for target in self.record.targets for name, text in target.files.items()}

    @property
    def key(self) -> str:
        """A hash of what makes the source text, the flags, their files and all versions.

        Equal key, equal artifact.
        """
        return _digest(json.dumps([self.record.to_dict(), self.files], sort_keys=True))


def plan(
    spec: Spec,
    target: str | Target | Iterable[str | Target] = "llvm-cpu",
    schedule: Schedule | None = None,
) -> Plan:
    """What it takes to compile `spec` for `target`; renders nothing yet and runs no compiler.

    Raises:
        TypeError, ValueError: `spec` or `target` is no such thing.
    """
    if not isinstance(spec, Spec):
        raise TypeError(f"spec is a {type(spec).__name__}; allowed: a KernelSpec or an MlaSpec")
    targets = parse_targets(target)
    chosen = common_schedule(targets, spec) if schedule is None else schedule
    versions = {
        "qsmla": importlib.metadata.version("qsmla"),
        "iree-base-compiler": toolchain.runtime_version(),
    }
    flags = compile_flags(targets, chosen)
    # The text follows from these three: to hash them takes a millisecond, to render it a third of a second.
    made_from = [spec.to_dict(), dataclasses.asdict(chosen), generator_digest()]
    source_hash = _digest(json.dumps(made_from, sort_keys=True))
    return Plan(Record(spec, chosen, targets, versions, source_hash, flags))


def compile(
    spec: Spec,
    target: str | Target | Iterable[str | Target] = "llvm-cpu",
    *,
    cache: ArtifactCache | bool = True,
    timeout: float = DEFAULT_TIMEOUT_S,
    progress: bool | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Artifact:
    """Compile a kernel ahead of time, or take it from the cache.

    Args:
        spec: the kernel.
        target: what to compile for: one target or several (a comma-separated text or a sequence), which
            then share one artifact. "llvm-cpu" is this machine's CPU.
        cache: where to look first and to store; True for the user's own cache, False for none.
        timeout: seconds after which the compiler is killed.
        progress: show a line on standard error while compiling; None: when that is a terminal.
        output: also write the artifact to this file.

    Raises:
        TypeError, ValueError: an argument is wrong; the text names it.
        CompilerMissingError: a package that compiling needs is not installed.
        CompileError: the compiler refused the kernel, crashed or ran out of time.
        OSError: `output` cannot be written.
    """
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise TypeError(f"timeout is a {type(timeout).__name__}; allowed: a number of seconds above 0")
    if not isinstance(cache, bool | ArtifactCache):
        raise TypeError(f"cache is a {type(cache).__name__}; allowed: True, False or an ArtifactCache")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; allowed: a number of seconds above 0")
    work = plan(spec, target)

    def build() -> Artifact:
        with _progress_line(work.record, progress):
            return build_artifact(work, timeout)

    if cache is False:
        artifact = build()
    else:
        store = ArtifactCache() if cache is True else cache
        artifact = store.get_or_build(work.key, work.record.source_hash, build)
    return artifact if output is None else artifact.write(output)


def build_artifact(work: Plan, timeout: float = DEFAULT_TIMEOUT_S) -> Artifact:
    """Run the compiler on `work`, past any cache.

    Raises:
        CompilerMissingError, CompileError: as `compile`.
    """
    tool = toolchain.find_tool()
    _check_versions()
    record = work.record
    text = _render(record.spec, record.schedule, {REFLECTION_KEY: record.to_json()})
    diagnostics.check_parses(text, record.spec.label)
    with tempfile.TemporaryDirectory(prefix="qsmla-") as folder:
        vmfb = Path(folder, "kernel.vmfb")
        sources = {"kernel.mlir": text, **work.files}
        for name, content in sources.items():
            Path(folder, name).write_text(content)
        # Relative names: the file's path ends up in the artifact, and equal keys shall give equal bytes.
        command = (tool, "kernel.mlir", "-o", "kernel.vmfb", *record.flags)
        finished = toolchain.run(command, timeout, folder)
        if finished.returncode != 0 or finished.timed_out or not vmfb.exists():
            raise diagnostics.compile_error(sources, record.spec.label, command, finished, timeout)
        data = vmfb.read_bytes()
    try:
        artifact = Artifact.from_bytes(seal(data, record.versions["iree-base-compiler"]), record.spec.label)
    except ArtifactError as error:
        raise CompileError(f"iree-compile left an unusable file: {error}") from error
    for target in record.targets:
        if not any(target.executable in name for name in artifact.contents()):
            raise CompileError(f"iree-compile left {record.spec.label} without code for {target.label}")
    return artifact


def _render(spec: Spec, schedule: Schedule, reflection: dict[str, str]) -> str:
    if importlib.util.find_spec("jinja2") is None:
        raise CompilerMissingError("jinja2")
    from qsmla.ir.render import render

    return render(spec, schedule, reflection)


def _check_versions() -> None:
    """The .vmfb ABI may change between releases: refuse to write what the installed runtime may misread."""
    compiler, runtime = toolchain.compiler_version(), toolchain.runtime_version()
    if compiler != runtime:
        raise CompileError(
            f"iree-base-compiler {compiler} and iree-base-runtime {runtime} differ; install the same version "
            "of both: pip install 'qsmla[compiler]'"
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def _progress_line(record: Record, wanted: bool | None) -> Iterator[None]:
    """A line on standard error that stands there while a kernel compiles."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    labels = ", ".join(target.label for target in record.targets)
    text = f"compiling {record.spec.label} for {labels}"
    if not sys.stderr.isatty():
        print(text, file=sys.stderr)
        yield
        return
    with Console(stderr=True).status(escape(text)):
        yield
