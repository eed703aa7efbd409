"""A verdict with trust `shared` earns its reward only if the config allows it.

The score states how much was withheld.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from problems.schema import Problem
from rewards.composite import CompositeReward, Reward, score_answers
from rewards.config import QUALITY, RewardConfig
from rewards.own import OwnReward
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

TESTS = (
    "import unittest\nclass Test(unittest.TestCase):\n    def test_two(self):\n"
    "        self.assertEqual(double(2), 4)\n"
)
DOUBLE = Problem(
    "mine/double", "mine", "Double a number.", "unittest", ({"source": TESTS},), "double"
)
CALLED = replace(DOUBLE, style="call", tests=({"args": [2], "expected": 4},))
SOLUTION, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return x * x * x\n"
OWN = (
    "TASK = 'code'\ndef reward(task, answer, report):\n"
    "    return 1.0 if report.verdict == 'AC' or report.passed else -1.0\n"
)


def rewards(folder: Path, *, shared: bool) -> list[Reward]:
    (folder / "own.py").write_text(OWN)
    config = RewardConfig(shared=shared)
    quality = CompositeReward(QUALITY.model_copy(update={"shared": shared}))
    return [
        Reward(config),
        Reward(RewardConfig(shared=shared, sparse=False)),
        quality,
        OwnReward(folder / "own.py", config),
    ]


def test_by_default_a_shared_verdict_is_not_rewarded(sandbox: Sandbox, tmp_path: Path) -> None:
    for reward in rewards(tmp_path, shared=False):
        right, wrong = score_answers(sandbox, reward, [(DOUBLE, SOLUTION), (DOUBLE, WRONG)])
        assert right.value == wrong.value


def test_the_score_reports_shared_trust_and_the_withheld_reward(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    for off, on in zip(
        rewards(tmp_path, shared=False), rewards(tmp_path, shared=True), strict=True
    ):
        [unpaid], [paid] = (
            score_answers(sandbox, reward, [(DOUBLE, SOLUTION)]) for reward in (off, on)
        )
        assert unpaid.shared
        assert paid.shared
        assert unpaid.unpaid > 0
        assert paid.unpaid == 0
        assert (unpaid.value or 0.0) + unpaid.unpaid == pytest.approx(paid.value)
        # what validation counts is unchanged
        assert (unpaid.verdict, unpaid.solved, unpaid.passed, unpaid.hidden) == (
            Verdict.AC,
            True,
            1,
            1.0,
        )


def test_a_verdict_decided_apart_gets_the_full_reward(sandbox: Sandbox, tmp_path: Path) -> None:
    for off, on in zip(
        rewards(tmp_path, shared=False), rewards(tmp_path, shared=True), strict=True
    ):
        scores = [score_answers(sandbox, reward, [(CALLED, SOLUTION)])[0] for reward in (off, on)]
        assert scores[0] == scores[1]
        assert not scores[0].shared
        assert not scores[0].unpaid
