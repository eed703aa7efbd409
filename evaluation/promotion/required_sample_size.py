"""The required sample size: how far a refused challenger was from promotion, in tasks.

In: a recorded decision, as plain JSON of any version of the gate. Out: a sentence for each failed
condition. Exact where the test is McNemar's; for several completions per task or related tasks by a
normal approximation, and the sentence says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

from evaluation.promotion.comparison import count
from evaluation.statistics.hypothesis_tests import mcnemar

NORMAL = NormalDist()
MAX_TASKS = 50_000  # more tasks are not practical
FIXES = {  # failed check -> the fix; {about}: the subject of the check
    "limit": "Bring {about} within `policy.limits`, or change the limit.",
    "provenance": "Restore {about}, or make it again: every input of a champion must exist.",
    "battery": (
        "Train {about} again with a reward that passes the exploit battery: `ratchet reward "
        "verify` shows the exploits that it pays for."
    ),
    "fresh tasks": (
        "Use tasks of {about} that no gate has used: a fresh draw, or another version of the "
        "benchmark."
    ),
    "picked apart": "Select the checkpoint on another benchmark, then gate on {about}.",
    "measured": "Score both on {about}, or remove it from the policy.",
    "tags": "Avoid the fall on {about}: train on more tasks of that kind.",
}


def required_for_promotion(decision: dict[str, Any]) -> list[str]:
    """Return a sentence for each failed condition; empty for a promotion or an installation."""
    if decision["kind"] != "refuse":
        return []
    abouts: dict[str, list[str]] = {}
    for name, about in failed(decision):
        abouts.setdefault(name, []).append(about)
    return [
        sentence for name, about in abouts.items() for sentence in _fixes(name, about, decision)
    ]


def wins_needed(lost: int, tasks: int, level: float, gain: float) -> int | None:
    """Return the fewest tasks to win, with so many lost, for a promotion by the exact test and the
    minimum gain; None if there are too few tasks.
    """
    return next(
        (
            won
            for won in range(lost, tasks - lost + 1)
            if won - lost >= gain * tasks - 1e-9 and mcnemar(won, lost).better <= level
        ),
        None,
    )


def tasks_needed(won: int, lost: int, tasks: int, level: float) -> int | None:
    """Return the fewest tasks on which the same shares of won and lost would show a gain; None if
    there is no gain.
    """
    if won <= lost:
        return None

    def enough(count: int) -> bool:
        return mcnemar(round(won * count / tasks), round(lost * count / tasks)).better <= level

    low, high = tasks, tasks
    while not enough(high):  # double step by step: the exact test is slow with very many tasks
        low, high = high, 2 * high
        if high > MAX_TASKS:
            return None
    return low + bisect_left(range(low, high), True, key=enough)


def losses_allowed(won: int, lost: int, level: float) -> int:
    """Return how many tasks may be lost, with so many won, before a fall is shown."""
    return next(fewer for fewer in range(lost, -1, -1) if mcnemar(won, fewer).worse > level)


def failed(decision: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (check, its subject) of each check that a decision failed."""
    checks = decision.get("checks", ())  # an installation has none
    return [(check["name"], check["about"]) for check in checks if not check["passed"]]


def _fixes(name: str, abouts: list[str], decision: dict[str, Any]) -> Iterator[str]:
    c, policy = decision["comparison"], decision["policy"]
    level = decision.get("level") or policy["alpha"]
    same = (
        decision["champion"]
        and decision["champion"]["content_hash"] == decision["challenger"]["content_hash"]
    )
    if same and name in ("win", "gain"):
        if name == "win":
            yield "It has the same weights as the champion: other weights are needed."
    elif name == "win":
        yield from _to_win(c, level, policy["minimum_gain"])
    elif name == "gain":
        minimum_gain = policy["minimum_gain"]
        missing = minimum_gain - c["difference"]
        yield (
            f"A gain of at least {100 * minimum_gain:g} points on {abouts[0]}: "
            f"{100 * missing:.1f} points were missing, or "
            f"{count(missing * c['before']['tasks'])}."
        )
    elif name == "not worse":
        for about in abouts:
            yield _not_to_lose(
                next(other for other in decision["others"] if other["benchmark"] == about), policy
            )
    elif fix := FIXES.get(name):
        yield fix.format(about="; ".join(abouts))
    else:
        yield f"{name}, {'; '.join(abouts)}: see the reasons."


def _to_win(c: dict[str, Any], level: float, gain: float) -> Iterator[str]:
    won, lost, tasks = len(c["won"]), len(c["lost"]), c["before"]["tasks"]
    if c["test"] != "mcnemar":
        needed = max(gain, NORMAL.inv_cdf(1 - level) * _error(c, level))
        yield (
            f"A gain of about {100 * needed:.1f} points on {c['benchmark']}: it had "
            f"{100 * c['difference']:+.1f} (normal approximation)."
        )
        return
    needed_wins = wins_needed(lost, tasks, level, gain)
    if needed_wins is None:
        yield (
            f"{tasks} tasks of {c['benchmark']} cannot show a gain at {level:.3g} with {lost} of "
            "them lost: gate on more tasks."
        )
    else:
        yield (
            f"It lost {count(lost)} of {c['benchmark']}, so it had to win {needed_wins} that the "
            f"champion fails, and won {won}: {count(needed_wins - won)} more."
        )
    if (more := tasks_needed(won, lost, tasks, level)) is not None and more > tasks:
        yield (
            f"Or more tasks: at the same rates of won and lost, about {more:,} instead of {tasks} "
            "would show the gain."
        )


def _error(c: dict[str, Any], level: float) -> float:
    """Return the standard error of the difference: from the smallest gain that is shown four times
    in five, else from the interval.
    """
    if smallest := c.get("smallest_gain"):
        return float(smallest / (NORMAL.inv_cdf(1 - level) + NORMAL.inv_cdf(0.8)))
    return float((c["difference_high"] - c["difference_low"]) / (2 * NORMAL.inv_cdf(0.975)))


def _not_to_lose(c: dict[str, Any], policy: dict[str, Any]) -> str:
    won, lost, level = len(c["won"]), len(c["lost"]), policy["harm_alpha"]
    if c["p_worse"] <= level and c["test"] == "mcnemar":
        allowed = losses_allowed(won, lost, level)
        return (
            f"On {c['benchmark']} it lost {count(lost)} and won {won}: at most {allowed} lost "
            "would not be a significant fall."
        )
    margin = c.get("margin") or policy.get("margin", 0.0)
    error = (c["difference"] - c["difference_low"]) / NORMAL.inv_cdf(0.975)
    needed = NORMAL.inv_cdf(1 - level) * error - margin
    return (
        f"On {c['benchmark']} a difference of about {100 * needed:+.1f} points or better would "
        f"have ruled out a fall of {100 * margin:.1f}; it had {100 * c['difference']:+.1f} (normal "
        "approximation). The same difference on more tasks would do so too."
    )
