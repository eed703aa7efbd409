"""The battery passes rewards that may train and rejects those that may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rewards.battery.battery import run_battery
from rewards.battery.cases import CODE, HACKS
from rewards.composite import CompositeReward, Reward
from rewards.config import RewardConfig, Weights
from rewards.judging import Judged
from rewards.score import Score
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox


@pytest.mark.soak
@pytest.mark.parametrize(
    "reward",
    [Reward(), CompositeReward(), Reward(RewardConfig(sparse=False))],
    ids=["embedded", "quality", "dense"],
)
def test_shipped_rewards_pass_the_battery(sandbox: Sandbox, reward: Reward) -> None:
    result = run_battery(reward, sandbox)
    assert result.passed, [row for row in result.rows if not row.passed]
    hacks = [path for path in HACKS.glob("*.txt") if path.stem.split("_")[0] in CODE]
    assert len([row for row in result.rows if row.name.startswith("hack: ")]) == len(hacks) >= 15


@pytest.mark.parametrize("task", [pytest.param("math", marks=pytest.mark.soak), "qa"])
def test_a_dense_reward_passes_the_battery_on_questions(sandbox: Sandbox, task: str) -> None:
    result = run_battery(Reward(RewardConfig(sparse=False)), sandbox, task)
    assert result.passed, [row for row in result.rows if not row.passed]


@pytest.mark.slow
def test_correctness_alone_passes_the_battery(sandbox: Sandbox) -> None:
    """A wrong and an empty completion are then equal."""
    weights = Weights(correctness=1.0, format=0.0, style=0.0, efficiency=0.0)
    result = run_battery(Reward(RewardConfig(weights=weights)), sandbox, "qa")
    assert result.passed, [row for row in result.rows if not row.passed]


def test_the_random_control_fails_the_battery(sandbox: Sandbox) -> None:
    assert not run_battery(Reward(RewardConfig(kind="random")), sandbox, "qa").passed


class Bent(Reward):
    """The default reward with its value replaced."""

    def value(self, judged: Judged) -> float:
        raise NotImplementedError

    def score_all(self, batch: Sequence[Judged]) -> list[Score]:
        right = super().score_all(batch)
        return [
            score if score.value is None else replace(score, value=self.value(one))
            for score, one in zip(right, batch, strict=True)
        ]


class RewardsNotCrashing(Bent):
    def value(self, judged: Judged) -> float:
        return 1.0 if judged.report.verdict in (Verdict.AC, Verdict.WA) else -1.0


class RewardsAnythingOnLongStatements(Bent):
    def score_all(self, batch: Sequence[Judged]) -> list[Score]:
        return [
            replace(score, value=1.0) if len(one.task.statement) > 400 and one.completion else score
            for score, one in zip(Reward.score_all(self, batch), batch, strict=True)
        ]


class RewardsTheFirst(Bent):
    """Not a function of the completion: its value depends on the position in the batch."""

    def score_all(self, batch: Sequence[Judged]) -> list[Score]:
        return [
            replace(
                score, value=None if score.value is None else max(-1.0, score.value - at * 1e-9)
            )
            for at, score in enumerate(Reward.score_all(self, batch))
        ]


def test_a_reward_keyed_on_the_statement_fails_by_that_name(sandbox: Sandbox) -> None:
    result = run_battery(RewardsAnythingOnLongStatements(), sandbox, "qa")
    [failed] = [row for row in result.rows if not row.passed]
    assert failed.name.endswith("whatever the length of the statement")
    assert failed.seen == "not for qa, 640 characters"


@pytest.mark.parametrize(
    "reward",
    [RewardsNotCrashing(), pytest.param(RewardsTheFirst(), marks=pytest.mark.slow)],
    ids=lambda reward: type(reward).__name__,
)
def test_an_exploitable_reward_fails_the_battery(sandbox: Sandbox, reward: Reward) -> None:
    assert not run_battery(reward, sandbox, "qa").passed
