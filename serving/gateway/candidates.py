"""Record of requests that may become training problems: an append-only table of a SQLite file.

In: requests with tests that no answer passed, of API keys that consent. Out: rows of the source
`production`. Kept are statement, tests and the key's hash; neither user nor answer. A request with
a secret or personal data is not kept.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_data
from problems.cleaning.secrets import secret_in
from problems.columns import ProblemError
from problems.production import SOURCE
from problems.sources.production import PRODUCTION
from resources.config.production import Production
from serving.completion import Chat
from serving.gateway.observations import WAIT_S, append_only
from serving.openai import Tests

DAY_S = 86_400
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS candidates (number INTEGER PRIMARY KEY, time REAL NOT NULL, "
    "key TEXT NOT NULL, problem_id TEXT NOT NULL, row TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS by_problem ON candidates (problem_id);"
    "CREATE INDEX IF NOT EXISTS by_key ON candidates (key, time);"
) + append_only("candidates")


@dataclass(frozen=True)
class Candidate:
    """A request that no answer passed. time: since 1970, in seconds. key: id of the API key."""

    time: float
    key: str
    chat: Chat | str
    tests: Tests


class Candidates:
    """The record of requests that may become training problems.

    path: created at the first write. Each call opens the file; any thread or process may.
    """

    def __init__(self, path: Path, limits: Production | None = None) -> None:
        self.path, self.limits = path, limits or Production()

    def append(self, candidates: Iterable[Candidate]) -> None:
        """Record those that are fit to be kept, new, and within the limits."""
        rows = [(each, row) for each in candidates if (row := _row(each, self.limits.kib))]
        if not rows:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=WAIT_S)) as connection:
            self.path.chmod(0o600)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(SCHEMA)
            connection.isolation_level = None
            connection.execute("BEGIN IMMEDIATE")  # gateways of one home share the limits
            for candidate, row in rows:
                self._append(connection, candidate, row)
            connection.execute("COMMIT")

    def _append(
        self, connection: sqlite3.Connection, candidate: Candidate, row: dict[str, Any]
    ) -> None:
        def count(where: str, *values: Any) -> int:
            query = f"SELECT COUNT(*) FROM candidates WHERE {where}"
            return int(connection.execute(query, values).fetchone()[0])

        key, problem_id = candidate.key, row["problem_id"]
        if (
            count("TRUE") < self.limits.max_tasks
            and count("key = ? AND time > ?", key, candidate.time - DAY_S) < self.limits.a_day
            and not count("problem_id = ?", problem_id)
        ):
            connection.execute(
                "INSERT INTO candidates (time, key, problem_id, row) VALUES (?, ?, ?, ?)",
                (candidate.time, key, problem_id, json.dumps(row)),
            )

    def rows(self, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of these keys' requests, oldest first. keys: their ids."""
        if not self.path.exists():
            return
        allowed = set(keys)
        with closing(sqlite3.connect(self.path, timeout=WAIT_S)) as connection:
            exists = "SELECT 1 FROM sqlite_master WHERE name = 'candidates'"
            if connection.execute(exists).fetchone() is None:
                return  # the first write is under way
            for key, row in connection.execute("SELECT key, row FROM candidates ORDER BY number"):
                if key in allowed:
                    yield json.loads(row)


def _row(candidate: Candidate, most_kib: float) -> dict[str, Any] | None:
    """Return the row of the source `production`; None if the request is no single task, is too
    large, cannot be a problem, or has a secret.
    """
    if (statement := _statement(candidate.chat)) is None:
        return None
    task = {
        "statement": statement,
        "style": "call" if candidate.tests.entry_point else "stdio",
        "entry_point": candidate.tests.entry_point,
        "tests": [case.model_dump() for case in candidate.tests.cases],
    }
    try:
        if len(json.dumps(task, ensure_ascii=False).encode()) > most_kib * 1024:
            return None
        row = {"problem_id": f"{SOURCE}/{hash_data(task)[:16]}", **task, "key": candidate.key}
        problem = PRODUCTION.convert(row, "request")
        problem.content_hash  # noqa: B018  # what cannot be hashed cannot be kept
        return None if secret_in(problem) else row
    except (ProblemError, ValueError, TypeError, RecursionError):  # half a surrogate, for example
        return None


def _statement(chat: Chat | str) -> str | None:
    """Return the text that states the task: the only message beside the system's. None for a
    conversation, in which no single message does.
    """
    if isinstance(chat, str):
        return chat
    messages = [message for message in chat if message["role"] != "system"]
    alone = len(messages) == 1 and messages[0]["role"] == "user"
    return str(messages[0]["content"]) if alone else None
