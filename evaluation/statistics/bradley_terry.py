"""Statistics of people's choices: preferred contestants, agreement of judges, and whether a side
was preferred.

In: choices with their contestants. Out: chances with intervals. Strengths are the reward's own fit
(`rewards.preference`). Intervals come from resampling tasks with all their choices, since several
judges of one task are not several tasks. Each resample has two additional tasks, one won by each
side: otherwise a few unanimous tasks would look certain. Whether one is preferred is a sign test
over tasks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval, mcnemar, wilson
from rewards.choices import ShownChoice
from rewards.preference import bradley_terry

DRAWS = 1000
Counts = tuple[tuple[tuple[str, str, str], int], ...]  # (first, second, won) -> how often


class PairChoice(NamedTuple):
    """One judge's choice in one pair. `won` is a contestant's name or "tie"; `left`: whether a
    decided choice was on the left.
    """

    pair: str
    problem_id: str
    judge: str
    first: str
    second: str
    won: str
    left: bool | None


class Duel(NamedTuple):
    """The chance that the first is chosen over the second, a tie counting half for each; counts are
    of choices. p_value: of such a majority of tasks on one side, if both were equally good (sign
    test, two-sided).
    """

    first: str
    second: str
    chance: float
    interval: Interval | None
    won: int
    lost: int
    tied: int
    p_value: float


class Agreement(NamedTuple):
    """How far judges of the same pair agree.

    alpha: Krippendorff's, nominal: 1 all agree, 0 as by chance. same: share of pairs of judges who
    chose alike. None: no two judged one pair.
    """

    alpha: float | None
    interval: Interval | None
    same: float | None
    pairs: int  # pairs with two judges or more


class Standing(NamedTuple):
    name: str
    chance: float  # to be chosen over a contestant of average strength
    interval: Interval | None


def standings(
    choices: Sequence[PairChoice], *, draws: int = DRAWS, seed: int = 0
) -> tuple[list[Standing], list[Duel]]:
    """Return the contestants, strongest first, and every two that met. Intervals are 95 %, over
    tasks; None with fewer than two tasks. Raises ValueError without choices.
    """
    if not choices:
        raise ValueError("there are no choices yet")
    by_task: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for each in choices:
        by_task[each.problem_id][each.first, each.second, each.won] += 1
    tasks = [by_task[name] for name in sorted(by_task)]
    fit = _strengths(_summed(tasks, range(len(tasks))))
    generator = np.random.default_rng(seed)
    several = len(tasks) > 1
    met_two = sorted({(each.first, each.second) for each in choices})
    pool = [
        *tasks,
        *(
            Counter({(first, second, won): 1})
            for first, second in met_two
            for won in (first, second)
        ),
    ]
    resampled = [
        _strengths(_summed(pool, generator.integers(len(pool), size=len(pool))))
        for _ in range(draws if several else 0)
    ]
    ranked = [
        Standing(
            name,
            (value + 1) / 2,
            _middle([(one[name] + 1) / 2 for one in resampled if name in one]) if several else None,
        )
        for name, value in sorted(fit.items(), key=lambda item: (-item[1], item[0]))
    ]
    duels = [
        _duel(first, second, matches, fit, resampled)
        for first, second in combinations([standing.name for standing in ranked], 2)
        if (matches := [each for each in choices if {each.first, each.second} == {first, second}])
    ]
    return ranked, duels


def _duel(
    first: str,
    second: str,
    matches: Sequence[PairChoice],
    fit: Mapping[str, float],
    resampled: Sequence[Mapping[str, float]],
) -> Duel:
    won, lost = (sum(each.won == name for each in matches) for name in (first, second))
    chances = [
        _chance(one[first], one[second]) for one in resampled if first in one and second in one
    ]
    return Duel(
        first=first,
        second=second,
        chance=_chance(fit[first], fit[second]),
        interval=_middle(chances),
        won=won,
        lost=lost,
        tied=len(matches) - won - lost,
        p_value=_sign_test(matches, first),
    )


def agreement(choices: Sequence[PairChoice], *, draws: int = DRAWS, seed: int = 0) -> Agreement:
    """Return the agreement of all judges together; the interval is over pairs."""
    units: dict[str, list[str]] = defaultdict(list)
    for each in choices:
        units[each.pair].append(each.won)
    counts = [Counter(values) for _, values in sorted(units.items()) if len(values) > 1]
    if not counts:
        return Agreement(None, None, None, 0)
    generator = np.random.default_rng(seed)
    alphas = [
        alpha([counts[i] for i in generator.integers(len(counts), size=len(counts))])
        for _ in range(draws)
    ]
    defined = [value for value in alphas if value is not None]
    alike = sum(n * (n - 1) for unit in counts for n in unit.values()) / sum(
        unit.total() * (unit.total() - 1) for unit in counts
    )
    return Agreement(
        alpha(counts), _middle(defined) if len(counts) > 1 and defined else None, alike, len(counts)
    )


def alpha(units: Sequence[Mapping[str, int]]) -> float | None:
    """Return Krippendorff's alpha for nominal data with missing judges: 1 - observed / expected
    disagreement. None if all values are equal.

    units: value -> how many judges gave it; a unit with one judgement is left out.
    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C.
    """
    paired = [unit for unit in units if sum(unit.values()) > 1]
    values: Counter[str] = Counter()
    for unit in paired:
        values.update(unit)
    total = values.total()
    expected = total * total - sum(n * n for n in values.values())
    if not expected:
        return None
    observed = sum(
        (size * size - sum(n * n for n in unit.values())) / (size - 1)
        for unit in paired
        if (size := sum(unit.values()))
    )
    return 1 - (total - 1) * observed / expected


def left_share(choices: Sequence[PairChoice]) -> tuple[float, Interval] | None:
    """Return the share of decided choices on the left, with Wilson's interval; None without any."""
    decided = [each.left for each in choices if each.left is not None]
    return (sum(decided) / len(decided), wilson(sum(decided), len(decided))) if decided else None


def _sign_test(met: Sequence[PairChoice], first: str) -> float:
    """Return the sign test's p-value. A task counts once, for the side with more of its choices."""
    balance: Counter[str] = Counter()
    for each in met:
        balance[each.problem_id] += 0 if each.won == "tie" else 1 if each.won == first else -1
    return mcnemar(
        sum(value > 0 for value in balance.values()), sum(value < 0 for value in balance.values())
    ).two_sided


def _summed(tasks: Sequence[Counter[tuple[str, str, str]]], indices: Iterable[int]) -> Counts:
    together: Counter[tuple[str, str, str]] = Counter()
    for at in indices:
        together.update(tasks[int(at)])
    return tuple(sorted(together.items()))


@lru_cache(maxsize=4096)  # with two contestants, most draws repeat earlier counts
def _strengths(counts: Counts) -> Mapping[str, float]:
    rows: list[ShownChoice] = []
    for (first, second, won), n in counts:
        rows += [
            ShownChoice(
                problem_id="",
                left=first,
                right=second,
                chosen="tie" if won == "tie" else "left" if won == first else "right",
            )
        ] * n
    return bradley_terry(rows)


def _chance(first: float, second: float) -> float:
    """Return the chance of one over the other, from each one's 2 p - 1 against the average."""
    a, b = (1 + first) / (1 - first), (1 + second) / (1 - second)
    return a / (a + b)


def _middle(values: Sequence[float]) -> Interval | None:
    if not values:
        return None
    low, high = np.quantile(np.asarray(values), [0.025, 0.975])
    return Interval(float(low), float(high))
