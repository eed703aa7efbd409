"""A training with weights by tag has the reward and the share solved of each tag in its metrics."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest

from rewards.config import RewardConfig
from rewards.watch import OTHER
from tests.journeys.test_examples import train_tiny
from verl_jobs.config.training import Training
from verl_jobs.job import metrics
from verl_jobs.samples import read


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_domain_has_metrics_of_its_own(tmp_path: Path) -> None:
    reward = RewardConfig.model_validate({"by": {"nums": {"format": 0.0}}})
    training = Training(
        threads=1, steps=2, save_every=2, problems_per_step=8, group_size=2, answer_tokens=16
    )
    job = train_tiny(training, reward, tmp_path)
    tags = {
        row["problem_id"]: row["tags"] for row in pq.read_table(job.train)["extra_info"].to_pylist()
    }
    for row in metrics(job.path):
        if row["step"] > 0:
            expected = dict[str, list[float]]()
            for sample in read(job.path, row["step"]):
                tag = reward.domain(tags[sample.problem_id]) or OTHER
                expected.setdefault(tag, []).append(sample.reward)
            assert len(expected) == 2
            for tag, rewards in expected.items():
                assert row[f"domain/{tag}/reward"] == pytest.approx(fmean(rewards))
                assert row[f"domain/{tag}/solved"] == 0.0  # the model is untrained
