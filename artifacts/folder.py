"""A folder at any fsspec URL, of files that are read and written as a whole."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import fsspec

from artifacts.upload import put


@dataclass(frozen=True)
class Folder:
    """url: a local path or an fsspec URL (`s3://bucket/prefix`). Can be pickled: each process opens
    the storage itself.
    """

    url: str

    @cached_property
    def _place(self) -> tuple[Any, str]:
        system, base = fsspec.core.url_to_fs(self.url)
        return system, base.rstrip("/")

    def __getstate__(self) -> dict[str, str]:
        return {"url": self.url}

    def at(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}" if name else self.url

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        system, base = self._place
        file: AbstractContextManager[BinaryIO] = system.open(
            f"{base}/{name}" if name else base, "rb"
        )
        return file

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Yield the path of a file; of a remote one, that of a copy, removed at the end."""
        system, base = self._place
        place = f"{base}/{name}" if name else base
        if "file" in system.protocol:
            yield Path(place)
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / Path(place).name
            system.get_file(place, str(copy))
            yield copy

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises FileNotFoundError."""
        with self.open(name) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file: a reader sees all of it or none. An object store puts whole objects;
        a local file is written to a temporary place and renamed.
        """
        system, base = self._place
        path = f"{base}/{name}"
        if "file" not in system.protocol:
            system.pipe_file(path, content)
            return
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        temporary = f"{path}.{uuid.uuid4().hex[:8]}"
        system.pipe_file(temporary, content)
        system.mv(temporary, path)

    def put(self, path: Path, name: str) -> None:
        """Copy a local file here and compare what arrived. Raises CorruptUpload."""
        system, base = self._place
        put(system, path, f"{base}/{name}")

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it."""
        system, base = self._place
        system.rm(f"{base}/{name}", recursive=True)

    def has(self, name: str) -> bool:
        system, base = self._place
        return bool(system.exists(f"{base}/{name}"))

    def versions(self, suffix: str | tuple[str, ...]) -> dict[str, str]:
        """Return the files below whose names end with the suffix, or one of them, sorted, each with
        a value that changes with its content. The folder may be one such file, named "".
        """
        system, base = self._place
        files = sorted(path for path in system.find(base) if path.endswith(suffix))
        return {path.removeprefix(base).lstrip("/"): str(system.ukey(path)) for path in files}
