"""Back up a home while it is in use.

Everything in the home is copied but what is made again: caches, converted models, installed
packages, saves and candidates of trainings, the training folder of an open run. Of artifacts it is
what `ratchet gc` would keep; of the others the manifest, as if they had been removed. Records and
ledger are those of one moment; files and other databases follow, artifacts last, so that what a
record names is there. Nothing is removed meanwhile.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, REMOVED, hash_file
from artifacts.integrity import changed, manifest_of
from artifacts.manifest import Manifest, code_version
from artifacts.objects import Objects
from artifacts.passport import ManifestIndex
from artifacts.store import KINDS
from resources.backup import index
from resources.backup.databases import (
    DatabaseServer,
    check_sqlite,
    copy_sqlite,
    is_companion,
    is_sqlite,
    servers,
)
from resources.backup.index import Index, Stored
from resources.home import FORMAT, Home, NotReady
from resources.registry.ledger import Ledger, LedgerChanged, champion_of
from resources.registry.releases import Releases
from resources.retention import Named, uncollected
from resources.run_record import RunRecord, locked
from resources.settings import Settings

# Made again when they are needed, or about processes of this machine.
REMADE = {"cache", "gateways", "models", "packages", "ray", "smoke", "ui"}
UNFINISHED = {"saves", "candidates"}  # of a training
POINTER = "current.json"
STAGE = ".backup-"


@dataclass
class BackupSummary:
    """A finished backup. new_files, new_bytes: what was not at the URL before."""

    index: Index
    new_files: int = 0
    new_bytes: int = 0
    removed_backups: list[str] = field(default_factory=list)


def back_up(settings: Settings, to: Folder, keep: int) -> BackupSummary:
    """Make a backup, and remove all but the newest `keep` ones.

    Raises NotReady, CorruptArtifact for a file that is damaged, LedgerChanged, CorruptUpload.
    """
    home = settings.home
    if not home.path.is_dir():
        raise NotReady(f"{home.path} does not exist: there is nothing to back up")
    if to.path and to.path.resolve().is_relative_to(home.path.resolve()):
        raise NotReady(f"{to.url} is in the home itself: give another disk, or an object store")
    with uncollected(home):
        _remove_stages(home)
        with tempfile.TemporaryDirectory(dir=home.path, prefix=STAGE) as stage:
            backup = _Backup(settings, to, Path(stage))
            backup.take_moment()
            backup.take_files()
            backup.take_artifacts()
            summary = backup.finish()
        summary.removed_backups = _remove_old(to, keep)
    return summary


class _Backup:
    """One backup in the making. stage: a folder for copies of files that may change."""

    def __init__(self, settings: Settings, to: Folder, stage: Path) -> None:
        self.settings, self.home, self.to, self.stage = settings, settings.home, to, stage
        self.objects, self.id = Objects(to), index.new_id(index.ids(to))
        self.files: dict[str, Stored] = {}
        self.databases: dict[str, Stored] = {}
        self.sizes: dict[str, int] = {}  # of the store's files
        self.new: dict[str, int] = {}

    def take_moment(self) -> None:
        """Copy records and databases of one moment, while no run begins and no decision is
        recorded. The dump of a server may take long: then others write again.
        """
        with ExitStack() as opened:
            moments = self._hold_moment(opened)
            for use, (server, name) in moments.items():
                server.dump(self.stage / use, name)
        for use in moments:
            self.databases[use] = self._put(self.stage / use)
        moment = self.stage / "moment"
        for copy in _files(moment, set()):
            name = copy.relative_to(moment).as_posix()
            if is_sqlite(copy):
                check_sqlite(copy, self.home.path / name)
            self.files[name] = self._put(copy)

    def _hold_moment(self, opened: ExitStack) -> dict[str, tuple[DatabaseServer, str]]:
        """Copy the files of the moment. Return the servers with its name, until `opened` ends."""
        ledger, moment = self.settings.ledger, self.stage / "moment"
        with locked(self.home.runs), ledger.held() as history:
            self.head = _continued(ledger, self.to)
            self.champion = champion.checkpoint if (champion := champion_of(history)) else ""
            self.named = Named(
                self.home,
                self.settings.store,
                history,
                Releases(ledger.place).all(),
                self.settings.profile.storage,
            )
            # Writers wait meanwhile, so other databases, which may be large, follow with the files.
            together = {self.home.records, self.home.ledger}
            paths = (path for path in self.home.path.glob("[!.]*") if path.is_file())
            small = (path for path in paths if path in together or not is_sqlite(path))
            for path in (path for path in small if not is_companion(path)):
                copy = moment / path.relative_to(self.home.path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):  # it was removed just now
                    copy_sqlite(path, copy) if is_sqlite(path) else shutil.copy2(path, copy)
            return {
                use: (server, opened.enter_context(server.moment()))
                for use, server in servers(self.settings.profile).items()
            }

    def take_files(self) -> None:
        """Take the other files of the home."""
        opened = {f"runs/{each.id}/training" for each in self.named.working if _is_open(each)}
        paths = _files(self.home.path, {*REMADE, *KINDS, *opened})
        names = {path.relative_to(self.home.path).as_posix(): path for path in paths}
        others = {name: path for name, path in names.items() if name not in self.files}
        for name, stored in zip(others, self.to.each(self._take, others.values()), strict=True):
            if stored:
                self.files[name] = stored

    def take_artifacts(self) -> None:
        """Take pointers, then manifests and what they name."""
        store = self.settings.store.folder
        for name in (name for kind in KINDS for name in store.sizes(kind)):
            if name.endswith(f"/{POINTER}") and name.count("/") == 2:
                self._take_published(store, name)
        self.sizes = {name: size for kind in KINDS for name, size in store.sizes(kind).items()}
        names = [name for name in self.sizes if _is_manifest(name)]
        read = store.each(lambda name: manifest_of(store.read(name), store.at(name)), names)
        manifests = dict(zip(names, read, strict=True))
        made_from = ManifestIndex(each for each in read if each.kind != "reports")
        unnamed = {_place(manifest) for manifest, _ in self.named.unnamed(made_from)}
        files: dict[str, tuple[str, str]] = {}  # where one is -> its name in the backup, its hash
        for name, manifest in manifests.items():
            folder, _, file = name.rpartition("/")
            whole = file == MANIFEST and _place(manifest) not in unnamed
            files[name] = f"{folder}/{MANIFEST if whole else REMOVED}", ""
            if whole:
                for each, content in manifest.files.items():
                    files[f"{folder}/{each}"] = f"{folder}/{each}", content
        if missing := next((name for name in files if name not in self.sizes), ""):
            raise changed(store.at(missing), "is missing; it was removed")
        self.to.each(lambda each: self._take_published(store, each[0], *each[1]), files.items())

    def finish(self) -> BackupSummary:
        """Write the index, last. Raises NotReady if an object is not there any more."""
        made = Index(
            id=self.id,
            home_format=FORMAT,
            code_version=code_version(),
            ledger=self.head,
            champion=self.champion,
            root=self.settings.profile.storage.root,
            files=dict(sorted(self.files.items())),
            databases=self.databases,
        )
        present = Objects(self.to)
        if any(not present.has(each.content, each.size) for each in made.stored):
            raise NotReady(f"{self.to.url} lost objects meanwhile: back up again, one at a time")
        with _space_named(self.to):
            index.write(self.to, made)
        return BackupSummary(made, len(self.new), sum(self.new.values()))

    def _take_published(
        self, store: Folder, name: str, as_name: str = "", content: str = ""
    ) -> None:
        """Take a file of the store. content: its hash; one that is there already is not read.
        Raises CorruptArtifact where it has another one.
        """
        size = self.sizes.get(name, -1)
        if content and self.objects.has(content, size):
            self.files[as_name] = Stored(content, size)
            return
        with store.local(name) as path:
            if content and hash_file(path) != content:
                raise changed(store.at(name))
            self.files[as_name or name] = self._put(path, content)

    def _take(self, path: Path) -> Stored | None:
        """Take a file that may grow or be replaced meanwhile; None if it is gone."""
        try:
            state = path.stat()
            with tempfile.TemporaryDirectory(dir=self.stage) as folder:
                copy = Path(folder) / "file"
                if is_sqlite(path):
                    copy_sqlite(path, copy)
                    check_sqlite(copy, path)
                elif self.objects.has(content := hash_file(path), state.st_size):
                    return Stored(content, state.st_size, state.st_mode & 0o777)
                else:
                    shutil.copy2(path, copy)
                return self._put(copy)
        except FileNotFoundError:
            return None

    def _put(self, path: Path, content: str = "") -> Stored:
        state, content = path.stat(), content or hash_file(path)
        if not self.objects.has(content, state.st_size):
            with _space_named(self.to):
                self.objects.put(path, content)
            self.new[content] = state.st_size
        return Stored(content, state.st_size, state.st_mode & 0o777)


@contextmanager
def _space_named(to: Folder) -> Iterator[None]:
    """Raise NotReady where the place of the backups is full, not the home."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NotReady(
            f"{to.url} is full: free some space there, or keep fewer backups (`--keep`); earlier "
            "ones are whole"
        ) from error


