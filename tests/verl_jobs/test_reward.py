"""The reward function as verl calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from problems.dataset.rl_parquet import ground_truth
from rewards.battery.cases import CODE, MEDIAN
from rewards.score import Score
from rewards.scorer import NoScore
from sandbox.config import SandboxConfig
from sandbox.protocol import Verdict
from tests.verl_jobs.test_job import a_job
from tests.verl_jobs.test_overrides import settings_of
from verl_jobs.config.agents import Agents
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.reward_manager import (
    as_verl,
    compute_score,
    sandbox_of,
)


def test_compute_score_accepts_the_call_of_verl() -> None:
    right = compute_score(
        "battery", f"```python\n{CODE['call'].reference}```", ground_truth(MEDIAN), {"index": 0}
    )
    wrong = compute_score("battery", CODE["call"].wrong, ground_truth(MEDIAN), None, sparse=False)
    assert (right["score"], right["acc"], right["tests_passed"]) == (1.0, 1.0, 1.0)
    assert wrong["score"] < right["score"]
    assert sum(json.loads(wrong["trace"]).values()) == pytest.approx(wrong["score"])
    assert right.keys() == wrong.keys()


@pytest.mark.parametrize(
    ("source", "answer", "truth", "info", "acc"),
    [
        ("openai/gsm8k", "so #### 72", "72", {}, 1.0),
        ("mine", "Answer: Danube", "the Danube", {"task": "qa"}, 1.0),
        ("mine", "#### 1", "2", {"task": "math"}, 0.0),
    ],
)
def test_a_plain_ground_truth_is_enough_for_questions(
    source: str, answer: str, truth: str, info: dict[str, str], acc: float
) -> None:
    assert compute_score(source, answer, truth, info)["acc"] == acc


def test_a_plain_ground_truth_without_a_task_is_refused() -> None:
    with pytest.raises(ValueError, match="extra_info"):
        compute_score("mine", "x", "y")


def test_a_missing_verdict_raises_and_is_not_zero() -> None:
    with pytest.raises(NoScore):
        as_verl(Score(None, Verdict.INFRA))


def test_a_training_scores_with_the_sandbox_of_the_profile(tmp_path: Path) -> None:
    job = a_job(tmp_path, workers=6, packages=("six",))
    assert sandbox_of(TrainingJob.read(job.write())) == SandboxConfig(workers=6, packages=("six",))
    assert sandbox_of(a_job(tmp_path)) == SandboxConfig()


def test_one_process_a_node_has_the_nodes_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """192 cores: verl's eight reward processes with a worker per core would be 1,536 workers."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(192)))
    gpus = Training(engine="vllm", ranks=16, scale=ScaleSettings(nodes=2))
    settings = settings_of(gpus, tmp_path)
    assert settings["reward.num_workers"] == "2"
    assert sandbox_of(a_job(tmp_path, training=gpus)).workers is None  # a worker per core, once
    talking = gpus.model_copy(update={"agents": Agents(turns=2, tokens=400)})
    assert settings_of(talking, tmp_path)["actor_rollout_ref.rollout.agent.num_workers"] == "8"
    assert sandbox_of(a_job(tmp_path, training=talking)).workers == 192 // 4


def test_other_packages_are_another_training(tmp_path: Path) -> None:
    assert a_job(tmp_path, packages=("six",)).key != a_job(tmp_path).key
