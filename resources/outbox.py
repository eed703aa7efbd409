"""The record of the messages that each receiver was sent, so that neither a restart nor a second
host sends one twice. It is a table in the database of the home's records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.config.notify import Event
from resources.registry.ledger_database import Schema, database

CLAIMED_S = 600.0  # after which a message counts as not sent: its sender was killed
QUIET_S = 3600.0  # a state that ends and comes back sooner is not sent again
KEPT_S = 90 * 86400.0  # that the record of a message stays, once its notice does not hold
TABLE = (
    "CREATE TABLE IF NOT EXISTS notices (receiver TEXT NOT NULL, key TEXT NOT NULL, "
    "state TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (receiver, key));"
)
SCHEMA = Schema("the sent messages", "notices", "notices", TABLE, TABLE, lock=0x7261_7463_0009)
KNOWN = "known since"  # key of the row that says since when a receiver is known
Row = tuple[str, float]  # claimed, sent, lasts or over; seconds since 1970


@dataclass(frozen=True)
class Notice:
    """A message that each receiver gets once. key: its permanent name.

    at: when it happened, in seconds since 1970; None for a state that lasts, which is sent again if
    it has ended and comes back.
    """

    event: Event
    key: str
    title: str
    text: str
    at: float | None = None


class Outbox:
    """The messages that were sent, or are being sent, to each receiver.

    place: a file or URL. Each call is one transaction.

    Raises LedgerUnreachable where the file or the server cannot be used.
    """

    def __init__(self, place: Path | str) -> None:
        self._database = database(place, SCHEMA)

    def claim(
        self, receiver: str, notices: Sequence[Notice], now: float, home: str = ""
    ) -> list[Notice]:
        """Return the notices that the caller has to send, and nobody else does meanwhile.

        notices: all that hold at `now`. home: with which the keys of the states begin that the
        caller sees; those of other homes are left as they are. A receiver gets nothing about
        the time before it was known.
        """
        with self._database.writing() as cursor:
            rows = self._rows(cursor, receiver)
            changed: dict[str, Row] = {} if KNOWN in rows else {KNOWN: ("sent", now)}
            known = rows.pop(KNOWN, ("", now))[1]
            holding = {notice.key for notice in notices}
            for key, (state, at) in rows.items():
                if state == "lasts" and key.startswith(home) and key not in holding:
                    changed[key] = ("over", now)
                elif state in ("sent", "over") and now - at > KEPT_S and key not in holding:
                    self._delete(cursor, receiver, key)
            due = []
            for notice in notices:
                state, at = rows.get(notice.key, ("", 0.0))
                if state == "over" and now - at < QUIET_S:
                    changed[notice.key] = ("lasts", at)
                elif (notice.at is None or notice.at >= known) and (
                    state in ("", "over") or (state == "claimed" and now - at > CLAIMED_S)
                ):
                    due.append(notice)
                    changed[notice.key] = ("claimed", now)
            for key, row in changed.items():
                self._write(cursor, receiver, key, row)
            return due

    def settle(self, receiver: str, notice: Notice, now: float, *, sent: bool) -> None:
        """End a claim. A notice that was not sent is claimed again by the next call."""
        with self._database.writing() as cursor:
            if sent:
                state = "sent" if notice.at is not None else "lasts"
                self._write(cursor, receiver, notice.key, (state, now))
            else:
                self._delete(cursor, receiver, notice.key)

    def _rows(self, cursor: Any, receiver: str) -> dict[str, Row]:
        mark = self._database.mark
        cursor.execute(f"SELECT key, state, at FROM notices WHERE receiver = {mark}", (receiver,))
        return {key: (state, float(at)) for key, state, at in cursor.fetchall()}

    def _write(self, cursor: Any, receiver: str, key: str, row: Row) -> None:
        self._delete(cursor, receiver, key)
        marks = ", ".join([self._database.mark] * 4)
        cursor.execute(f"INSERT INTO notices VALUES ({marks})", (receiver, key, *row))

    def _delete(self, cursor: Any, receiver: str, key: str) -> None:
        mark = self._database.mark
        cursor.execute(
            f"DELETE FROM notices WHERE receiver = {mark} AND key = {mark}", (receiver, key)
        )
