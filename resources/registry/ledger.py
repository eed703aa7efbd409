"""The source of truth about the champion: an append-only record of the gate's decisions.

In: decisions, as plain JSON. Out: the champion, the history, a rollback. It is one SQLite file, or
a table on a Postgres server (ledger_database.py); MLflow's aliases are a projection of it
(mlflow.py). Each entry that moves the champion names the entry it replaces, and only one entry may
do so: of two simultaneous promotions one wins. The module is light on purpose: `ratchet status`
reads the ledger within a second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from artifacts.hashing import REMOVED
from artifacts.home_paths import present_path, stored_path
from artifacts.integrity import RESTORE
from resources.model_version import ModelVersion, now
from resources.registry.ledger_database import database
from resources.registry.row_hashes import (
    VerifiedRows,
    WrongRow,
    record_hashes,
    recorded_hashes,
    rows_of,
)

Kind = Literal["install", "promote", "rollback", "refuse"]


@dataclass(frozen=True)
class Entry:
    """One decision.

    `version` numbers each checkpoint that ever reached the gate, including refused ones.
    `predecessor` is the champion's entry at that time, 0 for none. `path` is where its folder is
    now; the table has it relative to the home.
    """

    entry: int
    kind: Kind
    version: int
    checkpoint: str
    checkpoint_hash: str
    path: str
    predecessor: int
    decision: dict[str, Any]
    run_id: str
    created_at: str

    @property
    def model(self) -> ModelVersion:
        return ModelVersion(
            checkpoint=self.checkpoint, content_hash=self.checkpoint_hash, path=self.path
        )


COLUMNS = tuple(column.name for column in fields(Entry))


class LedgerChanged(RuntimeError):
    """A recorded entry is not what was recorded."""


class Superseded(RuntimeError):
    """The champion that a decision was made against is no longer champion."""


class NothingToRollBack(LookupError):
    """There is no such earlier champion."""


class Ledger:
    """The ledger. Safe among processes and machines; each call is one transaction.

    place: a SQLite file, created at the first write, or a `postgresql://` URL. home: of the
    checkpoints; the file's folder if there is none.
    Each method raises LedgerUnreachable where the file or the server cannot be used.
    """

    def __init__(self, place: Path | str, home: Path | None = None) -> None:
        self.place = place
        self.home = place.parent if home is None and isinstance(place, Path) else home
        self._database = database(place)
        self._verified = VerifiedRows(self._entry)

    def history(self) -> list[Entry]:
        """Return all entries, oldest first. Raises LedgerChanged."""
        with self._database.reading() as cursor:
            return self._entries(cursor) if cursor else []

    def head(self) -> tuple[int, str]:
        """Return the number of entries and the recorded hash of the last one, which covers all of
        them; "" if there is none. Raises LedgerChanged.
        """
        with self._database.reading() as cursor:
            entries = self._entries(cursor) if cursor else []
            return len(entries), (recorded_hashes(cursor) or [""])[-1] if cursor else ""

    @contextmanager
    def held(self) -> Iterator[list[Entry]]:
        """Yield all entries, while nobody else can append one. Raises LedgerChanged."""
        with self._database.writing() as cursor:
            yield self._entries(cursor)

    def check_head(self, head: str) -> None:
        """Raise LedgerChanged unless the ledger begins with the entries that had this head.

        head: `NUMBER:HASH`, as `head` returned them earlier. The hashes are stored beside the
        entries, so someone who can write the file can replace both. A copy of the head in another
        place reveals that. Raises ValueError for another form.
        """
        number, _, expected = head.partition(":")
        if not number.isdigit() or not re.fullmatch("[0-9a-f]{64}", expected):
            raise ValueError(f"{head!r} is no head: give NUMBER:HASH, as it was printed")
        with self._database.reading() as cursor:
            hashes = recorded_hashes(cursor) if cursor and self._entries(cursor) else []
        if hashes[int(number) - 1 : int(number)] != [expected]:
            raise LedgerChanged(
                f"{self.place}: entry {number} had another hash when its head was kept, or is "
                f"missing: {RESTORE}; nothing is promoted until then"
            )

    def check_file(self) -> None:
        """Raise LedgerChanged where the database's own structure is damaged."""
        if damage := self._database.damage():
            raise LedgerChanged(
                f"{self.place}: the file is damaged ({damage}): {RESTORE}; nothing is promoted "
                "until then"
            )

    def compare(self, decided: Mapping[str, str]) -> None:
        """Raise LedgerChanged for the first pipeline run whose entry is missing or another one.

        decided: pipeline run -> kind of its decision, as its run record has it.
        """
        kinds: dict[str, str] = {entry.run_id: entry.kind for entry in self.history()}
        for run_id, kind in decided.items():
            if kinds.get(run_id) != kind:
                raise LedgerChanged(
                    f"{self.place}: the decision on {run_id} is {kinds.get(run_id, 'missing')}, in "
                    f"its run record {kind}: {RESTORE}"
                )

    def champion(self) -> Entry | None:
        return champion_of(self.history())

    def append(
        self,
        kind: Kind,
        *,
        checkpoint: str,
        checkpoint_hash: str,
        path: str,
        decision: dict[str, Any],
        run_id: str,
        against: str | None,
    ) -> Entry:
        """Record one decision permanently, and return its entry.

        against: checkpoint hash of the champion that the decision compares with, from the decision
        itself; None where there was no champion.
        A pipeline run decides once: called again for the same checkpoint, this returns the recorded
        entry and changes nothing.
        Raises Superseded where another promotion came first (nothing is recorded: decide again),
        ValueError where the pipeline run had another checkpoint.
        """
        if kind not in get_args(Kind) or kind == "rollback":
            raise ValueError(f"`kind` must be install, promote or refuse, got {kind!r}")
        with self._database.writing() as cursor:
            entries = self._entries(cursor)
            if (entry_of_run := next((e for e in entries if e.run_id == run_id), None)) is not None:
                if entry_of_run.checkpoint_hash != checkpoint_hash:
                    raise ValueError(
                        f"pipeline run {run_id} has decided on {entry_of_run.checkpoint} already: "
                        "start a new one"
                    )
                return entry_of_run
            champion = champion_of(entries)
            if (champion.checkpoint_hash if champion else None) != against:
                compared = next((e for e in entries if e.checkpoint_hash == against), None)
                raise Superseded(
                    f"{named(champion)} is champion now, {checkpoint} was compared with "
                    f"{named(compared)}: decide again"
                )
            known = (e.version for e in entries if e.checkpoint_hash == checkpoint_hash)
            version = next(known, max((e.version for e in entries), default=0) + 1)
            predecessor = champion.entry if champion else 0
            return self._insert(
                cursor,
                Entry(
                    entry=_next(entries),
                    kind=kind,
                    version=version,
                    checkpoint=checkpoint,
                    checkpoint_hash=checkpoint_hash,
                    path=path,
                    predecessor=predecessor,
                    decision=decision,
                    run_id=run_id,
                    created_at=now(),
                ),
            )

    def rollback(
        self, run_id: str, reason: str = "", *, to: int | None = None, undoing: int | None = None
    ) -> Entry:
        """Make the champion before this one champion again, or the version `to`.

        The entry's decision names the undone entries and the reason. Of a version that a rollback
        took back, `to` undoes that rollback: the present champion becomes the one before it.
        undoing: entry of the champion that the caller wants to roll back.
        Idempotent per pipeline run. Raises NothingToRollBack where there was no such champion,
        Superseded where another entry than `undoing` is champion by now.
        """
        with self._database.writing() as cursor:
            entries = self._entries(cursor)
            if (entry_of_run := next((e for e in entries if e.run_id == run_id), None)) is not None:
                return entry_of_run
            stack = champions(entries)
            if undoing is not None and stack and stack[-1].entry != undoing:
                raise Superseded(
                    f"{named(stack[-1])} is champion by now, not the one to roll back: check "
                    "`ratchet status`"
                )
            if back := _taken_back(entries, stack, to):
                undone = []
                sentence = f"The rollback of {named(back)} was undone, it is champion again."
            else:
                below = _below(stack, to)
                back, undone = stack[below], stack[below + 1 :][::-1]
                names = ", ".join(map(named, undone))
                were = "was" if len(undone) == 1 else "were"
                sentence = f"{names} {were} rolled back, {named(back)} is champion again."
            decision = {
                "kind": "rollback",
                "undone_entries": [entry.entry for entry in undone],
                "reasons": [sentence, *([reason] if reason else [])],
            }
            if (Path(back.path) / REMOVED).exists():
                raise NothingToRollBack(
                    f"the weights of {named(back)} were removed to save space: "
                    "storage.keep_versions says how many champions keep theirs"
                )
            before = stack[-1].entry
            place = (back.version, back.checkpoint, back.checkpoint_hash, back.path)
            return self._insert(
                cursor, Entry(_next(entries), "rollback", *place, before, decision, run_id, now())
            )

    def sync_lock(self) -> AbstractContextManager[None]:
        """Lock held while MLflow is synced.

        It allows one projection at a time, so that none registers a checkpoint twice.
        """
        return self._database.sync_lock()

    def _insert(self, cursor: Any, entry: Entry) -> Entry:
        marks = ", ".join([self._database.mark] * len(COLUMNS))
        stored = replace(entry, path=stored_path(entry.path, self.home)) if self.home else entry
        row = [
            json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
            for value in astuple(stored)
        ]
        cursor.execute(f"INSERT INTO promotions ({', '.join(COLUMNS)}) VALUES ({marks})", row)
        record_hashes(cursor, self._database.mark)
        return entry

    def _entries(self, cursor: Any) -> list[Entry]:
        """Return all entries. Raises LedgerChanged for the first that differs from its hash."""
        try:
            return self._verified.items(rows_of(cursor), recorded_hashes(cursor))
        except WrongRow as wrong:
            raise LedgerChanged(
                f"{self.place}: entry {wrong.number} of the ledger is not what was recorded: "
                f"{RESTORE}; nothing is promoted until then"
            ) from wrong

    def _entry(self, values: Sequence[Any]) -> Entry:
        row = dict(zip(COLUMNS, values, strict=True))
        path = present_path(row["path"], self.home) if self.home else row["path"]
        return Entry(**row | {"decision": json.loads(row["decision"]), "path": path})


