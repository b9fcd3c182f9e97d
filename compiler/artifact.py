"""Artifacts: one .vmfb file that says what it is and whether it fits this machine.

A .vmfb is also a zip archive. The archive's comment is the seal: the version of the format, IREE's version
and a digest of all bytes before it, so that a file that is cut short, altered or made by another IREE is
refused before IREE's loader sees it. Everything else an artifact knows about itself is in the
`iree.reflection` of its functions, as one JSON text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qsmla.compiler import files
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.targets import Target
from qsmla.compiler.toolchain import runtime_version
from qsmla.ir.schedule import Schedule
from qsmla.ir.spec import Spec

FORMAT_VERSION: Final = 1
REFLECTION_KEY: Final = "qsmla.artifact"
"""The key of `iree.reflection` whose text is `Record.to_json()`."""

_ZIP_HEADER: Final = b"PK\x03\x04"
_ZIP_END: Final = struct.Struct("<4s4H2LH")
_ZIP_END_MAGIC: Final = b"PK\x05\x06"


@dataclass(frozen=True)
class Record:
    """What an artifact says about itself.

    Attributes:
        spec: the kernel.
        schedule: how it is arranged.
        targets: what it is compiled for.
        versions: of qsmla and iree-base-compiler.
        source_hash: SHA-256 over what the MLIR text is made from (kernel, schedule, templates), in
            hexadecimal.
        flags: the flags of iree-compile.
    """

    spec: Spec
    schedule: Schedule
    targets: tuple[Target, ...]
    versions: dict[str, str]
    source_hash: str
    flags: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record, as plain values that JSON takes."""
        return {
            "format": FORMAT_VERSION,
            "spec": self.spec.to_dict(),
            "schedule": dataclasses.asdict(self.schedule),
            "targets": [target.to_dict() for target in self.targets],
            "versions": self.versions,
            "source_hash": self.source_hash,
            "flags": list(self.flags),
        }

    def to_json(self) -> str:
        """The record as JSON, the same text for the same record."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The inverse of `to_json`.

        Raises:
            ValueError, KeyError, TypeError: the text is no record of this version.
        """
        fields = json.loads(text)
        schedule: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields["schedule"].items()
        }
        return cls(
            Spec.from_dict(fields["spec"]),
            Schedule(**schedule),
            tuple(Target.from_dict(target) for target in fields["targets"]),
            dict(fields["versions"]),
            str(fields["source_hash"]),
            tuple(fields["flags"]),
        )


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel.

    Attributes:
        data: the bytes of the .vmfb file, seal included.
        record: what it says about itself.
        path: the file it came from or was written to; None for one that is only in memory.
    """

    data: bytes = dataclasses.field(repr=False)
    record: Record
    path: Path | None = None

    @property
    def spec(self) -> Spec:
        """The kernel."""
        return self.record.spec

    @property
    def schedule(self) -> Schedule:
        """How the kernel is arranged."""
        return self.record.schedule

    @property
    def targets(self) -> tuple[Target, ...]:
        """What it is compiled for."""
        return self.record.targets

    @property
    def cpu_features(self) -> tuple[str, ...]:
        """LLVM's names of the CPU features it may use beyond the baseline; empty without a CPU target."""
        return tuple(name for target in self.targets for name in target.cpu_features)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of qsmla and iree-base-compiler that made it."""
        return self.record.versions

    @property
    def source_hash(self) -> str:
        """SHA-256 over what the MLIR text is made from: the kernel, the schedule and the templates."""
        return self.record.source_hash

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, check_machine: bool = True) -> Artifact:
        """Read an artifact back; needs neither a device nor the compiler.

        An artifact holds machine code: load only what you trust.

        Args:
            path: a .vmfb file that qsmla wrote.
            check_machine: also refuse an artifact none of whose targets this machine can run.

        Raises:
            ArtifactError: not an artifact, cut short, altered, of another version, or not for this machine.
            OSError: the file cannot be read.
        """
        file = Path(path)
        with files.naming(file):
            data = file.read_bytes()
        artifact = cls.from_bytes(data, name=str(file))
        if check_machine and (reason := artifact.unmet()):
            raise ArtifactError(f"{file} cannot run here: {reason}")
        return dataclasses.replace(artifact, path=file)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the data") -> Artifact:
        """The artifact that `data`, the content of a file, holds; `name` is for error texts.

        Raises:
            ArtifactError: as `load`, the machine apart.
        """
        _check_seal(data, name)
        try:
            record = Record.from_json(_reflection(data, name))
        except ArtifactError:
            raise
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ArtifactError(
                f"{name} does not describe itself in a way this version reads: {error}"
            ) from error
        return cls(data, record)

    def contents(self) -> dict[str, int]:
        """Name and size in bytes of each part: the module, and the executables of each target."""
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            return {entry.filename: entry.file_size for entry in archive.infolist()}

    def unmet(self) -> str | None:
        """Why this machine can run none of the targets, in one sentence; None if it can run one."""
        reasons = [target.unmet() for target in self.targets]
        return None if None in reasons else "; ".join(dict.fromkeys(map(str, reasons)))

    def write(self, path: str | os.PathLike[str]) -> Artifact:
        """Write the file, all of it or none, and return the artifact at its new path.

        Raises:
            OSError: the folder is missing, full or not writable.
        """
        files.write(path, self.data)
        return dataclasses.replace(self, path=Path(path))


def seal(vmfb: bytes, iree_version: str) -> bytes:
    """The .vmfb with its seal as the archive's comment.

    Raises:
        ArtifactError: not a .vmfb that ends as a zip archive without a comment.
    """
    if _zip_comment(vmfb) != b"":
        raise ArtifactError("iree-compile wrote a file that is not a zip archive without a comment")
    body = vmfb[:-2]
    digest = hashlib.sha256(body).hexdigest()
    comment = json.dumps({"qsmla": FORMAT_VERSION, "iree": iree_version, "sha256": digest}).encode()
    return body + struct.pack("<H", len(comment)) + comment


def _zip_comment(data: bytes) -> bytes | None:
    """The archive's comment, or None where the end of the archive is not to be found."""
    start = data.rfind(_ZIP_END_MAGIC, -_ZIP_END.size - 0xFFFF)
    if not data.startswith(_ZIP_HEADER) or start < 0 or len(data) < start + _ZIP_END.size:
        return None
    comment = data[start + _ZIP_END.size :]
    (length,) = _ZIP_END.unpack_from(data, start)[-1:]
    return comment if length == len(comment) else None


