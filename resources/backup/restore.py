"""Restore a home from a backup, or single files of it.

Each object is hashed before it gets its place, by a rename. Until the end the home has the format
`restoring`, which every other command refuses; the same restore, repeated, resumes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, REMOVED, hash_file
from artifacts.objects import Objects
from artifacts.store import KINDS
from resources import lease
from resources.backup import index
from resources.backup.back_up import POINTER
from resources.backup.databases import COMPANIONS, DatabaseServer, is_sqlite
from resources.backup.index import Index, Stored
from resources.home import FORMAT, FORMAT_FILE, RESTORING, Home, NotReady
from resources.registry.ledger import Ledger, LedgerChanged
from resources.registry.ledger_database import LedgerUnreachable

STAGE = ".restoring"
NOT_OURS = {"lost+found"}  # of a disk that is mounted as the home


def check(source: Folder, id: str = "") -> Index:
    """Read every object of a backup and compare its hash. Raises CorruptArtifact for the first
    file that was changed or is missing.
    """
    made, objects = index.read(source, id), Objects(source)
    named = {stored.content: name for name, stored in {**made.files, **made.databases}.items()}
    source.each(lambda pair: objects.check(*pair), named.items())
    return made


def restore(
    source: Folder, home: Home, root: str, servers: Mapping[str, DatabaseServer], id: str = ""
) -> Index:
    """Make the home of a backup in an empty folder. root: where its artifacts go, any fsspec URL;
    empty: into the home.

    What a root has already stays. Raises NotReady, CorruptArtifact.
    """
    made, objects = index.read(source, id), Objects(source)
    _check_home(home, made)
    loaded = _loaded(made, servers)
    write_atomic(home.path / FORMAT_FILE, f"{RESTORING}\n")
    (home.path / STAGE).mkdir(exist_ok=True)
    store = Folder(root) if root else None
    artifacts = {name for name in made.files if store and name.split("/")[0] in KINDS}
    if store:
        present = store.sizes()
        missing = {name: made.files[name] for name in artifacts if name not in present}
        for last in (False, True):  # readers rely on manifests, so they come last
            names = [name for name in missing if _comes_last(name) is last]
            store.each(lambda name: _to_store(objects, store, name, missing[name]), names)
    others = [name for name in made.files if name not in artifacts and name != FORMAT_FILE]
    source.each(lambda name: _to_home(objects, home, name, made.files[name]), others)
    _link_places(home, made.root, root)
    for use, stored in made.databases.items():
        if use not in loaded:
            with objects.local(stored.content, home.path / STAGE, use) as dump:
                servers[use].load(dump, stored.content)
    shutil.rmtree(home.path / STAGE)
    write_atomic(home.path / FORMAT_FILE, f"{FORMAT}\n")
    for server in servers.values():
        server.finish()
    return made


def restore_files(source: Folder, home: Home, names: Iterable[str], id: str = "") -> list[str]:
    """Put files of a backup back into a home, or all files of a folder; return their names.

    names: relative to the home, or paths in it. Raises LeaseHeld while a training uses the home,
    NotReady for a name that the backup does not have, or a ledger that lacks decisions.
    """
    made, objects = index.read(source, id), Objects(source)
    found: list[str] = []
    for given in names:
        path = Path(given).absolute()
        name = path.relative_to(home.path).as_posix() if path.is_relative_to(home.path) else given
        name = name.rstrip("/")
        matching = [each for each in made.files if each == name or each.startswith(f"{name}/")]
        if not matching:
            near = get_close_matches(name, made.files, 1)
            hint = f": did you mean {near[0]}?" if near else ": give its path in the home"
            raise NotReady(f"the backup {made.id} has no {name}{hint}")
        found += matching
    _check_lease(home, found)
    if home.ledger in [home.path / name for name in found]:
        _check_ledger(home, made)
    (home.path / STAGE).mkdir(parents=True, exist_ok=True)
    source.each(lambda name: _to_home(objects, home, name, made.files[name]), found)
    shutil.rmtree(home.path / STAGE)
    return found


def _check_home(home: Home, made: Index) -> None:
    """Raise NotReady unless the home is empty, or one whose restore was interrupted."""
    if made.home_format != FORMAT:
        raise NotReady(
            f"the backup {made.id} is of a home of format {made.home_format!r}, and this version "
            f"reads {FORMAT!r}: restore it with {made.code_version}, which wrote it"
        )
    format_file = home.path / FORMAT_FILE
    begun = format_file.exists() and format_file.read_text(encoding="utf-8").strip() == RESTORING
    present = {path.name for path in home.path.glob("*")}
    if present - NOT_OURS and not begun:
        raise NotReady(
            f"{home.path} is not empty: set RATCHET_HOME to a new folder, or name the files to "
            "restore"
        )


def _check_lease(home: Home, names: Iterable[str]) -> None:
    """Raise LeaseHeld while a training uses the home. A damaged file with the lease can be
    replaced: nobody can take or renew a lease in it.
    """
    try:
        if holder := lease.holder(home.lease):
            raise lease.LeaseHeld(holder, home.lease)
    except LedgerUnreachable as error:
        locked = isinstance(error.__cause__, sqlite3.OperationalError)
        damaged = isinstance(error.__cause__, sqlite3.DatabaseError) and not locked
        if not damaged or home.lease.place not in [home.path / name for name in names]:
            raise


def _check_ledger(home: Home, made: Index) -> None:
    """Raise NotReady if the home's ledger can be read and has decisions that the backup lacks."""
    with suppress(LedgerChanged, LedgerUnreachable):  # that one is to be replaced
        known = int(made.ledger.partition(":")[0] or 0)
        if later := [entry.run_id for entry in Ledger(home.ledger).history()[known:]]:
            raise NotReady(
                f"{home.ledger} is whole, and has decisions that the backup {made.id} lacks: "
                f"{', '.join(later[:5])}; to drop them, move the file away first"
            )


