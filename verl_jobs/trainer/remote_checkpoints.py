"""Mirror of a training's saves and candidates in an object store, to resume in an empty folder.

The object `key` holds the job's key. A copy counts only if it has a seal: the file that is uploaded
last and names or hashes all others (`whole` of a save, `manifest.json` of a candidate). Every file
is read back after its upload. The caller checks downloads against the seal.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath

import fsspec

from artifacts.upload import put, put_bytes


class Mirror:
    """Copy of a training in an object store.

    url: the training's URL, of any kind that fsspec supports
    (`s3://bucket/trainings/chain-0001/1f0c`); fsspec takes credentials and endpoint from its usual
    places.
    """

    def __init__(self, url: str) -> None:
        self.system, base = fsspec.core.url_to_fs(url)
        self.base = base.rstrip("/")

    def push(self, folder: Path, name: str, seal: str) -> None:
        """Upload all files of a folder under this name, the seal last.

        Raises CorruptUpload, OSError.
        """
        files = sorted(
            (path for path in folder.rglob("*") if path.is_file()),
            key=lambda path: (path.name == seal and path.parent == folder, path),
        )
        for path in files:
            put(self.system, path, f"{self.base}/{name}/{path.relative_to(folder).as_posix()}")

    def push_bytes(self, content: bytes, name: str) -> None:
        put_bytes(self.system, content, f"{self.base}/{name}")

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        try:
            return bytes(self.system.cat_file(f"{self.base}/{name}"))
        except FileNotFoundError:
            return None

    def sealed(self, parent: str, seal: str) -> list[str]:
        """Return the names below `parent` that have their seal, sorted."""
        self.system.invalidate_cache()
        paths = self.system.glob(f"{self.base}/{parent}/*/{seal}")
        return sorted(PurePosixPath(str(path)).parent.name for path in paths)

    def pull(self, name: str, target: Path) -> None:
        """Download under a temporary name, then rename into place; discard an interrupted download.

        Raises FileNotFoundError, OSError.
        """
        temporary = target.with_name(f".{target.name}")
        shutil.rmtree(temporary, ignore_errors=True)
        top = f"{self.base}/{name}"
        for remote in self.system.find(top):
            local = temporary / str(remote).removeprefix(top).lstrip("/")
            local.parent.mkdir(parents=True, exist_ok=True)
            self.system.get_file(remote, str(local))
        shutil.rmtree(target, ignore_errors=True)
        temporary.replace(target)

    def pull_files(self, pattern: str, folder: Path) -> None:
        """Download files directly below the URL that the folder does not have yet."""
        for remote in self.system.glob(f"{self.base}/{pattern}"):
            local = folder / PurePosixPath(str(remote)).name
            if not local.exists():
                temporary = local.with_name(f".{local.name}")
                self.system.get_file(remote, str(temporary))
                temporary.replace(local)

    def clear(self) -> None:
        """Delete everything but the metrics of a finished training.

        Raises the store client's errors.
        """
        for part in ("saves", "candidates"):
            with suppress(FileNotFoundError):
                self.system.rm(f"{self.base}/{part}", recursive=True)

    def drop(self, name: str, seal: str) -> None:
        """Delete a copy, its seal first, so that a partly removed copy never counts."""
        top = f"{self.base}/{name}"
        if self.system.exists(f"{top}/{seal}"):
            self.system.rm_file(f"{top}/{seal}")
        if self.system.exists(top):
            self.system.rm(top, recursive=True)
