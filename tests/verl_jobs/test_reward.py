"""The reward function as verl calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from problems.dataset.rl_parquet import ground_truth
from rewards.battery.cases import CODE, MEDIAN
from rewards.score import Score
from sandbox.protocol import Verdict
from verl_jobs.config.references import load
from verl_jobs.trainer.reward_manager import (
    NoScore,
    SandboxRewardManager,
    as_verl,
    compute_score,
)


def test_compute_score_accepts_the_call_of_verl() -> None:
    right = compute_score(
        "battery", f"```python\n{CODE['call'].reference}```", ground_truth(MEDIAN), {"index": 0}
    )
    wrong = compute_score("battery", CODE["call"].wrong, ground_truth(MEDIAN), None, sparse=False)
    assert (right["score"], right["acc"], right["tests_passed"]) == (1.0, 1.0, 1.0) and wrong[
        "score"
    ] < right["score"]
    assert (
        sum(json.loads(wrong["trace"]).values()) == pytest.approx(wrong["score"])
        and right.keys() == wrong.keys()
    )


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


def test_a_plugin_finds_the_reward_manager_by_its_old_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from verl_jobs.reward import SandboxRewardManager\n\n\n"
        "class Mine(SandboxRewardManager):\n    pass\n"
    )
    with pytest.warns(FutureWarning, match=r"verl_jobs\.trainer\.reward_manager"):
        plugin = load(f"{tmp_path / 'mine.py'}:Mine")
    assert issubclass(plugin, SandboxRewardManager)
