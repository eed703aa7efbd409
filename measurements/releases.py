"""Releases by simulation: false rollbacks under constant peeking, time to roll back, coverage.

`python -m measurements.releases FILE [releases]`: 2,000 releases of an equal challenger for each
kind of traffic, 200 of a challenger that is worse by 2, 5 and 20 points, 2,000 confidence
sequences. Each finished row is appended to FILE, and rows in it are not computed again. About ten
minutes on one core.

The simulated releases use the plan, the pairs and the tests of the product; the gateway and the
databases are left out. A release has 1,000 requests at each of 1, 5 and 25 %, then 50 % up to
20,000 in all. It is looked at after every request.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.statistics.hypothesis_tests import wilson
from evaluation.statistics.online.confidence_sequence import log_capital
from evaluation.statistics.online.pairs import concurrent_pairs
from evaluation.statistics.online.welch import observations_needed, welch_test
from resources.config.release import ReleaseSettings
from serving.release.plan import ReleasePlan, plan_of

PLAN = plan_of(ReleaseSettings(), "gradual", 1)
STEPS = ((0.01, 1000), (0.05, 1000), (0.25, 1000), (0.5, 17_000))
BASE = 0.1  # error rate of the champion
Floats = np.ndarray


def release(
    rng: np.random.Generator, errors: Floats, drop: float, plan: ReleasePlan, users: int = 0
) -> tuple[int, int] | None:
    """Return the request after which the challenger is rolled back, and how many of the requests it
    had answered; None if it never is.

    errors: error rate of the champion for each request, or for each user. drop: how much higher the
    challenger's is. users: 0 for requests of different users; else sticky users.
    """
    places = rng.random(users) if users else None
    pairs: list[Floats] = []
    closed: list[Floats] = []
    served: list[Floats] = []
    start = 0
    for share, requests in STEPS:
        if places is None:
            arms = rng.random(requests) < share
            rates = errors[start : start + requests]
        else:
            unit = rng.integers(0, users, requests)
            _, first = np.unique(unit, return_index=True)
            unit = unit[np.sort(first)]  # the first request of each user in a step counts
            arms, rates = places[unit] < share, errors[unit]
        failed = rng.random(len(arms)) < rates + drop * arms
        harm = failed.astype(float), rng.gamma(4, 0.25, len(arms)), rng.uniform(20, 200, len(arms))
        found = [concurrent_pairs(arms, values, share) for values in harm]
        pairs.append(np.stack([each.differences for each in found]))
        closed.append(found[0].closed + start)
        served.append(arms)
        start += len(arms)
        if (at := breach(np.concatenate(pairs, 1), plan)) is not None:
            end = int(np.concatenate(closed)[at]) + 1
            return end, int(np.concatenate(served)[:end].sum())
    return None


def breach(differences: Floats, plan: ReleasePlan) -> int | None:
    """Return the first pair after which a guardrail is breached. differences: errors, seconds,
    tokens, shape (3, pairs).
    """
    guardrails = {guardrail.name: guardrail for guardrail in plan.guardrails}
    first = []
    for name, values in zip(("errors", "seconds", "tokens"), differences, strict=True):
        guardrail = guardrails[name]
        scaled = (values + guardrail.high) / (2 * guardrail.high)
        mean = (guardrail.margin + guardrail.high) / (2 * guardrail.high)
        breached = log_capital(scaled, mean) >= -np.log(plan.level)
        first += [int(breached.argmax())] if breached.any() else []
    return min(first, default=None)


def without_margin() -> ReleasePlan:
    """Return the plan with margins of 0, for which an equal challenger is the worst case."""
    guardrails = tuple(
        type(guardrail)(guardrail.name, guardrail.high, 0.0) for guardrail in PLAN.guardrails
    )
    return PLAN.model_copy(update={"guardrails": guardrails})


def false_rollbacks(traffic: str, plan: ReleasePlan, releases: int) -> list[str]:
    """Return a row: false rollbacks of an equal challenger in so many releases."""
    rng, count = np.random.default_rng(2026), 0
    load = np.linspace(0.02, 0.3, 20_000)
    for _ in range(releases):
        if traffic == "users":
            count += release(rng, rng.beta(0.5, 4.5, 500), 0.0, plan, users=500) is not None
        else:
            errors = load if traffic == "rising" else np.full(20_000, BASE)
            count += release(rng, errors, 0.0, plan) is not None
    low, high = wilson(count, releases)
    level = plan.level * len(plan.guardrails)
    rate = f"{100 * count / releases:.2f} % ({100 * low:.2f} to {100 * high:.2f})"
    return [f"{releases}", f"{count}", rate, f"{100 * level:g} %"]


def time_to_rollback(drop: float, plan: ReleasePlan, releases: int) -> list[str]:
    """Return a row: requests until the rollback, and those of a fixed-horizon test."""
    rng, found = np.random.default_rng(7), []
    for _ in range(releases):
        found.append(release(rng, np.full(20_000, BASE), drop, plan))
    times = [at for at in found if at is not None]
    shown = f"{100 * len(times) / releases:.1f} %"
    if not times:
        return [shown, *["-"] * 3, *fixed_horizon(drop, plan, rng)]
    requests, served = np.array(times).T
    low, median, high = np.quantile(requests, [0.25, 0.5, 0.75])
    row = [f"{median:,.0f}", f"{low:,.0f} to {high:,.0f}", f"{np.median(served):,.0f}"]
    return [shown, *row, *fixed_horizon(drop, plan, rng)]


def fixed_horizon(drop: float, plan: ReleasePlan, rng: np.random.Generator) -> list[str]:
    """Return requests and power of Welch's test with one look, in the same traffic: the same steps,
    the horizon planned for power 80 % at this difference in the last step.
    """
    margin = plan.guardrails[0].margin
    if drop <= margin:
        return ["never", "-"]
    spread = np.sqrt((BASE * (1 - BASE) + (BASE + drop) * (1 - BASE - drop)) / 2)
    needed = observations_needed(drop - margin, float(spread), alpha=plan.level)
    horizon, power = 3000 + needed, 0
    for _ in range(500):
        arms = rng.random(needed) < 0.5
        failed = (rng.random(needed) < BASE + drop * arms) - margin * arms
        test = welch_test(failed[~arms], failed[arms])
        power += test.difference > 0 and test.p_value <= 2 * plan.level
    return [f"{horizon:,}", f"{100 * power / 500:.0f} %"]


def coverage(mean: float, sequences: int) -> list[str]:
    """Return a row: how many sequences leave out the mean at any of 5,000 moments, each side."""
    rng, above, below = np.random.default_rng(3), 0, 0
    for _ in range(sequences // 100):
        values = (rng.random((100, 5000)) < mean).astype(float)
        above += (log_capital(values, mean).max(1) >= np.log(40)).sum()
        below += (log_capital(1 - values, 1 - mean).max(1) >= np.log(40)).sum()
    wrong = int(above + below)
    low, high = wilson(sequences - wrong, sequences)
    covered = f"{100 * (1 - wrong / sequences):.2f} % ({100 * low:.2f} to {100 * high:.2f})"
    return [f"{sequences}", f"{above}", f"{below}", covered]


def main() -> None:
    file, releases = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    lines = file.read_text().splitlines() if file.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    strict = without_margin()
    rows: list[tuple[tuple[str, ...], Callable[[], list[str]]]] = []
    for traffic in ("steady", "rising", "users"):
        for name, plan in (("default", PLAN), ("0", strict)):
            key: tuple[str, ...] = ("false rollbacks", traffic, name)
            rows.append((key, partial(false_rollbacks, traffic, plan, releases)))
    for drop in (0.02, 0.05, 0.2):
        for name, plan in (("default", PLAN), ("0", strict)):
            key = ("time", f"{100 * drop:g} points", name)
            rows.append((key, partial(time_to_rollback, drop, plan, releases // 10)))
    for mean in (0.01, 0.1, 0.5):
        rows.append((("coverage", f"{mean}"), partial(coverage, mean, releases)))
    for key, compute in rows:
        if key not in done:
            with file.open("a") as out:
                out.write(json.dumps({"key": key, "row": compute()}) + "\n")
    for line in file.read_text().splitlines():
        row = json.loads(line)
        print(f"| {' | '.join([*row['key'], *row['row']])} |")


if __name__ == "__main__":
    main()
