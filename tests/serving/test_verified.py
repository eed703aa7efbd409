"""Answers that pass tests: programs of an engine that knows a few, judged in the real sandbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.home import Home
from serving.completion import Delta, EngineRequest
from serving.gateway.observations import Observations
from tests.serving.faulty_engine import NoModel
from tests.serving.gateway_server import ask, content, eventually, fast, promote, running

WRONG, HALF, RIGHT = ("def f(x):\n    return " + value for value in ("0", "abs(x)", "x"))
TESTS = {"entry_point": "f", "cases": [{"args": [n], "expected": n} for n in (1, -1)]}


class Programs(NoModel):
    """The first program is the greedy completion, the others are sampled in order."""

    def __init__(self, *programs: str) -> None:
        self.programs = programs

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        greedy = request.temperature == 0
        for index in range(request.n):
            program = self.programs[0 if greedy else (1 + index) % len(self.programs)]
            yield Delta(index, program, 5, ending="stop", prompt_tokens=3)


@pytest.fixture(scope="module")
def known() -> Programs:
    return Programs(WRONG)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("verified"))


@pytest.fixture(scope="module")
def url(home: Home, checkpoints: dict[str, Path], known: Programs) -> Iterator[str]:
    """A gateway whose sandbox serves all tests."""
    from serving.gateway.app import make_app

    promote(home, "old", checkpoints["old"])
    with running(make_app(home, fast(), open_engine=lambda *_: known)) as address:
        yield address


def best(url: str, **more: Any) -> tuple[str, dict[str, Any]]:
    status, reply = ask(url, tests=TESTS | more)
    assert status == 200, reply
    return content(reply), reply["verdict"]


def test_the_first_candidate_that_passes_is_returned(url: str, home: Home, known: Programs) -> None:
    known.programs = (WRONG, HALF, RIGHT)
    program, verdict = best(url)
    assert program == RIGHT
    assert verdict == {"verdict": "AC", "passed": 2, "total": 2, "candidates": 3}
    rows = Observations(home.observations)
    row = eventually(lambda: next((row for _, row in rows.read() if row.verified), None))
    assert row.verified is True
    assert row.completion_tokens == 15


def test_without_one_that_passes_the_best_is_returned(url: str, known: Programs) -> None:
    known.programs = (WRONG, HALF)
    program, verdict = best(url)
    assert program == HALF
    assert (verdict["verdict"], verdict["passed"]) == ("WA", 1)


def test_one_candidate_is_the_answer_without_tests(url: str, known: Programs) -> None:
    known.programs = (WRONG, RIGHT)
    program, verdict = best(url, candidates=1)
    assert program == content(ask(url)[1]) == WRONG
    assert verdict["candidates"] == 1