def _loaded(made: Index, servers: Mapping[str, DatabaseServer]) -> set[str]:
    """Return what an interrupted restore has loaded. Raises NotReady unless the profile names an
    empty database for each other one of the backup.
    """
    keys = {"ledger": "storage.ledger", "dagster": "orchestration.postgres"}
    if made.databases.keys() != servers.keys():
        uses = made.databases.keys() ^ servers.keys()
        raise NotReady(
            f"the backup {made.id} has {', '.join(sorted(made.databases)) or 'nothing'} on "
            f"Postgres, the profile {', '.join(sorted(servers)) or 'nothing'}: give a profile "
            f"that agrees ({', '.join(keys[use] for use in sorted(uses))})"
        )
    return {use for use, server in servers.items() if server.has(made.databases[use].content)}


def _link_places(home: Home, old_root: str, root: str) -> None:
    """Let paths in the records, which name artifacts of the old root, lead to those of the new."""
    new = home.store(root).cache
    for old in {home.path, home.store(old_root).cache} - {new}:
        for kind in KINDS if old.is_relative_to(home.path) else ():
            (new / kind).mkdir(parents=True, exist_ok=True)
            old.mkdir(parents=True, exist_ok=True)
            if not (old / kind).is_symlink():
                (old / kind).symlink_to(os.path.relpath(new / kind, old))


def _comes_last(name: str) -> bool:
    return name.rpartition("/")[2] in (MANIFEST, REMOVED, POINTER)


def _to_store(objects: Objects, store: Folder, name: str, stored: Stored) -> None:
    with objects.local(stored.content, None, name) as copy:
        store.put(copy, name)


def _to_home(objects: Objects, home: Home, name: str, stored: Stored) -> None:
    """Put a file into its place in the home, unless it is there."""
    path = home.path / name
    if not path.resolve().is_relative_to(home.path.resolve()):
        raise NotReady(f"the backup names a file outside the home: {name}")
    if path.is_file() and hash_file(path) == stored.content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with objects.local(stored.content, home.path / STAGE, name) as copy:
        copy.chmod(stored.mode)
        for end in COMPANIONS if is_sqlite(copy) else ():  # of the file that is replaced
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        copy.replace(path)