def _check_seal(data: bytes, name: str) -> None:
    """Raise ArtifactError unless `data` is whole and made by this format and this IREE."""
    if not data.startswith(_ZIP_HEADER):
        what = "empty" if not data else "no .vmfb file of qsmla"
        raise ArtifactError(f"{name} is {what}")
    comment = _zip_comment(data)
    if comment is None:
        raise ArtifactError(f"{name} is cut short or damaged: the end of the archive is missing")
    try:
        stamp = json.loads(comment)
        version, iree, digest = int(stamp["qsmla"]), str(stamp["iree"]), str(stamp["sha256"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ArtifactError(f"{name} was not written by qsmla (no seal), or its seal is damaged") from None
    if version > FORMAT_VERSION:
        raise ArtifactError(
            f"{name} has artifact format {version}, newer than this version of qsmla reads ({FORMAT_VERSION})"
        )
    body = data[: len(data) - len(comment) - 2]
    if hashlib.sha256(body).hexdigest() != digest:
        raise ArtifactError(f"{name} is damaged: its content does not match its SHA-256 digest")
    if iree != runtime_version():
        raise ArtifactError(
            f"{name} was compiled by IREE {iree}, and the installed IREE runtime is {runtime_version()}"
        )


def _reflection(data: bytes, name: str) -> str:
    """The JSON text in the reflection of the module's functions."""
    import iree.runtime

    from qsmla.compiler.virtual_machine import INSTANCE

    try:
        module = iree.runtime.VmModule.copy_buffer(INSTANCE, data)
        texts = {
            text
            for function in module.function_names
            if (text := module.lookup_function(function).reflection.get(REFLECTION_KEY))
        }
    except (RuntimeError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ArtifactError(f"{name} is not a module that IREE loads: {first_line}") from error
    if len(texts) != 1:
        raise ArtifactError(f"{name} holds {len(texts)} descriptions of itself; an artifact holds one")
    return str(texts.pop())
