"""A run of `contestant_scores` that is killed during generation resumes from its completions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from artifacts.json_lines import HASH, line_of
from artifacts.store import Artifact
from assets.contestant_scores import read_scores
from evaluation.benchmarks import validation
from evaluation.benchmarks.embedded import answering
from evaluation.evaluate import evaluate
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from sandbox.sandbox import Sandbox
from tests.pipelines import daily_validation
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_stale_scores import cleaned

ROOT = Path(__file__).parents[2]
TASKS = 12


@pytest.fixture
def champion(home_builder: HomeBuilder) -> Artifact:
    """Make a tiny model with real weights the champion of a home with validation problems."""
    cleaned(home_builder, TASKS, "one")
    statements = [problem.statement for problem in problems()]
    return home_builder.tiny_champion(statements * 2, layers=2, heads=4)


def problems() -> list[Problem]:
    return generate(FamilyConfig(demonstrations=4, train=2, validation=TASKS))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_evaluation_resumes_from_its_cached_completions(
    champion: Artifact, home_builder: HomeBuilder
) -> None:
    home = home_builder.run_context.home.path
    cache = home / "answers"
    killed = subprocess.Popen(
        [sys.executable, daily_validation.__file__, str(home)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    while sum(file.read_bytes().count(b"\n") for file in cache.glob("*.jsonl")) < 5:
        assert killed.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    [journal] = cache.glob("*.jsonl")
    head, first, *others = journal.read_bytes().rpartition(b"\n")[0].splitlines()
    assert 4 <= len([first, *others]) < TASKS
    # The model cannot generate this text, so it shows which completion came from the cache.
    changed = json.loads(first) | {"text": "kept", "seconds": 1000.0}
    del changed[HASH]
    journal.write_bytes(head + b"\n" + line_of(changed) + b"\n".join([*others, b""]))
    daily_validation.validate(home)
    rows = [json.loads(line) for line in journal.read_bytes().splitlines()[1:]]
    assert len(rows) == len({row["prompt"] for row in rows})
    scorecard = read_scores(
        home_builder.run_context.store.require("scores", daily_validation.NAME)
    ).champion["validation"]
    benchmark = validation(
        problems(), answering(home_builder.run_context.profile.training.answer_tokens)
    )
    with Sandbox() as sandbox:
        undisturbed = evaluate(champion.path, "tiny", champion.content_hash, benchmark, sandbox)
    differ = [
        (a.completion, b.task_id)
        for a, b in zip(scorecard.samples, undisturbed.samples, strict=True)
        if a.completion != b.completion
    ]
    assert [answer for answer, _ in differ] == ["kept"]
    assert scorecard.measured["generation_s"] > 1000.0  # includes the time of the killed run
