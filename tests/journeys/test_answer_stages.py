"""A training with a length curriculum is killed, and continues in the stage of its step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.config.profile import Profile
from tests.journeys.one_kill import train_with_a_kill
from tests.journeys.test_examples import tiny_job
from verl_jobs import samples
from verl_jobs.config.answer_stages import AnswerStage
from verl_jobs.config.training import Training
from verl_jobs.job import metrics
from verl_jobs.samples import CUT
from verl_jobs.trainer.truncated import MASKED


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_resumed_training_continues_in_the_stage_of_its_step(tmp_path: Path) -> None:
    from verl_jobs.trainer.replay_buffer import LIMIT

    training = Training(
        threads=1, steps=8, save_every=2, problems_per_step=4, group_size=2, answer_tokens=32,
        answer_stages=(AnswerStage(until=3, tokens=8), AnswerStage(until=5, tokens=16)),
        overlong="mask", entropy_coefficient=0.05,
    )  # fmt: skip
    job = tiny_job(training, Profile().reward, tmp_path)
    saved = train_with_a_kill(job)
    resumed = sorted(job.path.glob("metrics-*.jsonl"))[-1].read_text().splitlines()
    first = min(row["step"] for row in map(json.loads, resumed) if LIMIT in row["data"])
    assert first == saved + 1
    rows = {row["step"]: row for row in metrics(job.path) if row["step"] > 0}
    limits = {step: row[LIMIT] for step, row in rows.items()}
    assert limits == dict(zip(range(1, 9), (8, 8, 8, 16, 16, 32, 32, 32), strict=True))
    for step, row in rows.items():
        assert row["response_length/max"] <= limits[step]
        assert row[CUT] == sum(each.cut for each in samples.read(job.path, step)) / 8
        assert row[MASKED] == (row[CUT] if row[CUT] < 1 else 0.0)
    assert max(rows[step]["response_length/max"] for step in (6, 7, 8)) > 16
