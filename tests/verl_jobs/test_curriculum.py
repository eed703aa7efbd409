"""A curriculum follows its schedule, learns pass rates and resumes from a checkpoint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.difficulty.pass_rate_prior import ExpectedPassRate
from verl_jobs import samples
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.curriculum import draws
from verl_jobs.curriculum.curriculum import (
    FLOOR,
    START,
    UNIFORM_SHARE,
    Floats,
    ProblemPool,
    Table,
    competence,
    figures,
    probabilities,
)
from verl_jobs.curriculum.draws import Draw

SCHEDULES = [
    name for name in get_args(Curriculum.model_fields["schedule"].annotation) if name != "uniform"
]
NEARLY_NONE = 2 * FLOOR
RATES = st.lists(st.integers(0, 64), min_size=1, max_size=30).map(
    lambda places: np.array(places) / 64
)
PROGRESS = st.floats(0, 1)


def even(rates: Floats) -> ProblemPool:
    return ProblemPool(rates, np.ones(len(rates)))


def plan(schedule: str = "window", **keys: float) -> Curriculum:
    return Curriculum.model_validate({"schedule": schedule} | keys)


def table(schedule: str = "window", problems: int = 20, seed: int = 1, **keys: float) -> Table:
    rows = [
        ExpectedPassRate(f"p{place:02d}", (place + 0.5) / problems, 0, 0, 1.0)
        for place in range(problems)
    ]
    return Table(plan(schedule, **keys), rows, steps=20, seed=seed)


def outcomes(rows: list[int], skill: float, n: int = 8) -> list[tuple[str, bool]]:
    """Return n outcomes per row for a policy of this skill; row 0 is the hardest."""
    return [
        (f"p{row:02d}", k < round(n * min(1.0, skill * row / 20))) for row in rows for k in range(n)
    ]


@given(st.sampled_from(SCHEDULES), RATES, PROGRESS, st.data())
def test_chances_are_a_probability_distribution(
    schedule: str, rates: Floats, progress: float, data: st.DataObject
) -> None:
    weights = np.array(
        data.draw(st.lists(st.floats(0.01, 4), min_size=len(rates), max_size=len(rates)))
    )
    chances = probabilities(plan(schedule), ProblemPool(rates, weights), progress)
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1)


@given(st.floats(0.05, 0.95), st.floats(0.02, 0.5), RATES, PROGRESS)
def test_the_window_draws_problems_nearer_the_target_more_often(
    target: float, width: float, rates: Floats, progress: float
) -> None:
    chances = probabilities(plan(target=target, width=width), even(rates), progress)
    order = np.argsort(abs(rates - target), kind="stable")
    assert (np.diff(chances[order]) <= 1e-12).all()


def test_the_window_is_gaussian_in_its_width() -> None:
    at, one_off, two_off = probabilities(
        plan(target=0.5, width=0.2), even(np.array([0.5, 0.7, 0.1])), 0.0
    )
    assert (one_off / at, two_off / at) == (
        pytest.approx(0.61, abs=0.005),
        pytest.approx(0.14, abs=0.005),
    )


@given(RATES, PROGRESS)
def test_mixed_draws_every_problem_at_half_the_uniform_rate(rates: Floats, progress: float) -> None:
    assert (
        probabilities(plan("mixed"), even(rates), progress)
        >= UNIFORM_SHARE / len(rates) - NEARLY_NONE
    ).all()


@given(RATES, PROGRESS, PROGRESS)
def test_competence_only_adds_harder_problems(rates: Floats, early: float, late: float) -> None:
    first, then = (
        probabilities(plan("competence"), even(rates), at) > NEARLY_NONE
        for at in sorted((early, late))
    )
    assert not (first & ~then).any()  # problems stay available
    assert not first.any() or rates[first].min() >= rates[~first].max(
        initial=0.0
    )  # the missing ones are harder


@given(RATES, st.floats(0.5, 1))
def test_competence_draws_from_all_problems_after_half_the_training(
    rates: Floats, progress: float
) -> None:
    assert probabilities(plan("competence"), even(rates), progress) == pytest.approx(1 / len(rates))


def test_competence_follows_the_square_root_of_the_paper() -> None:
    assert competence(0.0) == START
    assert competence(1.0) == 1.0
    assert competence(0.125) == pytest.approx(
        np.sqrt(0.25 * (1 - 0.01) + 0.01)
    )  # a quarter of the way


@pytest.mark.slow
@given(RATES, PROGRESS)
def test_reverse_is_competence_in_reverse_order(rates: Floats, progress: float) -> None:
    assert (
        probabilities(plan("reverse"), even(rates), progress)
        == probabilities(plan("competence"), even(1 - rates), progress)
    ).all()


@given(
    st.sampled_from(["weighted", "window", "competence", "reverse"]), PROGRESS, st.floats(0.1, 4)
)
def test_the_weight_decides_between_equally_hard_problems(
    schedule: str, progress: float, weight: float
) -> None:
    rates, weights = np.full(20, 0.4), np.where(np.arange(20) == 0, weight, 1.0)
    chances = probabilities(plan(schedule), ProblemPool(rates, weights), progress)
    one, other = chances[:2]
    assert one == pytest.approx(weight * other, rel=1e-4) or min(one, other) < NEARLY_NONE


@given(st.sampled_from(SCHEDULES), st.integers(1, 20), st.integers(0, 9))
def test_a_step_draws_no_problem_twice(schedule: str, count: int, seed: int) -> None:
    whole, one_by_one = table(schedule, seed=seed), table(schedule, seed=seed)
    assert len(set(whole.draw(count))) == count
    assert len({row for _ in range(count) for row in one_by_one.draw(1)}) == count


def test_a_dataset_smaller_than_a_step_is_drawn_repeatedly() -> None:
    small = table(problems=3)
    assert Counter(row for _ in range(6) for row in small.draw(1)).total() == 6


def test_problems_are_drawn_in_proportion_to_their_chances() -> None:
    counts: Counter[int] = Counter()
    weighted = Table(
        plan("weighted"),
        [ExpectedPassRate(f"p{k}", 0.5, 0, 0, weight) for k, weight in enumerate((1.0, 2.0, 5.0))],
        steps=10,
        seed=3,
    )
    for _ in range(4000):
        counts.update(weighted.draw(1))
        weighted.observe([])
    assert [counts[k] / 4000 for k in range(3)] == [
        pytest.approx(share, abs=0.025) for share in (0.125, 0.25, 0.625)
    ]


def test_the_pass_rate_follows_the_current_policy() -> None:
    seen = table(half_life=2)
    seen.observe([("p10", False)] * 8)
    low = seen.rates()[10]
    seen.observe([("p10", True)] * 8)
    assert low < 0.2
    assert seen.rates()[10] > 0.5
    for _ in range(60):
        seen.observe([])
    assert seen.rates()[10] == pytest.approx(10.5 / 20, abs=0.01)  # only the prior is left


def test_attempts_of_the_ranking_count_in_the_pass_rate() -> None:
    ranked = Table(
        plan(),
        [
            ExpectedPassRate("a", 0.5, 4, 4, 1.0),
            ExpectedPassRate("b", 0.5, 0, 4, 1.0),
            ExpectedPassRate("c", 0.5, 0, 0, 1.0),
        ],
        steps=10,
        seed=1,
    )
    assert ranked.rates().tolist() == [pytest.approx(5 / 6), pytest.approx(1 / 6), 0.5]


@pytest.mark.parametrize(
    ("skill", "row"), [(1.0, 10), (3.0, 20 / 6)]
)  # the row with a pass rate of one half
def test_the_window_finds_problems_with_a_pass_rate_of_half(skill: float, row: float) -> None:
    taught, late_rows = table(half_life=20, width=0.1), []
    for step in range(60):
        rows = taught.draw(4)
        late_rows += rows if step >= 20 else []
        taught.observe(outcomes(rows, skill))
    assert np.mean(late_rows) == pytest.approx(row, abs=2)


@given(st.sampled_from(SCHEDULES), st.integers(0, 6))
def test_a_restored_table_draws_the_same_problems(schedule: str, before: int) -> None:
    first = table(schedule)
    for _ in range(before):
        first.observe(outcomes(first.draw(5), 1.5))
    resumed = table(schedule)
    resumed.load_state_dict(first.state_dict())
    for _ in range(4):
        rows = first.draw(5)
        assert resumed.draw(5) == rows
        assert resumed.observe(outcomes(rows, 1.5)) == first.observe(outcomes(rows, 1.5))


def test_a_saved_state_is_independent_of_its_table() -> None:
    seen = table()
    state = seen.state_dict()
    seen.observe(outcomes(seen.draw(5), 1.0))
    fresh = table()
    fresh.load_state_dict(state)
    assert (fresh.rates() == table().rates()).all()
    assert fresh.draw(5) == table().draw(5)


def test_a_state_of_other_problems_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\b20\b.*\b3\b"):
        table(problems=3).load_state_dict(table(problems=20).state_dict())


def test_a_verdict_on_an_unknown_problem_is_refused() -> None:
    with pytest.raises(ValueError, match="renamed/a"):
        table().observe([("renamed/a", True)])


def test_a_duplicate_problem_is_refused() -> None:
    row = ExpectedPassRate("a/b", 0.5, 0, 0, 1.0)
    with pytest.raises(ValueError, match="a/b"):
        Table(plan(), [row, row], steps=2, seed=1)


def test_figures_compare_expected_and_observed_pass_rates() -> None:
    seen = table()
    seen.draw(2)
    values = figures([Draw("a", 8, 8, 0.5), Draw("b", 2, 8, 0.25)], seen)
    assert values == {
        "curriculum/expected_pass_rate": 0.375,
        "curriculum/pass_rate": 0.625,
        "curriculum/error": 0.25,
        "curriculum/informative": 0.5,
        "curriculum/drawn_so_far": 0.1,
    }


def test_draws_of_a_uniform_training_come_from_its_samples(
    tmp_path: Path,
) -> None:
    step_draws = [Draw("a", 1, 2, 0.4), Draw("b", 0, 2, 0.1)]
    draws.write(tmp_path, 3, step_draws)
    samples.write(
        tmp_path,
        4,
        [
            samples.Sample(name, "", reward, verdict, 0.0, {})
            for name, reward, verdict in [("b", 1.0, "AC"), ("b", -1.0, "WA")]
        ],
    )
    assert draws.read(tmp_path, 3) == step_draws
    assert draws.read(tmp_path, 4) == [Draw("b", 1, 2)]
