"""A failed request goes through the data stages like any other problem."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from cli.data.production import data_production
from problems.catalogue import add_source, read_sources
from problems.reading.place import Place
from problems.schema import read_parquet
from resources.run_context import RunContext
from serving import openai
from serving.gateway.candidates import Candidate, Candidates
from serving.gateway.keys import Keys
from tests.assets.data_stages import datasets, refresh

pytestmark = pytest.mark.slow

STATEMENT = "Return how many vowels the given word has, in either case."
PROGRAMS = (
    "def vowels(word):\n    return sum(letter in 'aeiou' for letter in word.lower())",
    "def vowels(word):\n    return len([c for c in word if c in 'aeiouAEIOU'])",
)
WORDS = {"": 0, "tree": 2, "AbE": 2, "rhythm": 0, "queue": 4, "Iodine": 4}


def test_a_failed_request_becomes_a_training_problem(
    run_context: RunContext, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    home = run_context.home
    Keys(home.api_keys).add("ann", "user", consent=True)
    cases = [{"args": [word], "expected": count} for word, count in WORDS.items()]
    tests = openai.Tests.model_validate({"entry_point": "vowels", "cases": cases})
    [key] = Keys(home.api_keys).all()
    Candidates(home.candidates).append([Candidate(0.0, key.id, STATEMENT, tests)])
    assert data_production(home, Console(quiet=True)) == 0
    place = read_sources(home.path)["production"]
    [row] = map(json.loads, place.path.read_text(encoding="utf-8").splitlines())  # type: ignore[union-attr]
    samples = tmp_path / "samples.jsonl"
    lines = [{"problem_id": row["problem_id"], "completion": text} for text in PROGRAMS]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    add_source(home.path, "production", Place(place.path, samples=samples))
    assert refresh(run_context, instance).success
    path = datasets(run_context)["clean_problems"].path / "problems.parquet"
    [problem] = [each for each in read_parquet(path) if each.source == "production"]
    assert (problem.statement, problem.split) == (STATEMENT, "train")
    assert problem.extra["verified_by"] == "solver"
