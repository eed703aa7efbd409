"""Statistics of choices agree with published figures, the fit of the reward, and simulation."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evaluation.statistics.bradley_terry import PairChoice, agreement, alpha, left_share, standings
from rewards.choices import ShownChoice
from rewards.preference import bradley_terry

# Krippendorff 2011, section C: four observers, twelve units, some missing; nominal alpha 0.743.
OBSERVED = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]


def choice(pair: int, won: str, judge: str = "ann", left: bool | None = True) -> PairChoice:
    left = None if won == "tie" else left
    return PairChoice(f"p{pair}", f"t{pair}", judge, first="a", second="b", won=won, left=left)


def test_krippendorffs_alpha_equals_the_published_value() -> None:
    units = [
        Counter(value for value in column if value != ".")
        for column in zip(*(row.split() for row in OBSERVED), strict=True)
    ]
    assert alpha(units) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_one_for_agreement_and_none_without_variation() -> None:
    assert alpha([Counter(a=2), Counter(b=3)]) == 1.0
    assert alpha([Counter(a=2), Counter(a=3)]) is None
    assert alpha([Counter(a=1)]) is None


def test_judges_who_toss_coins_agree_by_chance_only() -> None:
    draw = random.Random(1)
    choices = [
        choice(pair, draw.choice(["a", "b", "tie"]), judge)
        for pair in range(400)
        for judge in ("ann", "bob", "eve")
    ]
    result = agreement(choices, draws=80)
    assert result.interval is not None
    assert result.interval.low < 0 < result.interval.high
    assert result.pairs == 400
    assert result.same == pytest.approx(1 / 3, abs=0.05)


def test_agreement_needs_two_judges_of_one_pair() -> None:
    assert agreement([choice(1, "a", "ann"), choice(2, "b", "bob")]).alpha is None


def test_strengths_equal_the_fit_of_the_reward() -> None:
    choices = [choice(pair, "a" if pair % 4 else "b") for pair in range(40)]
    ranked, (duel,) = standings(choices, draws=50)
    fit = bradley_terry(
        [
            ShownChoice(
                problem_id="", left="a", right="b", chosen="left" if each.won == "a" else "right"
            )
            for each in choices
        ]
    )
    assert [(each.name, each.chance) for each in ranked] == [
        ("a", (fit["a"] + 1) / 2),
        ("b", (fit["b"] + 1) / 2),
    ]
    assert (duel.won, duel.lost, duel.tied) == (30, 10, 0)
    assert duel.chance == pytest.approx(0.75, abs=0.03)
    assert duel.interval is not None
    assert duel.interval.low < duel.chance < duel.interval.high


def test_more_judges_of_equal_tasks_do_not_narrow_the_interval() -> None:
    one = [choice(pair, "a" if pair % 3 else "b") for pair in range(30)]
    ten = [each._replace(judge=f"judge {number}") for each in one for number in range(10)]
    wide, same = (standings(choices, draws=100)[1][0].interval for choices in (one, ten))
    assert wide
    assert same
    assert same.high - same.low > 0.8 * (wide.high - wide.low)


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "tasks"), [(0.65, 60), (0.9, 12), (0.5, 8)])
def test_the_interval_has_its_nominal_coverage(truth: float, tasks: int) -> None:
    draw, held = random.Random(3), 0
    for number in range(60):
        duel = standings(
            [choice(pair, "a" if draw.random() < truth else "b") for pair in range(tasks)],
            draws=120,
            seed=number,
        )[1][0]
        assert duel.interval is not None
        chance = truth if duel.first == "a" else 1 - truth
        held += duel.interval.low <= chance <= duel.interval.high
    assert held >= 51  # of 60; at a coverage of 95 %, fewer occur once in 2,000 times


def test_a_few_unanimous_tasks_leave_a_wide_interval() -> None:
    (duel,) = standings([choice(pair, "a") for pair in range(4)])[1]
    assert duel.p_value == 0.125
    assert duel.interval is not None
    assert duel.interval.high - duel.interval.low > 0.2


def test_ten_judges_of_one_task_count_as_one() -> None:
    assert (
        standings([choice(1, "a", f"judge {number}") for number in range(10)])[1][0].p_value == 1.0
    )


def test_three_contestants_are_ranked_though_two_never_met() -> None:
    choices = [choice(i, "a") for i in range(9)]
    choices += [choice(i, "b")._replace(first="b", second="c") for i in range(9, 18)]
    ranked, duels = standings(choices, draws=100)
    assert [each.name for each in ranked] == ["a", "b", "c"]
    assert {(duel.first, duel.second) for duel in duels} == {("a", "b"), ("b", "c")}


def test_one_task_has_no_interval_and_no_choices_raise() -> None:
    assert standings([choice(1, "a")])[0][0].interval is None
    with pytest.raises(ValueError, match="no choices yet"):
        standings([])


def test_a_favoured_side_is_detected_without_counting_ties() -> None:
    share = left_share([choice(i, "a", left=i < 9) for i in range(10)] + [choice(11, "tie")])
    assert share is not None
    assert share[0] == 0.9
    assert share[1].low > 0.5
    assert left_share([choice(1, "tie")]) is None
