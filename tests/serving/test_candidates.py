"""Which failed requests a gateway keeps: real HTTP, a real sandbox and a real SQLite file."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.config.production import Production
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Entry
from serving import openai
from serving.completion import Delta, EngineRequest
from serving.gateway.candidates import Candidate, Candidates
from serving.gateway.keys import Keys
from serving.gateway.observations import Observations
from tests.serving.faulty_engine import NoModel
from tests.serving.gateway_server import ask, eventually, fast, promote, running

TASK = "Return the number that is one larger than x."
SOLVABLE, UNSOLVABLE = (
    {"entry_point": "f", "cases": [{"args": [4], "expected": value}]} for value in (4, 5)
)


class Identity(NoModel):
    """Each completion returns its argument."""

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        for index in range(request.n):
            yield Delta(index, "def f(x):\n    return x", 5, ending="stop", prompt_tokens=3)


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    from serving.gateway.app import make_app

    def opened(entry: Entry, settings: Serving) -> Identity:
        return Identity()

    weights = home.path / "weights"
    weights.mkdir(parents=True)
    (weights / "none.txt").write_text("the engine needs none", encoding="utf-8")
    promote(home, "identity", weights)
    with running(make_app(home, fast(), open_engine=opened)) as address:
        yield address


def send(url: str, home: Home, key: str, tests: dict[str, Any], *, text: str = TASK) -> None:
    """Send a request and wait until it is recorded; what is kept is written right after that."""
    before = len(list(Observations(home.observations).read()))
    messages = [{"role": "system", "content": "You code."}, {"role": "user", "content": text}]
    status, reply = ask(url, key, messages=messages, tests=tests, user="ann@corp.com")
    assert status == 200, reply
    eventually(lambda: len(list(Observations(home.observations).read())) > before)


def kept(home: Home) -> list[dict[str, Any]]:
    return list(Candidates(home.candidates).rows(key.id for key in Keys(home.api_keys).all()))


def test_a_failed_request_of_a_consenting_key_is_kept_without_user_and_name(
    url: str, home: Home
) -> None:
    token = Keys(home.api_keys).add("corp-key", "user", consent=True)
    eventually(lambda: ask(url, "")[0] == 401)
    send(url, home, token, UNSOLVABLE)
    [row] = eventually(lambda: kept(home))
    assert row["statement"] == TASK
    assert row["tests"][0]["expected"] == 5
    assert row["key"] == Keys(home.api_keys).all()[0].id
    stored = b"".join(path.read_bytes() for path in home.path.glob("candidates.db*"))
    assert TASK.encode() in stored
    assert not [text for text in (b"ann@corp", b"corp-key", token.encode()) if text in stored]


def test_a_request_that_an_answer_passes_is_not_kept(url: str, home: Home) -> None:
    token = Keys(home.api_keys).add("ann", "user", consent=True)
    eventually(lambda: ask(url, "")[0] == 401)
    send(url, home, token, SOLVABLE)
    send(url, home, token, UNSOLVABLE)
    eventually(lambda: kept(home))
    assert [row["tests"][0]["expected"] for row in kept(home)] == [5]


def test_nothing_is_kept_of_a_key_that_does_not_consent(url: str, home: Home) -> None:
    keys = Keys(home.api_keys)
    silent, open_ = keys.add("ann", "user"), keys.add("bob", "user", consent=True)
    eventually(lambda: ask(url, "")[0] == 401)
    send(url, home, silent, UNSOLVABLE, text="Private: " + TASK)
    send(url, home, open_, UNSOLVABLE)
    eventually(lambda: kept(home))
    assert [row["statement"] for row in kept(home)] == [TASK]


def candidate(number: int, key: str = "a" * 16, time: float = 0.0, text: str = TASK) -> Candidate:
    tests = openai.Tests.model_validate(
        {"entry_point": "f", "cases": [{"args": [number], "expected": number + 1}]}
    )
    return Candidate(time, key, text, tests)


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    return Candidates(tmp_path / "candidates.db", Production(a_day=3, max_tasks=8))


def count(candidates: Candidates, *keys: str) -> int:
    return len(list(candidates.rows(keys)))


def test_a_flood_of_one_key_is_capped_a_day(candidates: Candidates) -> None:
    candidates.append(candidate(n, "flood") for n in range(100))
    candidates.append([candidate(200, "other"), candidate(300, "flood", time=86_400.5)])
    assert (count(candidates, "flood"), count(candidates, "other")) == (4, 1)


def test_all_keys_together_are_capped(candidates: Candidates) -> None:
    keys = [f"key{n}" for n in range(20)]
    candidates.append(candidate(n, key) for n, key in enumerate(keys))
    assert count(candidates, *keys) == 8


def test_the_same_task_is_kept_once(candidates: Candidates) -> None:
    candidates.append([candidate(1, "a"), candidate(1, "b")])
    assert count(candidates, "a", "b") == 1


@pytest.mark.parametrize(
    "unfit",
    [
        candidate(1, text=f"{TASK} Mail the result to jane.roe@corp-mail.com."),
        candidate(1, text=f"{TASK} Use ghp_{'a1B2' * 9}."),
        candidate(1, text="x" * 40_000),
        candidate(1, text="half \ud800"),
        dataclasses.replace(
            candidate(1),
            chat=[{"role": role, "content": TASK} for role in ("user", "assistant", "user")],
        ),
    ],
    ids=["mail address", "token", "too large", "half a surrogate", "conversation"],
)
def test_a_request_that_is_no_plain_task_leaves_no_file(
    candidates: Candidates, unfit: Candidate
) -> None:
    candidates.append([unfit])
    assert not candidates.path.exists()


@pytest.mark.parametrize("statement", ["DELETE FROM candidates", "UPDATE candidates SET key = ''"])
def test_what_is_kept_cannot_be_changed(candidates: Candidates, statement: str) -> None:
    candidates.append([candidate(1)])
    with (
        sqlite3.connect(candidates.path) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)
