"""Mirror of a training's saves and candidates in an object store, to resume in an empty folder.

The object `key` holds the job's key. A copy counts only if it has a seal: the file that is uploaded
last and names or hashes all others (`whole` of a save, `manifest.json` of a candidate). Every file
is read back after its upload. The caller checks downloads against the seal.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from artifacts.folder import Folder


class Mirror:
    """Copy of a training in an object store.

    url: the training's URL, of any kind that fsspec supports
    (`s3://bucket/trainings/chain-0001/1f0c`); fsspec takes credentials and endpoint from its usual
    places.
    """

    def __init__(self, url: str, copied: Callable[[], None] = lambda: None) -> None:
        """copied: called after each file of a folder."""
        self.folder, self.copied = Folder(url), copied

    def push(self, folder: Path, name: str, seal: str) -> None:
        """Upload all files of a folder under this name, the seal last.

        Raises CorruptUpload, OSError.
        """
        files = sorted(
            (path for path in folder.rglob("*") if path.is_file()),
            key=lambda path: (path.name == seal and path.parent == folder, path),
        )
        for path in files:
            self.folder.put(path, f"{name}/{path.relative_to(folder).as_posix()}")
            self.copied()

    def push_bytes(self, content: bytes, name: str) -> None:
        self.folder.put_bytes(content, name)

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        try:
            return self.folder.read(name)
        except FileNotFoundError:
            return None

    def sealed(self, parent: str, seal: str) -> list[str]:
        """Return the names below `parent` that have their seal, sorted."""
        return [PurePosixPath(name).parent.name for name in self.folder.glob(f"{parent}/*/{seal}")]

    def pull(self, name: str, target: Path) -> None:
        """Download under a temporary name, then rename into place; discard an interrupted download.

        Raises FileNotFoundError, OSError.
        """
        temporary = target.with_name(f".{target.name}")
        shutil.rmtree(temporary, ignore_errors=True)
        for file in self.folder.files(name):
            self.folder.get(file, temporary / file.removeprefix(f"{name}/"))
            self.copied()
        shutil.rmtree(target, ignore_errors=True)
        temporary.replace(target)

    def pull_files(self, pattern: str, folder: Path) -> None:
        """Download files directly below the URL that the folder does not have yet."""
        for name in self.folder.glob(pattern):
            local = folder / name
            if not local.exists():
                temporary = local.with_name(f".{local.name}")
                self.folder.get(name, temporary)
                temporary.replace(local)

    def clear(self) -> None:
        """Delete everything but the metrics of a finished training.

        Raises the store client's errors.
        """
        for part in ("saves", "candidates"):
            with suppress(FileNotFoundError):
                self.folder.remove(part)

    def drop(self, name: str, seal: str) -> None:
        """Delete a copy, its seal first, so that a partly removed copy never counts."""
        for part in (f"{name}/{seal}", name):
            if self.folder.has(part):
                self.folder.remove(part)
