"""The record of releases: append-only events in the database and with the guarantees of the ledger.

In: what happened to a release, as plain JSON. Out: the open release, the deployed version, the
history. Events cannot be changed or deleted, and each is covered by a hash of all before it. An
event names the event that it follows, so of two controllers one acts.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from artifacts.integrity import RESTORE
from resources.registry.ledger import LedgerChanged
from resources.registry.ledger_database import database, has_table, sqlite_triggers
from resources.registry.row_hashes import (
    VerifiedRows,
    WrongRow,
    record_hashes,
    recorded_hashes,
    rows_of,
)

Kind = Literal["opened", "step", "paused", "resumed", "promoted", "aborted", "rolled_back"]
State = Literal["running", "paused", "promoted", "aborted", "undecided", "rolled_back"]
AFTER: dict[Kind, tuple[tuple[State, ...], State]] = {  # kind -> states it may follow, new state
    "step": (("running",), "running"),
    "paused": (("running",), "paused"),
    "resumed": (("paused",), "running"),
    "promoted": (("running", "paused"), "promoted"),
    "aborted": (("running", "paused"), "aborted"),
    "rolled_back": (("running", "paused"), "rolled_back"),
}
EVENTS, HASHES = "release_events", "release_hashes"
TABLES = (
    f"CREATE TABLE IF NOT EXISTS {EVENTS} (entry BIGINT PRIMARY KEY, release TEXT NOT NULL, "
    f"kind TEXT NOT NULL CHECK (kind IN ('opened', {', '.join(map(repr, AFTER))})), "
    "step BIGINT NOT NULL, detail TEXT NOT NULL, created_at TEXT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {HASHES} (entry BIGINT PRIMARY KEY, hash TEXT NOT NULL)",
)
SQLITE_TRIGGERS = [
    statement
    for table in (EVENTS, HASHES)
    for statement in sqlite_triggers(table, "entry = NEW.entry", f"{table}_")
]
POSTGRES_TRIGGERS = [  # `promotions_are_kept` is the ledger's function
    f"CREATE OR REPLACE TRIGGER {table}_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON "
    f"{table} EXECUTE FUNCTION promotions_are_kept()"
    for table in (EVENTS, HASHES)
]


class NoRelease(LookupError):
    """There is no open release, or another one is open."""


class ReleaseMoved(RuntimeError):
    """Another event came first, or the release's state does not allow this one."""


@dataclass(frozen=True)
class Event:
    """One event. step: position in the plan's steps after it.

    detail: of `opened` the plan, the versions, the cause and the salt; of others reasons and
    evidence; of an experiment's `step` the new shares, of its `promoted` the version; of `aborted`
    `undecided`, if the requests did not show enough in time. The salt is never shown, because it
    tells which version each user will get.
    """

    entry: int
    release: str
    kind: Kind
    step: int
    detail: dict[str, Any]
    created_at: str

    @property
    def time(self) -> float:
        """Seconds since 1970."""
        return datetime.fromisoformat(self.created_at).timestamp()


@dataclass(frozen=True)
class Release:
    """A release as its events tell it.

    champion, challengers: versions of the ledger. An experiment has several challengers;
    `challenger` is the one that was promoted, else the first.
    """

    id: str
    champion: int
    challenger: int
    challengers: tuple[int, ...]
    plan: dict[str, Any]
    state: State
    step: int
    events: tuple[Event, ...]

    @property
    def open(self) -> bool:
        return self.state in ("running", "paused")

    @property
    def last(self) -> Event:
        return self.events[-1]

    @property
    def salt(self) -> str:
        """Secret of the assignment."""
        return str(self.events[0].detail["salt"])

    @property
    def step_since(self) -> float:
        """When the present step began, in seconds since 1970."""
        return next(e.time for e in self.events[::-1] if e.kind in ("opened", "step"))

    def running(self) -> tuple[float, float, float | None]:
        """Return the seconds that the release had run, and its present step had, when it was last
        begun or resumed, and when that was, in seconds since 1970; None while it is paused.
        """
        whole = step = 0.0
        since: float | None = None
        paused = False
        for event in self.events:
            if since is not None:
                whole, step = whole + event.time - since, step + event.time - since
            paused = event.kind == "paused" or (paused and event.kind != "resumed")
            step = 0.0 if event.kind in ("opened", "step") else step
            since = None if paused else event.time
        return whole, step, since


