"""API keys: who may send requests, and how many.

In: the keys' hashes, in the database of the run records. Out: the caller of a request. A key is 256
random bits, so that a plain SHA-256 at rest cannot be reversed; the key itself is shown once, when
it is made.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from artifacts.hashing import hash_text
from artifacts.integrity import RESTORE, reading
from resources.home import NotReady
from resources.registry.ledger_database import LedgerUnreachable, Schema, database
from serving.gateway.refusals import Refused

TABLE = (
    "CREATE TABLE IF NOT EXISTS api_keys (hash TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
    "key TEXT NOT NULL);"
)
SCHEMA = Schema("the API keys", "api_keys", "api_keys", TABLE, TABLE, lock=0x7261_7463_0006)
Role = Literal["user", "operator"]
logger = logging.getLogger(__name__)
PREFIX = "rk-"


@dataclass(frozen=True)
class ApiKey:
    """A stored key. requests_per_minute, body_mib: its limits; None: those of the settings.
    priority: of its requests in the queue. consent: of its owner, that requests whose tests no
    answer passed become training problems.
    """

    name: str
    hash: str
    role: Role = "user"
    requests_per_minute: int | None = None
    body_mib: float | None = None
    priority: int = 0
    created_at: str = ""
    consent: bool = False

    @property
    def id(self) -> str:
        """Short name of the key in observations."""
        return self.hash[:16]


ANYBODY = ApiKey("anybody", "", "operator")  # on the loopback, while there are no keys


class Keys:
    """The API keys of a gateway.

    place: a SQLite file, or a `postgresql://` URL. Without keys everybody on this machine may do
    all.

    A process that has seen a key needs one until it ends: the last key's revocation must not open a
    gateway that listens on a network. needed: a key is needed from the start. later: a server that
    cannot be reached now is read by the next `read`; until then nobody's request is answered.
    """

    def __init__(self, place: Path | str, *, needed: bool = False, later: bool = False) -> None:
        self.place = place
        self._database = database(place, SCHEMA)
        self._texts: list[str] = []
        self._by_hash: Mapping[str, ApiKey] = {}
        self._needed, self._away, self.known = needed, False, False
        if later and isinstance(place, str):
            self.read()
            return
        with self._database.reading() as cursor:
            self._read(cursor)

    def read(self) -> None:
        """Read the keys again. While the database cannot be reached, those of the last time stay.
        Raises CorruptArtifact.
        """
        try:
            with self._database.reading() as cursor:
                self._read(cursor)
            self._away = False
        except LedgerUnreachable as error:
            if not self._away:  # once, not at every look
                state = "API keys of the last time stay" if self.known else "API keys are not known"
                logger.warning("the %s: %s", state, error)
            self._away = True

    def _read(self, cursor: Any) -> None:
        texts: list[str] = []
        if cursor:
            cursor.execute("SELECT key FROM api_keys ORDER BY name")
            texts = [text for (text,) in cursor.fetchall()]
        if self.known and texts == self._texts:
            return
        with reading(f"{self.place}: API keys", RESTORE):
            keys = [ApiKey(**json.loads(text)) for text in texts]
        self.known = True
        self._by_hash = {key.hash: key for key in keys}
        self._needed |= bool(keys)
        self._texts = texts

    def all(self) -> list[ApiKey]:
        return list(self._by_hash.values())

    def caller(self, authorization: str) -> ApiKey:
        """Return who sends a request with this header. Raises Refused (401, or 503 before the keys
        were read).
        """
        if not self.known:
            raise Refused(503, "keys_unknown", "the API keys cannot be read yet: try again", 5.0)
        if not self._needed:
            return ANYBODY
        scheme, _, token = authorization.partition(" ")
        key = self._by_hash.get(hash_of(token.strip())) if scheme.lower() == "bearer" else None
        if key is None:
            raise Refused(401, "invalid_api_key", "send `Authorization: Bearer KEY` with a key")
        return key

    def add(
        self,
        name: str,
        role: Role,
        requests_per_minute: int | None = None,
        body_mib: float | None = None,
        priority: int = 0,
        consent: bool = False,
    ) -> str:
        """Store a new key, and return it; nobody can read it again. Raises NotReady for a name that
        is taken or has other signs.
        """
        if not re.fullmatch(r"[A-Za-z0-9_.@+-]{1,64}", name):
            raise NotReady("a key's name has 1 to 64 letters, digits or _ . @ + -")
        token = PREFIX + secrets.token_urlsafe(32)
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        limits = (requests_per_minute, body_mib, priority)
        key = ApiKey(name, hash_of(token), role, *limits, created_at, consent)
        with self._database.writing() as cursor:
            self._read(cursor)
            if name in {key.name for key in self.all()}:
                raise NotReady(f"there is a key {name!r} already: give another name")
            marks = ", ".join([self._database.mark] * 3)
            row = (key.hash, name, json.dumps(asdict(key)))
            cursor.execute(f"INSERT INTO api_keys VALUES ({marks})", row)
            self._read(cursor)
        return token

    def revoke(self, name: str) -> None:
        """Remove a key; a running gateway refuses it within a second. Raises NotReady."""
        with self._database.writing() as cursor:
            self._read(cursor)
            if name not in (names := {key.name for key in self.all()}):
                known = ", ".join(sorted(names)) or "none"
                raise NotReady(f"there is no key {name!r}: there are {known}")
            mark = self._database.mark
            cursor.execute(f"DELETE FROM api_keys WHERE name = {mark}", (name,))
            self._read(cursor)


def hash_of(token: str) -> str:
    return hash_text(token)


class RateLimit:
    """Token bucket of each key: `per_minute` requests, of which a tenth may come at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, since when

    def take(self, key: ApiKey, per_minute: int) -> None:
        """Count one request. Raises Refused (429)."""
        most, now = max(1.0, per_minute / 10), self.clock()
        left, since = self._buckets.get(key.hash, (most, now))
        left = min(most, left + (now - since) * per_minute / 60)
        if left < 1:
            wait_s = (1 - left) * 60 / per_minute
            self._buckets[key.hash] = (left, now)
            message = f"more than {per_minute} requests a minute with this key"
            raise Refused(429, "rate_limit_exceeded", message, wait_s)
        self._buckets[key.hash] = (left - 1, now)
