"""Read a folder that nobody trusts: files alone, without following a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILES, MAX_FILE, MAX_BYTES, MAX_DEPTH = 20_000, 32 << 20, 256 << 20, 64
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Folder:
    """The files of a folder by path, with `/`. skipped: path -> why it was not read."""

    files: Mapping[str, bytes]
    skipped: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """Return a file as text; "" if there is none."""
        return self.files.get(path, b"").decode("utf-8", "replace")

    def below(self, folder: str) -> dict[str, bytes]:
        """Return the files below a folder, by their paths in it."""
        start = f"{folder.rstrip('/')}/" if folder not in ("", ".") else ""
        return {
            path[len(start) :]: data for path, data in self.files.items() if path.startswith(start)
        }


def read_folder(path: Path) -> Folder:
    """Return the files below a folder. Links, devices and what is over the bounds are skipped; no
    name in the folder can lead outside it.

    Raises FileNotFoundError and NotADirectoryError.
    """
    files, skipped, room = dict[str, bytes](), dict[str, str](), MAX_BYTES
    root = os.open(path, _FOLDER & ~os.O_NOFOLLOW)
    pending: list[tuple[str, ...]] = [()]
    try:
        while pending:
            parts = pending.pop()
            try:
                descriptor = _descend(root, parts)
            except OSError as error:
                skipped["/".join(parts)] = f"cannot be read: {error.strerror}"
                continue
            with _closing(descriptor):
                for name in sorted(os.listdir(descriptor)):  # noqa: PTH208
                    where = "/".join((*parts, name)).encode("utf-8", "replace").decode()
                    if len(files) + len(pending) >= MAX_FILES:
                        skipped[where] = f"more than {MAX_FILES} files"
                        break
                    try:
                        content = _content(name, descriptor, min(MAX_FILE, room))
                    except OSError as error:
                        skipped[where] = f"cannot be read: {error.strerror}"
                        continue
                    if content is None and len(parts) == MAX_DEPTH:
                        skipped[where] = f"over {MAX_DEPTH} folders deep"
                    elif content is None:
                        pending.append((*parts, name))
                    elif isinstance(content, str):
                        skipped[where] = content
                    else:
                        files[where] = content
                        room -= len(content)
    finally:
        os.close(root)
    return Folder(files, skipped)


def _content(name: str, descriptor: int, most: int) -> bytes | str | None:
    """Return a file's content, None for a folder, or why anything else is not read."""
    mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        return "a link" if stat.S_ISLNK(mode) else "no plain file"
    with os.fdopen(os.open(name, _FILE, dir_fd=descriptor), "rb") as file:
        data = file.read(most + 1)
    return data if len(data) <= most else f"over {most} bytes"


def _descend(root: int, parts: tuple[str, ...]) -> int:
    descriptor = os.dup(root)
    for part in parts:
        with _closing(descriptor):
            descriptor = os.open(part, _FOLDER, dir_fd=descriptor)
    return descriptor


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
