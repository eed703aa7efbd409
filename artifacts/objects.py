"""Files by the hash of their content, at any fsspec URL: equal content is stored once.

In: a file. Out: its sha256, under which it is read again, and checked. An object is written
completely or not at all, so one that is listed with its size is whole.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from artifacts.folder import Folder
from artifacts.hashing import HashedFile
from artifacts.integrity import changed

OBJECTS = "objects"


class Objects:
    """The objects of a folder, which are listed once, when this is made."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.sizes = {name.rpartition("/")[2]: size for name, size in folder.sizes(OBJECTS).items()}

    def has(self, content: str, size: int) -> bool:
        return self.sizes.get(content) == size

    def put(self, path: Path, content: str) -> None:
        """Store a file with this hash. Raises CorruptUpload."""
        self.folder.put(path, _name(content))
        self.sizes[content] = path.stat().st_size

    @contextmanager
    def local(self, content: str, parent: Path | None, of: str) -> Iterator[Path]:
        """Yield a checked copy of an object, which the caller may move. of: its name in messages.

        parent: an existing folder for the copy. Raises CorruptArtifact for one that was changed or
        is missing.
        """
        if content not in self.sizes:
            raise self._damaged(content, of, "is missing; it was removed")
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            copy = Path(folder) / "object"
            with self.folder.open(_name(content)) as source, HashedFile(copy) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            if target.sha256 != content:
                raise self._damaged(content, of, "was changed")
            yield copy

    def check(self, content: str, of: str) -> None:
        """Read an object and compare its hash. Raises CorruptArtifact."""
        if content not in self.sizes:
            raise self._damaged(content, of, "is missing; it was removed")
        if self.folder.hash(_name(content)) != content:
            raise self._damaged(content, of, "was changed")

    def remove_all_but(self, contents: Collection[str]) -> int:
        """Remove the other objects, and return how many."""
        others = [
            name for name in self.folder.sizes(OBJECTS) if name.rpartition("/")[2] not in contents
        ]
        for name in others:
            self.folder.remove(name)
        return len(others)

    def _damaged(self, content: str, of: str, what: str) -> Exception:
        place = self.folder.at(_name(content))
        return changed(
            f"{of} ({place})",
            what,
            "delete that object, and the next backup writes it again; or "
            "restore an earlier backup (`--at`)",
        )


def _name(content: str) -> str:
    return f"{OBJECTS}/{content[:2]}/{content}"