def champions(entries: Sequence[Entry]) -> list[Entry]:
    """Return the champions that can be restored, the present one last.

    A promotion adds its entry at the end, and so does an undone rollback. A rollback replaces
    entries at the end by its own.
    """
    stack: list[Entry] = []
    for entry in entries:
        if entry.kind == "rollback" and (depth := len(entry.decision["undone_entries"])):
            stack[-1 - depth :] = [entry]
        elif entry.kind != "refuse":
            stack.append(entry)
    return stack


def champion_of(entries: Sequence[Entry]) -> Entry | None:
    return next(iter(champions(entries)[::-1]), None)


def previous_of(entries: Sequence[Entry]) -> Entry | None:
    """Return the champion before the present one; after a rollback, the one that it took back."""
    champion = champion_of(entries)
    return next((e for e in entries if champion and e.entry == champion.predecessor), None)


def named(entry: Entry | None) -> str:
    return f"version {entry.version} ({entry.checkpoint})" if entry else "no version"


def _taken_back(entries: list[Entry], stack: list[Entry], to: int | None) -> Entry | None:
    """Return the promotion of this version if rollbacks took it back."""
    if to in {entry.version for entry in stack}:
        return None
    moved = (e for e in entries if e.version == to and e.kind in ("install", "promote"))
    return next(moved, None)


def _below(stack: list[Entry], to: int | None) -> int:
    """Return the position in the stack of the champion that a rollback restores."""
    if len(stack) < 2:
        first = f"{named(stack[0])} is the first champion" if stack else "there is no champion yet"
        raise NothingToRollBack(f"{first}: nothing can be rolled back")
    if to is None:
        return len(stack) - 2
    indices = [i for i, entry in enumerate(stack[:-1]) if entry.version == to]
    if not indices:
        state = "is champion already" if stack[-1].version == to else "was never champion"
        earlier = ", ".join(str(entry.version) for entry in stack[-2::-1])
        raise NothingToRollBack(f"version {to} {state}: give version {earlier}")
    return indices[-1]


def _next(entries: list[Entry]) -> int:
    return entries[-1].entry + 1 if entries else 1
