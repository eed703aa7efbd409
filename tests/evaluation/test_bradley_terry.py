"""Statistics of choices: checked by published figures, the reward's own fit, and simulation."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evaluation.statistics.bradley_terry import Met, agreement, alpha, favoured_left, standings
from rewards.preference import Choice, bradley_terry

# Krippendorff 2011, section C: four observers, twelve units, some missing; the nominal alpha is
# 0.743
OBSERVED = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]


def met(pair: int, won: str, judge: str = "ann", left: bool | None = True) -> Met:
    return Met(f"p{pair}", f"t{pair}", judge, "a", "b", won, None if won == "tie" else left)


def test_alpha_is_the_published_one() -> None:
    units = [
        Counter(value for value in column if value != ".")
        for column in zip(*(row.split() for row in OBSERVED), strict=True)
    ]
    assert alpha(units) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_one_for_full_agreement_and_none_where_nothing_varies() -> None:
    assert alpha([Counter(a=2), Counter(b=3)]) == 1.0
    assert alpha([Counter(a=2), Counter(a=3)]) is None and alpha([Counter(a=1)]) is None


def test_judges_who_toss_coins_agree_by_chance_only() -> None:
    draw = random.Random(1)
    choices = [
        met(pair, draw.choice(["a", "b", "tie"]), judge)
        for pair in range(400)
        for judge in ("ann", "bob", "eve")
    ]
    found = agreement(choices, draws=200)
    assert (
        found.interval is not None
        and found.interval.low < 0 < found.interval.high
        and found.pairs == 400
    )
    assert found.same == pytest.approx(1 / 3, abs=0.05)


def test_agreement_needs_two_judges_of_one_pair() -> None:
    assert agreement([met(1, "a", "ann"), met(2, "b", "bob")]).alpha is None


def test_strengths_are_the_rewards_own_fit() -> None:
    choices = [met(pair, "a" if pair % 4 else "b") for pair in range(40)]
    ranked, (duel,) = standings(choices, draws=50)
    fit = bradley_terry(
        [
            Choice(
                problem_id="", left="a", right="b", chosen="left" if each.won == "a" else "right"
            )
            for each in choices
        ]
    )
    assert [(each.name, each.chance) for each in ranked] == [
        ("a", (fit["a"] + 1) / 2),
        ("b", (fit["b"] + 1) / 2),
    ]
    assert (duel.won, duel.lost, duel.tied) == (30, 10, 0) and duel.chance == pytest.approx(
        0.75, abs=0.03
    )
    assert duel.interval is not None and duel.interval.low < duel.chance < duel.interval.high


def test_the_interval_is_over_tasks_and_more_judges_of_the_same_do_not_narrow_it() -> None:
    one = [met(pair, "a" if pair % 3 else "b") for pair in range(30)]
    ten = [each._replace(judge=f"judge {number}") for each in one for number in range(10)]
    wide, same = (standings(choices, draws=400)[1][0].interval for choices in (one, ten))
    assert wide and same and same.high - same.low > 0.8 * (wide.high - wide.low)


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "tasks"), [(0.65, 60), (0.9, 12), (0.5, 8)])
def test_the_interval_holds_the_true_chance_as_often_as_it_says(truth: float, tasks: int) -> None:
    draw, held = random.Random(3), 0
    for number in range(60):
        duel = standings(
            [met(pair, "a" if draw.random() < truth else "b") for pair in range(tasks)],
            draws=120,
            seed=number,
        )[1][0]
        assert duel.interval is not None
        chance = truth if duel.first == "a" else 1 - truth
        held += duel.interval.low <= chance <= duel.interval.high
    assert held >= 51  # of 60; at a coverage of 95 %, fewer occur once in 2,000 times


def test_a_few_tasks_that_all_went_one_way_are_not_sure() -> None:
    (duel,) = standings([met(pair, "a") for pair in range(4)])[1]
    assert (
        duel.p_value == 0.125
        and duel.interval is not None
        and duel.interval.high - duel.interval.low > 0.2
    )


def test_ten_judges_of_one_task_are_one_task_to_the_sign_test() -> None:
    assert standings([met(1, "a", f"judge {number}") for number in range(10)])[1][0].p_value == 1.0


def test_three_contestants_are_ranked_though_two_never_met() -> None:
    choices = [Met(f"p{i}", f"t{i}", "ann", "a", "b", "a", True) for i in range(9)] + [
        Met(f"q{i}", f"u{i}", "ann", "b", "c", "b", True) for i in range(9)
    ]
    ranked, duels = standings(choices, draws=100)
    assert [each.name for each in ranked] == ["a", "b", "c"] and {
        (duel.first, duel.second) for duel in duels
    } == {("a", "b"), ("b", "c")}


def test_one_task_has_no_interval_and_no_choice_no_standing() -> None:
    assert standings([met(1, "a")])[0][0].interval is None
    with pytest.raises(ValueError, match="nobody has chosen"):
        standings([])


def test_a_favoured_side_shows_and_ties_do_not_count() -> None:
    found = favoured_left([met(i, "a", left=i < 9) for i in range(10)] + [met(11, "tie")])
    assert found is not None and found[0] == 0.9 and found[1].low > 0.5
    assert favoured_left([met(1, "tie")]) is None
