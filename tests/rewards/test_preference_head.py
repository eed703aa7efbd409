"""The head that values programs that nobody was shown."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from rewards.battery.cases import MEDIAN
from rewards.choices import ShownChoice
from rewards.composite import Reward
from rewards.config import RewardConfig, Weights
from rewards.preference_head import FEATURES, features, fit_head
from sandbox.protocol import Report, TestResult, Verdict

PROBLEMS = generate(FamilyConfig(demonstrations=1, train=60, validation=1))
SHORT = "def f(x):\n    return x\n"


def choices(prefers_left: Callable[[str, str], bool], problems: int = 60) -> list[ShownChoice]:
    """Return one choice for each problem, between two of its solutions."""
    rng, found = random.Random(1), []
    for problem in PROBLEMS[:problems]:
        left, right = rng.sample([problem.solutions[0], problem.solutions[2]], 2)
        chosen = "left" if prefers_left(left, right) else "right"
        found.append(
            ShownChoice(problem_id=problem.problem_id, left=left, right=right, chosen=chosen)
        )
    return found


def fewer_functions(left: str, right: str) -> bool:
    return left.count("def ") < right.count("def ")


def test_a_habit_of_people_is_found_on_held_out_problems() -> None:
    head = fit_head(choices(fewer_functions))
    assert head is not None
    assert head.accuracy > 0.9
    short, long = head.value(SHORT), head.value(f"def g(x):\n    return x\n\n{SHORT}")
    assert short is not None
    assert long is not None
    assert short > long


def test_no_feature_counts_beyond_what_people_saw() -> None:
    head = fit_head(choices(fewer_functions))
    assert head is not None
    long, longer = (head.value(f"# {'x' * size}\n{SHORT}") for size in (500, 1_000))
    assert long == longer


def test_choices_at_random_give_no_value() -> None:
    coin = random.Random(2)
    head = fit_head(choices(lambda *_: coin.random() < 0.5))
    assert head is not None
    assert head.value(SHORT) is None
    assert "have no value" in str(head)


def test_few_problems_give_no_value() -> None:
    head = fit_head(choices(fewer_functions, problems=6))
    assert head is not None
    assert head.value(SHORT) is None


def test_ties_alone_give_no_head() -> None:
    ties = [each.model_copy(update={"chosen": "tie"}) for each in choices(fewer_functions)]
    assert fit_head(ties) is None


@pytest.mark.parametrize("code", ["", "no python (", "\x00", "x" * 300_000, SHORT])
def test_every_text_has_all_features(code: str) -> None:
    assert len(features(code)) == len(FEATURES)


def test_a_new_completion_is_valued_only_if_it_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "choices.jsonl"
    file.write_text("".join(each.model_dump_json() + "\n" for each in choices(fewer_functions)))
    reward = Reward(RewardConfig(weights=Weights(preference=0.3), preferences=str(file)))
    accepted, wrong = (
        reward.score(MEDIAN, SHORT, Report("j", verdict, (TestResult(verdict),))).components
        for verdict in (Verdict.AC, Verdict.WA)
    )
    assert accepted["preference"] > 0.0
    assert "preference" not in wrong
