"""The artifact store: artifacts are published completely or not at all, and found by the key of
their inputs.

Layout under the root: `<kind>/<name>/<key>/` with `manifest.json`, written last, and
`<kind>/<name>/current.json`, which names a key. A local folder is filled under another name and
renamed; an object store has no rename, so the manifest is uploaded last. Readers rely on manifests
only.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, REMOVED, content_of, hash_file
from artifacts.integrity import (
    changed,
    check,
    hashes_of,
    manifest_of,
    read_manifest,
    reading,
    seal,
    unseal,
)
from artifacts.manifest import Manifest

KINDS = ("datasets", "checkpoints", "scores", "reports")


@dataclass(frozen=True)
class Artifact:
    """A complete artifact. `path` is a local folder; for a remote root, a verified copy in the
    cache.
    """

    manifest: Manifest
    path: Path

    @property
    def content_hash(self) -> str:
        return self.manifest.content_hash


class Store:
    """Artifacts by kind, name and key.

    root: a local path or any fsspec URL (`s3://bucket/prefix`). cache: where copies of remote
    artifacts are kept.
    """

    def __init__(self, root: str | Path, cache: Path | None = None) -> None:
        self.root = str(root)
        self.folder = Folder(self.root)
        self.is_local = self.folder.path is not None
        self.cache = self.folder.path or cache or Path(tempfile.gettempdir()) / "ratchet-cache"

    @contextmanager
    def draft(self, kind: str, name: str) -> Iterator[Path]:
        """Yield a folder to fill; it is removed at the end unless it was published. Its name
        contains the process id: drafts of killed processes are removed first.
        """
        parent = self.cache / kind / name
        parent.mkdir(parents=True, exist_ok=True)
        for draft in parent.glob(".draft-*"):
            if not Path(f"/proc/{draft.name.split('-')[1]}").exists():
                shutil.rmtree(draft, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f".draft-{os.getpid()}-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path, manifest: Manifest) -> Artifact:
        """Publish a filled draft as the artifact `manifest.key`, and make it the current one of its
        name; content hash and stamp are added here.

        Publishing a key that exists changes nothing and returns the existing artifact.
        """
        target = self._folder(manifest)
        if (artifact := self.find(manifest.kind, manifest.name, manifest.key)) is None:
            files = hashes_of(folder)
            stamped = manifest.model_copy(
                update={
                    "content_hash": manifest.content_hash or content_of(files),
                    "files": files,
                }
            ).stamped()
            _write_synced(folder / MANIFEST, seal(stamped.model_dump_json(indent=1)))
            if not self.is_local:
                self._upload(folder, manifest)
            # The draft may have been filled under another name.
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(folder, target)
            if self.is_local:
                _sync_folder(target.parent)
            artifact = Artifact(read_manifest(target / MANIFEST), target)
        self.point(artifact.manifest)
        return artifact

    def point(self, manifest: Manifest) -> None:
        """Make this artifact the current one of its name."""
        stored = self._folder(manifest) / MANIFEST
        pointer = {
            "key": manifest.key,
            "content_hash": manifest.content_hash,
            "manifest": hash_file(stored) if stored.exists() else "",
        }
        text = seal(json.dumps(pointer, indent=1))
        if self.is_local:
            write_atomic(self.cache / manifest.kind / manifest.name / "current.json", text)
        else:
            self.folder.write(f"{manifest.kind}/{manifest.name}/current.json", text.encode())

    def find(self, kind: str, name: str, key: str) -> Artifact | None:
        """Return the artifact made from these inputs, or None. Folders without a manifest are
        ignored. Raises CorruptArtifact for a file that was changed after publishing.
        """
        local = self.cache / kind / name / key
        if (local / MANIFEST).exists():
            artifact = Artifact(read_manifest(local / MANIFEST), local)
            check(local, artifact.manifest, local.with_name(f".{key}.files.json"))
            return artifact
        if self.is_local:
            return None
        remote = f"{kind}/{name}/{key}"
        if not self.folder.has(f"{remote}/{MANIFEST}"):
            return None
        with self.draft(kind, name) as folder:
            for file in self.folder.files(remote):
                self.folder.get(file, folder / file.removeprefix(f"{remote}/"))
            _move(folder, local)
        return self.find(kind, name, key)

    def current_manifest(self, kind: str, name: str) -> Manifest | None:
        """Return the manifest of the current artifact of a name, or None. Files that are not on
        this machine stay where they are. Raises CorruptArtifact as `current` does.
        """
        key = self.current_key(kind, name)
        if not key or self.is_local or (self.cache / kind / name / key / MANIFEST).exists():
            artifact = self.current(kind, name)
            return artifact.manifest if artifact else None
        file = f"{kind}/{name}/{key}/{MANIFEST}"
        return manifest_of(self.folder.read(file), self.folder.at(file))

    def current(self, kind: str, name: str) -> Artifact | None:
        """Return the current artifact of a name, or None. Raises CorruptArtifact as `find` does,
        and for a pointer or a manifest that was changed after publishing.
        """
        file = f"{kind}/{name}/current.json"
        path = self.folder.at(file)
        if not self.folder.has(file):
            return None
        try:
            pointer = unseal(self.folder.read(file).decode(), path)
            key, content, manifest_hash = (
                pointer[name] for name in ("key", "content_hash", "manifest")
            )
        except (ValueError, KeyError, TypeError) as error:
            raise changed(path) from error
        stored = self.cache / kind / name / key / MANIFEST
        if not stored.exists():
            self.find(kind, name, key)  # copies that of a remote root
        if stored.exists() and hash_file(stored) != manifest_hash:
            raise changed(stored)
        artifact = self.find(kind, name, key)
        if artifact and artifact.content_hash != content:
            raise changed(path)
        return artifact

    def versions(self, kind: str, name: str) -> list[Artifact]:
        """Return all complete artifacts of a name, oldest first; those of a remote root are copied
        here.
        """
        artifacts = [
            artifact
            for key in self.folder.names(f"{kind}/{name}")
            if not key.startswith(".") and (artifact := self.find(kind, name, key))
        ]
        return sorted(
            artifacts, key=lambda artifact: (artifact.manifest.created_at, artifact.manifest.key)
        )

    def require(self, kind: str, name: str) -> Artifact:
        """Return the current artifact. Raises FileNotFoundError with the command that makes it."""
        if (artifact := self.current(kind, name)) is None:
            if self.folder.glob(f"{kind}/{name}/*/{REMOVED}"):
                raise FileNotFoundError(
                    f"{name} was removed from {self.root}/{kind} to save space, and only its "
                    "manifest is left: storage.keep_versions says how many champions stay"
                )
            raise FileNotFoundError(
                f"no artifact {name} under {self.root}/{kind}: materialize the asset {name} first "
                "(`ratchet demo` runs the whole pipeline)"
            )
        return artifact

    def names(self, kind: str) -> list[str]:
        return self.folder.names(kind)

    def at(self, manifest: Manifest) -> str:
        """Return where an artifact is, as a path or a URL."""
        return self.folder.at(f"{manifest.kind}/{manifest.name}/{manifest.key}")

    def has(self, manifest: Manifest) -> bool:
        """Whether an artifact is whole, and not retired."""
        return self.folder.has(f"{manifest.kind}/{manifest.name}/{manifest.key}/{MANIFEST}")

    def size(self, manifest: Manifest) -> int:
        """Return an artifact's size in bytes."""
        return self.folder.size(f"{manifest.kind}/{manifest.name}/{manifest.key}")

    def current_key(self, kind: str, name: str) -> str:
        """Return the key of the current artifact of a name, without a look at its files; "" for
        none. Raises CorruptArtifact for a pointer that was changed.
        """
        file = f"{kind}/{name}/current.json"
        if not self.folder.has(file):
            return ""
        path = self.folder.at(file)
        with reading(path):
            return str(unseal(self.folder.read(file).decode(), path)["key"])

    def retire(self, manifest: Manifest) -> None:
        """Make an artifact of a local store one of the past: `find` no longer finds it, `sweep`
        removes its files, and its manifest stays under another name.
        """
        path = self._folder(manifest) / MANIFEST
        path.rename(path.with_name(REMOVED))

    def sweep(self) -> None:
        """Remove the files of all retired artifacts, also where an earlier call was killed. One
        that was published again since then is whole.
        """
        for file in (path for kind in KINDS for path in manifests(self.cache / kind, REMOVED)):
            for path in file.parent.iterdir():
                if path != file and not (file.parent / MANIFEST).exists():
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def verify(self, artifact: Artifact) -> None:
        """Hash all files again. Raises CorruptArtifact unless they are those of the manifest."""
        check(artifact.path, artifact.manifest)

    def verify_all(self) -> int:
        """Hash every artifact on this machine again, and return their number. Raises
        CorruptArtifact for the first changed file, pointer or manifest.
        """
        paths = [path for kind in KINDS for path in manifests(self.cache / kind)]
        for path in paths:
            check(path.parent, read_manifest(path))
        for kind in KINDS:
            for name in self.names(kind):
                self.current(kind, name)
        return len(paths)

    def _folder(self, manifest: Manifest) -> Path:
        return self.cache / manifest.kind / manifest.name / manifest.key

    def _upload(self, folder: Path, manifest: Manifest) -> None:
        remote = f"{manifest.kind}/{manifest.name}/{manifest.key}"
        for path in sorted(folder.rglob("*"), key=lambda p: p.name == MANIFEST):
            if path.is_file():
                self.folder.put(path, f"{remote}/{path.relative_to(folder).as_posix()}")


def manifests(kind: Path, file: str = MANIFEST) -> list[Path]:
    """Return the manifests of everything published under this folder, sorted; drafts of other
    processes are left out. file: `REMOVED` for those of removed artifacts.
    """
    return sorted(
        folder / file
        for name in kind.glob("[!.]*")
        for folder in name.glob("[!.]*")
        if (folder / file).exists()
    )


def _move(folder: Path, target: Path) -> None:
    """Move a folder into its place. If another process published the same first, that one stays: it
    may be in use already.
    """
    try:
        folder.replace(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Without a manifest, it was left by a manual change.
        if not (target / MANIFEST).exists():
            shutil.rmtree(target)
            folder.replace(target)


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
