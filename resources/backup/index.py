"""The index of a backup: what a home had at one moment, by content hash.

Layout under the URL: `objects/`, named by their hash, and `backups/<id>.json`, sealed and written
last. The id is the time in UTC, so the ids are in order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from artifacts.folder import Folder
from artifacts.integrity import reading, seal, unseal
from resources.home import NotReady

FOLDER = "backups"
TIME = "%Y%m%dT%H%M%S.%fZ"
FIX = "restore an earlier backup (`--at`), or remove the file"


class Stored(NamedTuple):
    """A file: the hash of its content, its size in bytes, and its mode."""

    content: str
    size: int
    mode: int = 0o644


class Index(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    home_format: str
    code_version: str
    ledger: str  # its head, `NUMBER:HASH`; empty without an entry
    champion: str  # its checkpoint's name
    root: str  # URL of the artifacts; empty: the home
    files: dict[str, Stored]  # by the name under the home, or under the store's root
    databases: dict[str, Stored]  # of a Postgres server: dumps, by what they are for

    @property
    def stored(self) -> list[Stored]:
        return [*self.files.values(), *self.databases.values()]


def new_id(known: Sequence[str]) -> str:
    """Return the time as an id, later than all known ones also where the clock was set back."""
    now = datetime.now(UTC)
    after = made_at(known[-1]) + timedelta(microseconds=1) if known else now
    return max(now, after).strftime(TIME)


def made_at(id: str) -> datetime:
    """Return when a backup was begun."""
    return datetime.strptime(id, TIME).replace(tzinfo=UTC)


def ids(folder: Folder) -> list[str]:
    """Return the complete backups, oldest first."""
    names = folder.sizes(FOLDER)
    return sorted(
        name.removeprefix(f"{FOLDER}/").removesuffix(".json")
        for name in names
        if name.endswith(".json")
    )


def read(folder: Folder, id: str = "") -> Index:
    """Return the index of a backup; without an id of the newest one.

    Raises NotReady without an index, CorruptArtifact for a changed one.
    """
    known = ids(folder)
    if not known:
        raise NotReady(
            f"{folder.url} holds no complete backup: give its place, or make one with `ratchet "
            f"backup {folder.url}`"
        )
    if id and id not in known:
        raise NotReady(f"{folder.url} holds no backup {id}: use one of {', '.join(known[-5:])}")
    name = f"{FOLDER}/{id or known[-1]}.json"
    path = folder.at(name)
    with reading(path, FIX):
        return Index.model_validate(unseal(folder.read(name).decode(), path, FIX))


def write(folder: Folder, index: Index) -> None:
    # pydantic's own JSON has U+FFFD for the bytes of a file name that are no UTF-8.
    text = seal(json.dumps(index.model_dump(), indent=1))
    folder.put_bytes(text.encode(), f"{FOLDER}/{index.id}.json")
