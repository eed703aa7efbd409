"""Experiments by simulation: false decisions, and how soon a gain is shown.

`python -m measurements.experiments FILE [experiments]`: 2,000 experiments of equal arms for each
kind of traffic, and a tenth of that where one arm is better by 5 or 10 points. Each finished row is
appended to FILE, and rows in it are not computed again. About half an hour on one core.

The pairs and the tests are the product's; the gateway and the databases are left
out. An experiment has a champion and 2 or 4 challengers, requests of different users up to 6,000
in equal shares. It is looked at after every pair. `peeking Welch` is what it replaces: Welch's
t-test of the arms' pooled values after every 10 % of the requests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.statistics.hypothesis_tests import Floats, wilson
from evaluation.statistics.online.confidence_sequence import log_capital
from evaluation.statistics.online.pairs import concurrent_pairs
from evaluation.statistics.online.welch import welch_test

REQUESTS, FIRST, ALPHA = 6000, 300, 0.05


def blocks() -> list[tuple[int, int]]:
    """Return the first and last request before each look of Welch's test."""
    ends = [FIRST]
    while ends[-1] < REQUESTS:
        ends.append(min(REQUESTS, round(ends[-1] * 1.1)))
    return list(zip([0, *ends], ends, strict=False))


def experiment(
    rng: np.random.Generator, rates: Floats, gains: Floats
) -> tuple[list[Floats], list[list[int]], bool, Floats]:
    """Return the differences of each challenger's pairs, the request that closed each, whether a
    peeking Welch's test shows any of them, and how many requests each arm got.

    rates: of success of the champion, for each request. gains: of each challenger, in points.
    """
    arms = len(gains) + 1
    more = np.concatenate([[0.0], gains])
    differences: list[list[float]] = [[] for _ in gains]
    closed: list[list[int]] = [[] for _ in gains]
    pooled: list[list[float]] = [[] for _ in range(arms)]
    welch = False
    for begin, end in blocks():
        drawn = rng.integers(arms, size=end - begin)
        values = (rng.random(end - begin) < rates[begin:end] + more[drawn]).astype(float)
        for arm in range(1, arms):
            own = np.flatnonzero((drawn == 0) | (drawn == arm))
            pairs = concurrent_pairs(drawn[own] == arm, values[own], 0.5)
            differences[arm - 1] += pairs.differences.tolist()
            closed[arm - 1] += (own[pairs.closed] + begin).tolist()
        for arm in range(arms):
            pooled[arm] += values[drawn == arm].tolist()
        level = ALPHA / (arms - 1)
        welch |= any(welch_test(pooled[0], own).p_value <= level for own in pooled[1:])
    served = np.array([len(own) for own in pooled])
    return [np.array(own) for own in differences], closed, welch, served


def shown(differences: Floats, level: float) -> int | None:
    """Return the pair at which a difference above 0 is shown; None if it never is."""
    reached = log_capital((1 + differences) / 2, 0.5) >= -np.log(level)
    return int(reached.argmax()) if reached.any() else None


def false_decisions(traffic: str, challengers: int, experiments: int) -> list[str]:
    """Return a row: experiments with equal arms in which any is shown to be better or worse."""
    rng, wrong, welch = np.random.default_rng(2026), 0, 0
    rates = np.full(REQUESTS, 0.5) if traffic == "steady" else np.linspace(0.8, 0.2, REQUESTS)
    level = ALPHA / (2 * challengers)
    for _ in range(experiments):
        found, _, peeking, _ = experiment(rng, rates, np.zeros(challengers))
        wrong += any(shown(sign * own, level) is not None for own in found for sign in (-1, 1))
        welch += peeking
    return [f"{experiments}", share_of(wrong, experiments), share_of(welch, experiments)]


def gain_of(gain: float, experiments: int) -> list[str]:
    """Return a row: how often the better one of four challengers is shown, after how many
    requests, and what share of the requests it got.
    """
    rng, right, wrong = np.random.default_rng(7), 0, 0
    times, shares = [], []
    gains = np.array([0.0, gain, 0.0, 0.0])
    for _ in range(experiments):
        found, closed, _, served = experiment(rng, np.full(REQUESTS, 0.5), gains)
        ends = {
            arm: closed[arm][at]
            for arm, own in enumerate(found)
            if (at := shown(own, ALPHA / (2 * len(gains)))) is not None
        }
        shares.append(served[2] / REQUESTS)
        if ends:
            first = min(ends, key=lambda arm: ends[arm])
            right, wrong = right + (first == 1), wrong + (first != 1)
            times.append(ends[first])
    median = f"{np.median(times):,.0f}" if times else "-"
    row = [share_of(right, experiments), share_of(wrong, experiments), median]
    return [*row, f"{100 * np.mean(shares):.0f} %"]


def share_of(count: int, number: int) -> str:
    low, high = wilson(count, number)
    return f"{100 * count / number:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def main() -> None:
    file, number = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    rows: list[tuple[tuple[str, ...], Callable[[], list[str]]]] = []
    for traffic in ("steady", "falling"):
        for arms in (2, 4):
            key: tuple[str, ...] = ("equal", traffic, f"{arms} challengers")
            rows.append((key, partial(false_decisions, traffic, arms, number)))
    for gain in (0.05, 0.1):
        key = (f"{100 * gain:g} points", "equal shares")
        rows.append((key, partial(gain_of, gain, number // 10)))
    for key, compute in rows:
        if key not in done:
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"key": key, "row": compute()}) + "\n")
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        print(f"| {' | '.join([*row['key'], *row['row']])} |")


if __name__ == "__main__":
    main()
