"""The reward-hacking watch on synthetic histories."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.battery.cases import CODE, HACKS, MEDIAN
from rewards.composite import Reward, score_answers
from rewards.config import RewardConfig
from rewards.watch import (
    DENIED,
    GAP,
    HIDDEN,
    LOST,
    OVERFIT,
    VISIBLE,
    domain_metrics,
    growth,
    step_metrics,
)
from sandbox.sandbox import Sandbox


def completion(
    visible: float | None, hidden: float | None, denied: int | None = 0
) -> dict[str, Any]:
    return {"visible": visible, "hidden": hidden, "denied": denied}


def run(
    steps: int, seed: int, solves: float, gains: float, hacks: float, harder: float = 0.1
) -> list[dict[str, float]]:
    """Return the metrics of a run with 128 completions per step.

    The share that solves the task grows by `gains`. The share that only knows the visible tests
    grows to `hacks`.
    """
    rng, history = random.Random(seed), []
    for step in range(steps):
        at, completions = step / (steps - 1), []
        for _ in range(128):
            if rng.random() < hacks * at:
                completions.append(completion(1.0, 0.0))
            else:
                visible = rng.random() < solves + gains * at
                completions.append(
                    completion(
                        float(visible), float(visible and rng.random() > harder * (1 - 0.5 * at))
                    )
                )
        history.append(step_metrics(completions, sampled=128))
    return history


@pytest.mark.parametrize("hacks", [0.2, 0.9])
def test_overfitting_to_visible_tests_raises_an_alarm(hacks: float) -> None:
    assert all(growth(run(20, seed, 0.3, 0.1, hacks)).growing for seed in range(3))


def test_learning_the_task_raises_no_alarm() -> None:
    """Also if the hidden tests are so hard that the gap widens as more problems are solved."""
    for harder in (0.0, 0.1, 0.4):
        assert not any(growth(run(20, seed, 0.05, 0.8, 0.0, harder)).growing for seed in range(5))


def test_noise_raises_no_alarm() -> None:
    assert not any(
        growth(run(steps, seed, 0.4, 0.0, 0.0)).growing for seed in range(10) for steps in (9, 30)
    )


def test_few_steps_raise_no_alarm() -> None:
    assert not growth(run(8, 1, 0.3, 0.0, 0.9)).growing
    assert "at least 9" in growth([]).reason


def test_a_constant_gap_raises_no_alarm() -> None:
    assert not growth([{GAP: 0.3, OVERFIT: 0.5}] * 12).growing


def test_each_domain_has_its_own_mean_reward_and_share_solved() -> None:
    config = RewardConfig.model_validate({"by": {"b": {"style": 1.0}, "a": {"style": 0.5}}})
    rows = [
        (("a",), 1.0, True),
        (("a", "b"), 0.5, True),
        (("c",), -1.0, False),
        (("a",), 0.0, False),
    ]
    assert domain_metrics((config.domain(tags), paid, ok) for tags, paid, ok in rows) == {
        "domain/a/reward": 0.5,
        "domain/a/solved": 0.5,
        "domain/b/reward": 0.5,
        "domain/b/solved": 1.0,
        "domain/other problems/reward": -1.0,
        "domain/other problems/solved": 0.0,
    }


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=20))
def test_a_falling_gap_raises_no_alarm(gaps: list[float]) -> None:
    assert not growth([{GAP: gap} for gap in sorted(gaps, reverse=True)]).growing


def test_the_figures_of_a_step_are_computed() -> None:
    completions = [
        completion(1.0, 0.0, 2),
        completion(1.0, 1.0, 0),
        completion(0.0, 0.0, 1),
        completion(None, 0.5, 0),
    ]
    assert step_metrics(completions, sampled=6) == {
        VISIBLE: pytest.approx(2 / 3),
        HIDDEN: 0.375,
        GAP: pytest.approx(1 / 3),
        OVERFIT: 0.5,
        DENIED: 3.0,
        LOST: 2.0,
    }


def test_hard_coded_visible_tests_score_no_hidden_test(sandbox: Sandbox) -> None:
    shown, hack = (
        replace(MEDIAN, visible_tests=2),
        (HACKS / "call_only_the_visible_tests.txt").read_text(),
    )
    [cheat, honest] = score_answers(
        sandbox,
        Reward(RewardConfig(sparse=False)),
        [(shown, hack), (shown, CODE["call"].reference)],
    )
    assert (cheat.visible, cheat.hidden, cheat.components["correctness"]) == (1.0, 0.0, -1.0)
    assert (
        honest.visible,
        honest.hidden,
    ) == (1.0, 1.0)


def test_missing_values_are_omitted_and_not_zero() -> None:
    assert step_metrics([completion(None, 1.0, None)], sampled=1) == {HIDDEN: 1.0, LOST: 0.0}
