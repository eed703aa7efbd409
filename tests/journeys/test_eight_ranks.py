"""Eight ranks on the private Ray of a CPU start and make a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.config.profile import Profile
from tests.journeys.test_examples import train_tiny
from verl_jobs.config.training import Training
from verl_jobs.job import metrics


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_eight_ranks_make_a_step(tmp_path: Path) -> None:
    training = Training(
        ranks=8, threads=1, steps=1, save_every=1, problems_per_step=8, group_size=2
    )
    [last] = [
        row
        for row in metrics(train_tiny(training, Profile().reward, tmp_path).path)
        if row["step"] == 1
    ]
    assert last["perf/total_num_tokens"] > 0
    assert last["actor/grad_norm"] >= 0
    saves = sorted(path.name for path in (tmp_path / "saves" / "global_step_1").rglob("model_*.pt"))
    assert saves == [f"model_world_size_8_rank_{rank}.pt" for rank in range(8)]
