"""How many requests and days a release needs, said before it begins.

In: a plan, and the requests of the last day. Out: a row for each step. A user counts once, so the
requests are those of different users, or requests without a user.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from evaluation.statistics.online.confidence_sequence import pairs_needed
from serving.gateway.observations import DAY_S, Observations
from serving.release.plan import ERRORS, QUALITY, REFUSALS, TOKENS, ReleasePlan

UNKNOWN = 0.02  # share of failures that is assumed where nothing is known
LEAST = 0.005  # no share is taken to be smaller: a day may show none


class StepForecast(NamedTuple):
    """What a step needs. title: of the step; pairs: of requests; requests: for these pairs; days:
    at the traffic of the last day, None without any. decides: whether the guardrails are cleared.
    """

    title: str
    pairs: int
    requests: int
    days: float | None
    decides: bool


def forecast(plan: ReleasePlan, observations: Observations, now: float) -> list[StepForecast]:
    """Return what each step needs of an equal challenger. now: seconds since 1970."""
    day = observations.last_day(now)
    a_day, rows = day[0], []
    for number, step in enumerate(plan.steps):
        # Both versions answer the requests of a shadow, so each request is a pair.
        least = 1.0 if step.shadow else min(step.share, 1 - step.share)
        decides = plan.decides(number)
        pairs = 0 if step.watch else plan.min_pairs
        if decides:
            pairs = max(pairs, clearing_pairs(plan, day, step.share))
        bake_s = plan.watch_s if step.watch else plan.bake_s
        requests = max(round(pairs / least), round(a_day * bake_s / DAY_S))
        days = max(requests / a_day, bake_s / DAY_S) if a_day else None
        rows.append(StepForecast(step.title, pairs, requests, days, decides))
    return rows


def clearing_pairs(plan: ReleasePlan, day: list[float], share: float) -> int:
    """Return about how many pairs clear every guardrail of an equal challenger, if the traffic is
    as on that day (`Observations.last_day`).
    """
    known, failed, declined, _, tokens, tested, wrong = day
    spread = {
        ERRORS: _of_share(failed if known else UNKNOWN),
        REFUSALS: _of_share(declined if known else UNKNOWN),
        TOKENS: tokens,
        QUALITY: _of_share(wrong) if tested else 0.0,
    }
    # The rarer version's value varies alone; the other one's is a mean of many at small shares.
    both = 1 + min(share, 1 - share) / max(share, 1 - share)
    needed = [
        pairs_needed(guardrail.margin, sqrt(spread[guardrail.name] * both), plan.alpha)
        for guardrail in plan.guardrails
        if spread.get(guardrail.name) and guardrail.margin
    ]
    return max(needed, default=0)


def _of_share(share: float) -> float:
    """Return the variance of a share."""
    share = max(share, LEAST)
    return share * (1 - share)
