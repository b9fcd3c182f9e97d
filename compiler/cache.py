"""The artifact cache: one file an entry, named by a hash of everything that went into it."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import filelock
import platformdirs

from qsmla.compiler.artifact import Artifact
from qsmla.compiler.errors import ArtifactError
from qsmla.compiler.files import STAGING_SUFFIX

ENVIRONMENT_VARIABLE: Final = "QSMLA_CACHE_DIR"
_SUFFIX: Final = ".vmfb"
_LOCK_SUFFIX: Final = ".lock"
_logger = logging.getLogger(__name__)
_warned: set[Path] = set()
_warned_guard = threading.Lock()


def default_folder() -> Path:
    """The folder that QSMLA_CACHE_DIR names, else the user's cache folder for qsmla."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    # Not Path.expanduser, which raises for a user that does not exist: such a name is taken as it stands.
    return (
        Path(os.path.expanduser(named))
        if named
        else Path(platformdirs.user_cache_dir("qsmla", appauthor=False))
    )


@dataclass(frozen=True)
class Entry:
    """One file of the cache.

    Attributes:
        path: the file.
        size: its bytes.
    """

    path: Path
    size: int


class ArtifactCache:
    """Artifacts by key, in a folder that several processes may share.

    An entry is written beside its place and renamed into it, so a reader sees all of it or nothing; a lock
    a key makes sure that two processes compile a kernel once. The cache only ever saves time: a folder that
    is missing, read-only or full costs one warning per process and nothing else.

    Args:
        folder: where the entries lie; None for `default_folder()`. It is made when first written to.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()

    def path(self, key: str) -> Path:
        """Where the entry of `key` lies, whether it exists or not."""
        return self.folder / f"{key}{_SUFFIX}"

    def get(self, key: str, source_hash: str) -> Artifact | None:
        """The entry of `key`; None if there is none, or none that is whole and of that source."""
        path = self.path(key)
        try:
            artifact = Artifact.load(path, check_machine=False)
        except FileNotFoundError:
            return None
        except (ArtifactError, OSError) as error:
            _logger.info("cache entry is rebuilt: %s", error)
            return None
        return artifact if artifact.source_hash == source_hash else None

    def get_or_build(self, key: str, source_hash: str, build: Callable[[], Artifact]) -> Artifact:
        """The entry of `key`, built and stored first if need be.

        Raises:
            whatever `build` raises; nothing is stored then.
        """
        if found := self.get(key, source_hash):
            return found
        with self._locked(key):
            if found := self.get(key, source_hash):
                return found
            artifact = build()
            try:
                return artifact.write(self.path(key))
            except OSError as error:
                self._warn(error)
                return artifact

    def entries(self) -> list[Entry]:
        """All entries, by name."""
        return [Entry(path, size) for path, size in self._files(_SUFFIX)]

    def clear(self) -> tuple[int, int]:
        """Delete all entries and what interrupted writers left; the entries deleted and their bytes.

        Raises:
            OSError: an entry cannot be deleted.
        """
        count = freed = 0
        for path, size in self._files(_SUFFIX):
            path.unlink(missing_ok=True)
            count, freed = count + 1, freed + size
        for path, _ in self._files(STAGING_SUFFIX):
            path.unlink(missing_ok=True)
        for path, _ in self._files(_LOCK_SUFFIX):
            # A lock that somebody holds stays: a kernel is being compiled under it.
            with suppress(filelock.Timeout), filelock.FileLock(path, timeout=0):
                path.unlink(missing_ok=True)
        return count, freed

    def _files(self, suffix: str) -> Iterator[tuple[Path, int]]:
        try:
            names = sorted(os.listdir(self.folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if name.endswith(suffix):
                path = self.folder / name
                try:
                    yield path, path.stat().st_size
                except FileNotFoundError:
                    continue

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Hold the lock of `key`; where the folder does not allow locks, warn and go on without."""
        lock = filelock.FileLock(self.folder / f"{key}{_LOCK_SUFFIX}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except (OSError, NotImplementedError) as error:
            self._warn(error)
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def _warn(self, error: Exception) -> None:
        """Say once per process and folder that it is of no use."""
        with _warned_guard:
            if self.folder in _warned:
                return
            _warned.add(self.folder)
        warnings.warn(
            f"the artifact cache {self.folder} cannot be used ({error}); kernels are compiled anew in each "
            f"process. Set {ENVIRONMENT_VARIABLE} to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )
