"""A dataset published over HTTP is fetched, checked and trained on, in a home without sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from resources.home import Home
from tests.journeys.own_rows import write_rows
from tests.web_server import served
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = pytest.mark.timeout(1500)
ROOT = Path(__file__).parents[2]
CHECKPOINT = ("checkpoints", "chain-0001")
PROFILE = """\
base: {base}
augmentation: {{kinds: []}}
verification: {{mutants: 0}}
ranking: {{problems: 4, answers: 2}}
training: {{steps: 1, problems_per_step: 4, group_size: 2, save_every: 1}}
evaluation: {{benchmarks: []}}
"""


def ratchet(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", *arguments]
    settings = os.environ | {"RATCHET_HOME": str(home)}
    return subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder of a dataset, beside the profile that made it, and its URL."""
    folder = tmp_path_factory.mktemp("published")
    problems = generate(FamilyConfig(demonstrations=1, train=24, validation=1))
    texts = [text for each in problems for text in (each.statement, each.solutions[0])]
    make(TinyModel(hidden=64, layers=2), texts, folder / "base")
    (folder / "p.yaml").write_text(PROFILE.format(base=folder / "base"))
    write_rows(problems, folder / "mine.jsonl")
    build = ("data", "build", "--profile", str(folder / "p.yaml"), str(folder / "mine.jsonl"))
    built = ratchet(folder / "builder", *build, "--out", str(folder / "out"))
    assert built.returncode == 0, built.stdout + built.stderr
    with served(folder / "out") as url:
        yield folder / "out", url


def train(home: Path, dataset: Path, url: str) -> subprocess.CompletedProcess[str]:
    profile = str(dataset.parent / "p.yaml")
    return ratchet(home, "train", "--profile", profile, "--set", f"dataset={url}")


@pytest.mark.soak  # a complete pipeline run
def test_a_dataset_is_trained_on_by_its_url(tmp_path: Path, published: tuple[Path, str]) -> None:
    dataset, url = published
    trained = train(tmp_path / "home", dataset, url)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    store = Home(tmp_path / "home").store()
    clean = store.require("datasets", "clean_problems")
    made = json.loads((dataset / "manifest.json").read_text())
    assert clean.content_hash == made["content_hash"]
    rows, checkpoint = store.require("datasets", "training_rows"), store.require(*CHECKPOINT)
    assert rows.manifest.inputs["clean_problems"] == made["content_hash"]
    assert checkpoint.manifest.inputs["training_rows"] == rows.content_hash