def _is_manifest(name: str) -> bool:
    """Whether a file is a published artifact's manifest, or that of a removed one."""
    parts = name.split("/")
    return len(parts) == 4 and parts[3] in (MANIFEST, REMOVED) and parts[2][0] != "."


def _place(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.kind, manifest.name, manifest.key


def _is_open(record: RunRecord) -> bool:
    return record.state == "open"


def _continued(ledger: Ledger, to: Folder) -> str:
    """Return the ledger's head. Raises NotReady unless the ledger continues that of the last
    backup: it is another home's, or the ledger was replaced.
    """
    number, content = ledger.head()
    last = index.read(to) if index.ids(to) else None
    if last and last.ledger:
        try:
            ledger.check_head(last.ledger)
        except LedgerChanged as error:
            raise NotReady(
                f"the ledger {ledger.place} does not continue that of the backup {last.id} in "
                f"{to.url}: another home has its own URL; if the ledger was changed or lost, "
                "`ratchet restore` that backup into an empty home"
            ) from error
    return f"{number}:{content}" if number else ""


def _files(root: Path, left_out: set[str]) -> Iterator[Path]:
    """Yield the files below a folder. Hidden ones are locks, drafts and caches of this machine."""
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        training = len(relative.parts) == 4 and relative.parts[::2] == ("runs", "training")
        folders[:] = sorted(
            name
            for name in folders
            if name[0] != "."
            and (relative / name).as_posix() not in left_out
            and not (training and name in UNFINISHED)
        )
        for name in sorted(names):
            path = Path(folder, name)
            if name[0] != "." and path.is_file() and not is_companion(path):
                yield path


def _remove_stages(home: Home) -> None:
    """Remove what a killed backup left; the lock is ours."""
    for left in home.path.glob(f"{STAGE}*"):
        shutil.rmtree(left, ignore_errors=True)


def _remove_old(to: Folder, keep: int) -> list[str]:
    """Remove all backups but the newest, then what no other one names. An index that cannot be
    read raises CorruptArtifact, and no object is removed.
    """
    old = index.ids(to)[:-keep]
    kept = [index.read(to, id) for id in index.ids(to)[-keep:]]
    for id in old:
        to.remove(f"{index.FOLDER}/{id}.json")
    if old:
        contents = {each.content for every in kept for each in every.stored}
        Objects(to).remove_all_but(contents)
    return old
