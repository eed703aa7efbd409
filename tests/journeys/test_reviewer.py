"""A Reviewer is trained and used through the command line.

Its path: records, verl's SFT trainer, verl on Ray against a frozen Generator, `ratchet solve`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from tests.cli.test_reviewer import home_with
from tests.journeys.demo_run import ratchet
from verl_jobs.agents.records import read_reviews
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.samples import read
from verl_jobs.sft.tiny_model import TinyModel, make

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]
SMALL = {
    "steps": 1,
    "save_every": 1,
    "problems_per_step": 4,
    "group_size": 2,
    "prompt_tokens": 400,
    "answer_tokens": 40,
    "agents.tokens": 300,
}
PROBLEM = (
    "# Last\nWrite `solve(x)`, which returns the last number.\n\n## Examples\n```python\n"
    "assert solve([3, 1]) == 1\n```\n"
)


def test_a_reviewer_is_trained_and_used_by_solve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = generate(FamilyConfig(demonstrations=60, train=16, validation=4, visible_tests=2))
    home_with(problems, tmp_path / "home", monkeypatch)
    start, supervised, reinforced, reviews = (
        tmp_path / name for name in ("start", "supervised", "reinforced", "reviews.parquet")
    )
    run_command(0, "reviewer", "records", "--out", str(reviews))
    comments = [review.comment for review in read_reviews(reviews)]
    make(TinyModel(positions=1024), [*map(prompt_text, problems), *comments], start)

    run_command(
        0,
        "reviewer",
        "teach",
        "--from",
        str(start),
        "--records",
        str(reviews),
        "--out",
        str(supervised),
        "--steps",
        "2",
        "--batch",
        "4",
    )
    changes = [
        part for name, value in SMALL.items() for part in ("--set", f"training.{name}={value}")
    ]
    run_command(
        0,
        "reviewer",
        "reinforce",
        "--from",
        str(supervised),
        "--generator",
        str(start),
        "--out",
        str(reinforced),
        "--profile",
        "small",
        *changes,
    )

    # Each stage changed the weights.
    folders = (start, supervised, reinforced)
    assert len({(folder / "model.safetensors").read_bytes() for folder in folders}) == 3
    [job_file] = (tmp_path / ".reinforced.training").glob("*/job.json")
    job = TrainingJob.read(job_file)
    assert metrics(job.path)[-1]["step"] == 1
    assert all(abs(sample.reward) <= 1 for sample in read(job.path, 1))
    (tmp_path / "problem.md").write_text(PROBLEM)
    conversation = run_command(
        1,
        "solve",
        str(tmp_path / "problem.md"),
        "--model",
        str(start),
        "--reviewer",
        str(reinforced),
        "--turns",
        "2",
        "--tokens",
        "40",
    )
    assert "Reviewer" in conversation
    assert conversation.count("Executor") == 2


def run_command(code: int, *arguments: str) -> str:
    run = subprocess.run(
        ratchet(*arguments), env=os.environ, capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stdout[-2000:] + run.stderr[-3000:]
    return run.stdout
