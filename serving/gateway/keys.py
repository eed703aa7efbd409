"""API keys: who may send requests, and how many.

In: a file of the home with the keys' hashes. Out: the caller of a request. A key is 256 random
bits, so that a plain SHA-256 at rest cannot be reversed; the key itself is shown once, when it is
made.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from artifacts.atomic import write_atomic
from artifacts.integrity import reading
from resources.home import NotReady
from serving.gateway.refusals import Refused

Role = Literal["user", "operator"]
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

    path: a JSON file; missing: there are no keys, and everybody on this machine may do all.

    A process that has seen a key needs one until it ends: the last key's revocation must not open a
    gateway that listens on a network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._by_hash: dict[str, ApiKey] = {}
        self._needed = False
        self.read()

    def read(self) -> None:
        """Read the file again if it changed. Raises CorruptArtifact."""
        stamp = None
        if self.path.exists():
            about = self.path.stat()
            stamp = about.st_ino, about.st_mtime_ns
        if stamp == self._stamp:
            return
        rows: list[dict[str, object]] = []
        if stamp:
            with reading(self.path, "restore it from a backup, or delete it and make new keys"):
                rows = json.loads(self.path.read_text(encoding="utf-8"))
                self._by_hash = {key.hash: key for key in (ApiKey(**row) for row in rows)}  # type: ignore[arg-type]
        else:
            self._by_hash = {}
        self._needed |= bool(self._by_hash)
        self._stamp = stamp

    def all(self) -> list[ApiKey]:
        return list(self._by_hash.values())

    def caller(self, authorization: str) -> ApiKey:
        """Return who sends a request with this header. Raises Refused (401)."""
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
        with self._locked():
            if name in {key.name for key in self.all()}:
                raise NotReady(f"there is a key {name!r} already: give another name")
            self._write({**self._by_hash, key.hash: key})
        return token

    def revoke(self, name: str) -> None:
        """Remove a key; a running gateway refuses it within a second. Raises NotReady."""
        with self._locked():
            if name not in (names := {key.name for key in self.all()}):
                known = ", ".join(sorted(names)) or "none"
                raise NotReady(f"there is no key {name!r}: there are {known}")
            self._write({h: key for h, key in self._by_hash.items() if key.name != name})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Read the file as it is now, and let no other process write it meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(f".{self.path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read()
            yield

    def _write(self, keys: Mapping[str, ApiKey]) -> None:
        rows = [asdict(key) for key in keys.values()]
        write_atomic(self.path, json.dumps(rows, indent=1) + "\n")
        os.chmod(self.path, 0o600)  # noqa: PTH101
        self.read()


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


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
