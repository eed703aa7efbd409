"""`ratchet data production` makes a source of what consenting keys could not get solved."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from cli.data.production import data_production
from problems.catalogue import read_sources
from problems.sources.registry import load
from resources.home import Home
from serving import openai
from serving.gateway.candidates import Candidate, Candidates
from serving.gateway.keys import Keys

TESTS = openai.Tests.model_validate(
    {"entry_point": "f", "cases": [{"args": [{"$tuple": [1, 2]}], "expected": 2}]}
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two consenting keys, each with a failed request."""
    home = Home(tmp_path)
    keys = Keys(home.api_keys)
    for name in ("ann", "bob"):
        keys.add(name, "user", consent=True)
    Candidates(home.candidates).append(
        Candidate(0.0, key.id, f"Return the longest word, says {key.name}.", TESTS)
        for key in keys.all()
    )
    return home


def statements(home: Home) -> list[str]:
    data_production(home, Console(quiet=True))
    place = read_sources(home.path).get("production")
    return [problem.statement for problem in load("production", place).problems] if place else []


def test_the_kept_requests_become_problems_for_training(home: Home) -> None:
    assert len(statements(home)) == 2
    place = read_sources(home.path)["production"]
    problem = load("production", place).problems[0]
    assert (problem.split, problem.tests[0]["args"]) == ("train", [(1, 2)])


def test_the_same_requests_are_the_same_source(home: Home) -> None:
    statements(home)
    before = read_sources(home.path)["production"].content
    statements(home)
    assert read_sources(home.path)["production"].content == before


def test_without_its_key_a_request_is_no_longer_used(home: Home) -> None:
    statements(home)
    Keys(home.api_keys).revoke("ann")
    assert statements(home) == ["Return the longest word, says bob."]
    Keys(home.api_keys).revoke("bob")
    assert statements(home) == []