class Releases:
    """The record. Safe among processes and machines; each call is one transaction.

    place: the ledger's file or URL. new_salt: makes the secret of a new release. Each method raises
    LedgerUnreachable where the database cannot be used, and LedgerChanged where an event is not
    what was recorded.
    """

    def __init__(
        self, place: Path | str, new_salt: Callable[[], str] = lambda: secrets.token_hex(16)
    ) -> None:
        self.place, self.new_salt = place, new_salt
        self._database = database(place)
        self._verified = VerifiedRows(_event)

    def all(self) -> list[Release]:
        """Return every release, oldest first."""
        with self._database.reading() as cursor:
            return releases_of(self._events(cursor)) if cursor else []

    def current(self) -> Release | None:
        """Return the open release."""
        return next((release for release in self.all() if release.open), None)

    def open(
        self,
        champion: int,
        challenger: int,
        plan: dict[str, Any],
        *,
        why: str,
        cause: str = "",
        others: Sequence[int] = (),
    ) -> Release:
        """Record a new release. others: further challengers of an experiment.

        cause: a key for which one release is opened at most; called again it returns that one.
        Raises NoRelease while another one is open.
        """
        with self._database.writing() as cursor:
            self._create(cursor)
            releases = releases_of(self._events(cursor))
            known = (r for r in releases if cause and r.events[0].detail["cause"] == cause)
            if (release := next(known, None)) is not None:
                return release
            if (now := next((r for r in releases if r.open), None)) is not None:
                raise NoRelease(
                    f"{now.id} of version {now.challenger} is {now.state}: `ratchet release abort` "
                    "ends it"
                )
            detail = {
                "champion": champion,
                "challenger": challenger,
                **({"others": list(others)} if others else {}),
                "plan": plan,
                "cause": cause,
                "salt": self.new_salt(),
                "reasons": [why],
            }
            name = f"release-{len(releases) + 1:04d}"
            return releases_of([self._insert(cursor, name, "opened", 0, detail)])[0]

    def append(
        self, after: Event, kind: Kind, detail: dict[str, Any], *, step: int | None = None
    ) -> Event:
        """Record what follows an event, and return it.

        after: last event of the release that the caller decided on. step: default the present one.
        Raises ReleaseMoved where another event came first or the state does not allow this one.
        """
        with self._database.writing() as cursor:
            self._create(cursor)
            releases = {r.id: r for r in releases_of(self._events(cursor))}
            release = releases[after.release]
            # A challenger is dropped while an experiment is paused too, and it stays paused.
            states = (*AFTER[kind][0], "paused") if detail.get("dropped") else AFTER[kind][0]
            if release.last.entry != after.entry or release.state not in states:
                last = release.last
                raise ReleaseMoved(
                    f"{release.id} is {release.state} (event {last.entry}, {last.kind}): nothing "
                    "was recorded"
                )
            return self._insert(
                cursor, release.id, kind, release.step if step is None else step, detail
            )

    def _insert(
        self, cursor: Any, release: str, kind: Kind, step: int, detail: dict[str, Any]
    ) -> Event:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        event = Event(len(rows_of(cursor, EVENTS)) + 1, release, kind, step, detail, now)
        row = [json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for v in astuple(event)]
        marks = ", ".join([self._database.mark] * len(row))
        cursor.execute(f"INSERT INTO {EVENTS} VALUES ({marks})", row)
        record_hashes(cursor, self._database.mark, EVENTS, HASHES)
        return event

    def _create(self, cursor: Any) -> None:
        if not has_table(cursor, HASHES):
            # One statement at a time: a script would commit the transaction.
            triggers = SQLITE_TRIGGERS if isinstance(self.place, Path) else POSTGRES_TRIGGERS
            for statement in (*TABLES, *triggers):
                cursor.execute(statement)

    def _events(self, cursor: Any) -> list[Event]:
        """Return all events. Raises LedgerChanged for the first that differs from its hash."""
        if not has_table(cursor, EVENTS):
            return []
        try:
            recorded = recorded_hashes(cursor, HASHES) or []
            return self._verified.items(rows_of(cursor, EVENTS), recorded)
        except WrongRow as wrong:
            raise LedgerChanged(
                f"{self.place}: event {wrong.number} of the releases is not what was recorded: "
                f"{RESTORE}; the traffic stays as it is until then"
            ) from wrong


def _event(values: Sequence[Any]) -> Event:
    row = dict(zip((field.name for field in fields(Event)), values, strict=True))
    return Event(**row | {"detail": json.loads(row["detail"])})


def releases_of(events: Sequence[Event]) -> list[Release]:
    """Return the releases that these events tell, oldest first."""
    by_release: dict[str, list[Event]] = {}
    for event in events:
        by_release.setdefault(event.release, []).append(event)
    return [
        Release(
            id=name,
            champion=own[0].detail["champion"],
            challenger=own[-1].detail.get("version", own[0].detail["challenger"]),
            challengers=(own[0].detail["challenger"], *own[0].detail.get("others", ())),
            plan=own[0].detail["plan"],
            state=state_after(own),
            step=own[-1].step,
            events=tuple(own),
        )
        for name, own in by_release.items()
    ]


def state_after(events: Sequence[Event]) -> State:
    """Return the state of one release. A step does not change it."""
    if events[-1].detail.get("undecided"):
        return "undecided"
    moved = [event.kind for event in events if event.kind not in ("opened", "step")]
    return AFTER[moved[-1]][1] if moved else "running"


def deployed(releases: Sequence[Release]) -> int | None:
    """Return the version that the releases left in front of users; None without a release.

    During a release it is the champion that the challenger is compared with.
    """
    if not releases:
        return None
    last = releases[-1]
    return last.challenger if last.state == "promoted" else last.champion
