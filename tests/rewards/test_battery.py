"""The battery passes what may train, and stops what may not."""

from __future__ import annotations

import pytest

from problems.schema import Problem
from rewards.battery import HACKS, run_battery
from rewards.composite import Reward, RewardConfig
from rewards.score import Score
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox


@pytest.mark.parametrize("sparse", [True, False])
def test_the_rewards_that_we_ship_pass(sandbox: Sandbox, sparse: bool) -> None:
    result = run_battery(Reward(RewardConfig(sparse=sparse)), sandbox)
    assert result.passed, [row for row in result.rows if not row.passed]
    assert len([row for row in result.rows if row.name.startswith("hack: ")]) == len(list(HACKS.glob("*.txt"))) >= 15


def test_the_same_reward_has_the_same_hash(sandbox: Sandbox) -> None:
    assert run_battery(Reward(), sandbox).hash == run_battery(Reward(), sandbox).hash


def test_the_random_control_does_not_pass(sandbox: Sandbox) -> None:
    assert not run_battery(Reward(RewardConfig(kind="random")), sandbox).passed


class PaysForLength(Reward):
    def score(self, problem: Problem, answer: str, report: Report) -> Score:
        if report.verdict is Verdict.INFRA:
            return super().score(problem, answer, report)
        return Score(min(1.0, len(answer) / 100), report.verdict, {}, report.passed, report.total)


class PaysForNotCrashing(Reward):
    def score(self, problem: Problem, answer: str, report: Report) -> Score:
        if report.verdict is Verdict.INFRA:
            return super().score(problem, answer, report)
        return Score(1.0 if report.verdict in (Verdict.AC, Verdict.WA) else -1.0, report.verdict, {}, report.passed, report.total)


@pytest.mark.parametrize("reward", [PaysForLength(), PaysForNotCrashing()])
def test_a_reward_that_can_be_had_for_nothing_does_not_pass(sandbox: Sandbox, reward: Reward) -> None:
    assert not run_battery(reward, sandbox).passed
