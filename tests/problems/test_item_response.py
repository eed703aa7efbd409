"""Item response: known difficulties and abilities are recovered from simulated counts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from problems.difficulty.item_response import (
    ABILITY_SD,
    DIFFICULTY_SD,
    chance,
    fit,
    read_scale,
    write_scale,
)

Table = dict[tuple[str, str], tuple[int, int]]
counts = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("123456")),
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
)


def counts_for(hard: dict[str, float], able: dict[str, float], n: int, seed: int = 1) -> Table:
    rng = random.Random(seed)
    return {
        (c, p): (n, sum(rng.random() < chance(a, d) for _ in range(n)))
        for c, a in able.items()
        for p, d in hard.items()
    }


def difficulties_of(problems: int, seed: int) -> dict[str, float]:
    rng = random.Random(seed)
    return {f"p{i:03}": rng.gauss(0, 1.5) for i in range(problems)}


def test_known_difficulties_and_abilities_are_recovered() -> None:
    hard, able = difficulties_of(200, 7), {"weak": -1.0, "middle": 0.0, "good": 1.0, "best": 1.7}
    scale = fit(counts_for(hard, able, 8))
    middle = sum(hard.values()) / len(hard)
    pairs = [(row, hard[row.name] - middle) for row in scale.difficulties]
    assert np.corrcoef([row.value for row, _ in pairs], [true for _, true in pairs])[0, 1] > 0.93
    assert (
        0.9 < sum(abs(row.value - true) < 1.96 * row.error for row, true in pairs) / len(pairs) <= 1
    )
    assert [row.name for row in scale.abilities] == list(able)
    assert all(
        abs(row.value - (able[row.name] - middle)) < 3 * row.error for row in scale.abilities
    )
    assert sum(row.value for row in scale.difficulties) == pytest.approx(0, abs=0.02)


def test_checkpoints_with_different_problems_share_one_scale() -> None:
    hard = difficulties_of(120, 3)
    names = sorted(hard, key=lambda name: hard[name])
    weak, strong = (
        dict.fromkeys(names[:80], 0.0),
        dict.fromkeys(names[40:], 0.0),
    )  # the stronger one has the harder problems
    table = counts_for({name: hard[name] for name in weak}, {"weak": -0.5}, 8) | counts_for(
        {name: hard[name] for name in strong}, {"strong": 1.5}, 8, 2
    )
    scale = {row.name: row for row in fit(table).abilities}
    assert (
        scale["weak"].passed / scale["weak"].n > scale["strong"].passed / scale["strong"].n - 0.1
    )  # their pass rates are similar
    assert scale["strong"].value - scale["weak"].value == pytest.approx(2.0, abs=0.6)


@settings(max_examples=10)
@given(counts)
def test_the_fit_matches_a_general_optimizer(table: Table) -> None:
    scale = fit(table)
    problems, checkpoints = sorted({p for _, p in table}), sorted({c for c, _ in table})

    def minus(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        hard, able = (
            dict(zip(problems, values, strict=False)),
            dict(zip(checkpoints, values[len(problems) :], strict=True)),
        )
        likely = sum(
            k * (able[c] - hard[p]) - n * np.logaddexp(0, able[c] - hard[p])
            for (c, p), (n, k) in table.items()
        )
        return float(
            -likely
            + sum(v**2 for v in hard.values()) / (2 * DIFFICULTY_SD**2)
            + sum(v**2 for v in able.values()) / (2 * ABILITY_SD**2)
        )

    best = minimize(minus, np.zeros(len(problems) + len(checkpoints)), method="BFGS").x
    middle = best[: len(problems)].mean()
    expected = dict(zip([*problems, *checkpoints], best - middle, strict=True))
    assert {
        row.name: row.value for row in (*scale.difficulties, *scale.abilities)
    } == pytest.approx(expected, abs=2e-3)


def test_standard_errors_match_the_inverse_hessian() -> None:
    table = counts_for({"1": -1.0, "2": 0.0, "3": 2.0}, {"a": 0.0, "b": 1.0}, 6)
    scale = fit(table)
    hard, able = (
        {row.name: row.value for row in scale.difficulties},
        {row.name: row.value for row in scale.abilities},
    )
    names = [*sorted(hard), *sorted(able)]
    hessian = np.diag([1 / DIFFICULTY_SD**2] * 3 + [1 / ABILITY_SD**2] * 2)
    for (c, p), (n, _) in table.items():
        weight = n * chance(able[c], hard[p]) * (1 - chance(able[c], hard[p]))
        gap = np.array([(name == c) - (name == p) for name in names], dtype=float)
        hessian += weight * np.outer(gap, gap)
    less_mean = np.eye(5) - np.array([[1 / 3] * 3 + [0, 0]] * 5)
    expected = np.sqrt(np.diag(less_mean @ np.linalg.inv(hessian) @ less_mean.T))
    errors = {row.name: row.error for row in (*scale.difficulties, *scale.abilities)}
    assert errors == pytest.approx(dict(zip(names, expected, strict=True)), abs=1e-3)


@settings(max_examples=15)
@given(counts)
def test_more_solved_completions_never_raise_the_difficulty(table: Table) -> None:
    scale = fit(table)
    assert fit(dict(reversed(table.items()))) == scale
    if len({c for c, _ in table}) == 1 and len({n for n, _ in table.values()}) == 1:
        rates = [row.passed for row in scale.difficulties]
        assert rates == sorted(rates, reverse=True)


def test_a_checkpoint_that_solves_all_or_nothing_has_finite_ability() -> None:
    for passed in (0, 4):
        [able] = fit({("a", str(i)): (4, passed) for i in range(50)}).abilities
        assert 1 < abs(able.value) < 15
        assert able.error < 6
        assert (able.value > 0) == (passed == 4)


def test_empty_counts_give_no_scale_and_wrong_counts_are_refused() -> None:
    assert fit({}) == fit({("a", "1"): (0, 0)})
    assert fit({}).abilities == ()
    with pytest.raises(ValueError, match=r"1, .* a: 3 .* 2"):
        fit({("a", "1"): (2, 3)})


def test_the_scale_survives_a_round_trip_byte_for_byte(
    tmp_path: Path,
) -> None:
    table = counts_for(difficulties_of(30, 1), {"a": 0.0, "b": 1.0}, 4)
    for name, counts in (("one", table), ("other", dict(reversed(table.items())))):
        (tmp_path / name).mkdir()
        write_scale(fit(counts), tmp_path / name)
    assert read_scale(tmp_path / "one") == fit(table)
    for file in ("abilities.parquet", "difficulties.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
