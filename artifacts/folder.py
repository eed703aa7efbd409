"""A folder at any fsspec URL: the only place where files outside a local folder are reached.

An upload is read back, and repeated if other bytes arrived than were sent. That costs a second
transfer and needs no support from the storage.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import fsspec

from artifacts.hashing import hash_file

TRIES = 3  # of an upload
THREADS = 8  # an object store answers in milliseconds, and many files are small
Item = TypeVar("Item")
Result = TypeVar("Result")


class CorruptUpload(OSError):
    """The storage repeatedly returned other bytes than were uploaded."""


@dataclass(frozen=True)
class Folder:
    """A folder of files, at a local path or an fsspec URL (`s3://bucket/prefix`).

    The empty name is the folder itself, which may be a file. It can be pickled: each process opens
    the storage itself.
    """

    url: str

    @cached_property
    def _place(self) -> tuple[Any, str]:
        """The file system, and the folder's path in it."""
        try:
            system, base = fsspec.core.url_to_fs(self.url)
        except (ValueError, ImportError) as error:  # no such protocol, or its package is missing
            raise FileNotFoundError(f"{self.url}: {error}") from error
        return system, base.rstrip("/")

    def __getstate__(self) -> dict[str, str]:
        return {"url": self.url}

    @property
    def path(self) -> Path | None:
        """The local path; None for a folder elsewhere."""
        system, base = self._place
        return Path(base) if "file" in system.protocol else None

    def at(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}" if name else self.url

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        system, _ = self._place
        file: AbstractContextManager[BinaryIO] = system.open(self._remote(name), "rb")
        return file

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Yield the path of a file; of a remote one, that of a copy, removed at the end."""
        remote = Path(self._remote(name))
        if self.path:
            yield remote
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / remote.name
            self.get(name, copy)
            yield copy

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises FileNotFoundError."""
        system, _ = self._place
        return bytes(system.cat_file(self._remote(name)))

    def hash(self, name: str) -> str:
        """Return the sha256 of a file's content. Raises FileNotFoundError."""
        with self._place[0].open(self._remote(name), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def get(self, name: str, target: Path) -> None:
        """Copy a file to a local path. Raises FileNotFoundError."""
        target.parent.mkdir(parents=True, exist_ok=True)
        system, _ = self._place
        system.get_file(self._remote(name), str(target))

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file: a reader sees all of it or none. An object store puts whole objects;
        a local file is written to a temporary place and renamed.
        """
        system, _ = self._place
        path = self._remote(name)
        if not self.path:
            system.pipe_file(path, content)
            return
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        temporary = f"{path}.{uuid.uuid4().hex[:8]}"
        system.pipe_file(temporary, content)
        system.mv(temporary, path)

    def put(self, path: Path, name: str) -> None:
        """Copy a local file here, completely or not at all. Raises CorruptUpload."""
        system, _ = self._place
        self._upload(name, hash_file(path), lambda to: system.put_file(str(path), to))

    def put_bytes(self, content: bytes, name: str) -> None:
        """Upload bytes, for example of a file that still grows. Raises CorruptUpload."""
        system, _ = self._place
        expected = hashlib.sha256(content).hexdigest()
        self._upload(name, expected, lambda to: system.pipe_file(to, content))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it. Raises FileNotFoundError."""
        system, _ = self._place
        system.rm(self._remote(name), recursive=True)

    def size(self, name: str) -> int:
        """Return the bytes of a file, or of all files below a folder."""
        system, _ = self._place
        return int(system.du(self._remote(name)))

    def sizes(self, name: str = "") -> dict[str, int]:
        """Return the bytes of each file below a folder, by name."""
        system, base = self._place
        system.invalidate_cache()
        found = system.find(self._remote(name), detail=True)
        return {_relative(path, base): int(about["size"]) for path, about in found.items()}

    def has(self, name: str) -> bool:
        """Whether there is such a file or folder now; other machines write here too."""
        system, _ = self._place
        system.invalidate_cache()
        return bool(system.exists(self._remote(name)))

    def names(self, name: str = "") -> list[str]:
        """Return the names of what is directly in a folder, sorted; none if it does not exist."""
        system, _ = self._place
        if not self.has(name):
            return []
        return sorted(Path(path).name for path in system.ls(self._remote(name), detail=False))

    def glob(self, pattern: str) -> list[str]:
        """Return the names of files that match a pattern, sorted; other machines' files too."""
        system, base = self._place
        system.invalidate_cache()
        return sorted(_relative(path, base) for path in system.glob(self._remote(pattern)))

    def files(self, name: str = "") -> list[str]:
        """Return the names of all files below a folder, sorted."""
        system, base = self._place
        return sorted(_relative(path, base) for path in system.find(self._remote(name)))

    def versions(self, suffix: str | tuple[str, ...]) -> dict[str, str]:
        """Return the files below whose names end with the suffix, or one of them, sorted, each with
        a value that changes with its content. The folder may be one such file, named "".
        """
        system, base = self._place
        files = sorted(path for path in system.find(base) if path.endswith(suffix))
        return {_relative(path, base): str(system.ukey(path)) for path in files}

    def each(self, task: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of a task that reads or writes files here, in the items' order; at an
        object store by several threads. The first exception ends all.
        """
        with ThreadPoolExecutor(THREADS if self._place[0].async_impl else 1) as pool:
            try:
                return list(pool.map(task, items))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _remote(self, name: str) -> str:
        base = self._place[1]
        return f"{base}/{name}" if name else base

    def _upload(self, name: str, expected: str, send: Callable[[str], None]) -> None:
        system, remote = self._place[0], self._remote(name)
        sent = remote
        if self.path:  # an object store has no folders to make, and puts whole objects
            system.makedirs(remote.rpartition("/")[0], exist_ok=True)
            sent = f"{remote}.{uuid.uuid4().hex[:8]}"
        try:
            for _ in range(TRIES):
                send(sent)
                with system.open(sent, "rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() == expected:
                        if self.path:
                            os.fsync(file.fileno())
                            Path(sent).replace(remote)
                        return
        finally:
            if self.path:
                Path(sent).unlink(missing_ok=True)
        raise CorruptUpload(
            f"{remote}: {TRIES} uploads read back with different bytes: check the object store and "
            "the network"
        )


def _relative(path: str, base: str) -> str:
    return str(path).removeprefix(base).lstrip("/")
