"""A pipeline run from a named base model: its problems are the user's, and the base is the first
champion.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.scorecard import Scorecard
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import read_parquet
from resources.home import Home
from resources.registry.ledger import Ledger
from tests.journeys.own_rows import write_rows
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
SMALL = (
    "augmentation.kinds=[]",
    "verification.mutants=0",
    "ranking={problems: 4, answers: 2}",
    "training.steps=2",
    "training.warm_up_steps=0",
    "training.save_every=2",
    "training.problems_per_step=4",
    "training.group_size=4",
    "evaluation.benchmarks=[]",
    "needs={disk_gib: 1, memory_gib: 2}",
)


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        cwd=ROOT,
        env=os.environ | {"RATCHET_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp("named_base")
    problems = generate(FamilyConfig(demonstrations=1, train=40, validation=1))
    texts = [text for each in problems for text in (each.statement, each.solutions[0])]
    make(TinyModel(hidden=64, layers=2), texts, path / "base")
    write_rows(problems, path / "mine.jsonl")
    command = ["train", "--base", str(path / "base"), "--problems", str(path / "mine.jsonl")]
    changes = [argument for change in SMALL for argument in ("--set", change)]
    refused = run(path, *command, *changes, "--set", "reward.by.no_such_tag.style=1")
    assert "no training problem has the tag 'no_such_tag'" in refused.stderr
    asked = run(path, *command, *changes)
    assert asked.returncode == 2
    assert "11 held out for the gate" in asked.stdout
    assert not (path / "sources.json").exists()
    trained = run(path, *command, *changes, "--yes")
    assert trained.returncode == 0, trained.stdout + trained.stderr
    return Home(path)


def test_no_embedded_problem_is_in_the_data(home: Home) -> None:
    clean = home.store().require("datasets", "clean_problems").path
    problems = read_parquet(clean / "problems.parquet")
    assert {problem.source for problem in problems} == {"mine"}
    assert {problem.split for problem in problems} == {"train", "validation", "heldout"}


def test_the_base_as_it_is_becomes_the_first_champion(home: Home) -> None:
    base = home.store().require("checkpoints", "base_model")
    warm_up = home.store().require("checkpoints", "sft_checkpoint")
    first = Ledger(home.ledger).history()[0]
    assert warm_up.manifest.facts == {"demonstrations": 0}
    assert first.checkpoint_hash == warm_up.content_hash == base.content_hash


def test_the_gate_decides_on_the_users_held_out_problems(home: Home) -> None:
    scores = home.store().require("scores", "chain-0001--heldout")
    solved = Scorecard.stored(scores).solved
    assert solved
    assert all(task.startswith("mine/") for task in solved)


def test_its_scores_and_provenance_can_be_reproduced(home: Home) -> None:
    for command in ("provenance", "reproduce"):
        result = run(home.path, command, "chain-0001--heldout")
        assert result.returncode == 0, result.stdout + result.stderr
