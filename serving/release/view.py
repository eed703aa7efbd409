"""What a person sees of a release: steps, both arms with intervals, why it went forward or back.

In: the record and the observations. Out: one JSON object for the terminal, the page and the API.
"""

from __future__ import annotations

import time
from collections import Counter
from threading import Lock
from typing import Any

from evaluation.statistics.hypothesis_tests import Interval
from resources.registry.releases import Release, Releases
from serving.experiment.analysis import Analysis
from serving.gateway.observations import Observations
from serving.release.arms import Arms
from serving.release.comparison import ArmComparison
from serving.release.evidence import analyses_of, decision_of, guardrails_of, waiting_for
from serving.release.plan import ReleasePlan, needs
from serving.release.step_clock import StepClock

NEWEST = 6  # steps of an experiment that are shown


def overview(releases: Releases) -> list[dict[str, Any]]:
    """Return every release in short, newest first."""
    return [
        {
            **_names(release),
            "opened_at": release.events[0].created_at,
            "reasons": release.last.detail["reasons"],
        }
        for release in releases.all()[::-1]
    ]


def details(
    release: Release, observations: Observations, known: dict[str, Arms] | None = None
) -> dict[str, Any]:
    """Return all of one release. known: arms of earlier calls, by release, which read only what is
    new. The first challenger's guardrails, primary metric and decision are there twice: at the top,
    and in `arms` with those of the others.
    """
    new = Arms(release)
    arms = new if known is None else known.setdefault(release.id, new)
    arms.follow(release, observations)
    analyses = analyses_of(release, arms, observations)
    rows = [
        _arm(release, arms, comparison, analyses[version])
        for version, comparison in arms.comparisons.items()
    ]
    waiting = ""
    if release.state == "running":
        waiting = waiting_for(release, arms, StepClock(time.monotonic).ran(release, time.time()))
    return (
        _facts(release)
        | {
            "steps": _steps(release, arms),
            "waiting": waiting,
            "needs": _needs(arms),
            "requests": arms.requests,
            "arms": rows,
        }
        | {name: rows[0][name] for name in OF_THE_FIRST}
    )


class Views:
    """Details of the release that was looked at last. Safe among threads.

    Only what is new is read, and computing them takes a tenth of the time at most: between two
    events of the record people may see those of a while ago.
    """

    def __init__(self, observations: Observations) -> None:
        self.observations = observations
        self._lock = Lock()
        self._arms: dict[str, Arms] = {}
        self._event, self._until = 0, 0.0
        self._view: dict[str, Any] = {}

    def of(self, release: Release) -> dict[str, Any]:
        """Return `details`."""
        with self._lock:
            if (began := time.monotonic()) < self._until and release.last.entry == self._event:
                return self._view
            if release.id not in self._arms:
                self._arms.clear()
            self._view = details(release, self.observations, self._arms)
            now = time.monotonic()
            self._event, self._until = release.last.entry, now + 10 * (now - began)
            return self._view


OF_THE_FIRST = ("guardrails", "sample_ratio_p_value", "primary", "decision")


def _arm(
    release: Release, arms: Arms, comparison: ArmComparison, analysis: Analysis | None
) -> dict[str, Any]:
    """Return what is known of one challenger. share: of the traffic, 0 after it was dropped."""
    means, decision = comparison.arms(), decision_of(comparison, analysis)
    version = comparison.challenger
    return {
        "version": version,
        "share": arms.shares[release.step][version] if arms.shares else 1.0,
        "guardrails": [
            {**row, "arms": [_interval(arm) for arm in means.get(row["name"], ())]}
            for row in guardrails_of(comparison)
        ],
        "sample_ratio_p_value": comparison.ratio_p_value(),
        "primary": _primary(arms.plan, analysis),
        "decision": {"kind": decision.kind, "reasons": list(decision.reasons)},
        "left_out": _left_out(comparison),
    }


def _facts(release: Release) -> dict[str, Any]:
    """Return what the record has of a release, without its plan's details."""
    return {
        **_names(release),
        "events": [
            {
                "time": event.created_at,
                "kind": event.kind,
                "step": event.step,
                "reasons": event.detail["reasons"],
            }
            for event in release.events
        ],
    }


def _names(release: Release) -> dict[str, Any]:
    return {
        "id": release.id,
        "state": release.state,
        "strategy": release.plan.get("strategy", "unknown"),
        "champion": release.champion,
        "challenger": release.challenger,
        "challengers": list(release.challengers),
    }


def _steps(release: Release, arms: Arms) -> list[dict[str, Any]]:
    """Return the steps; of an experiment the newest ones."""
    plan, own = arms.plan, arms.comparisons.values()
    reached = len(arms.shares) if release.state == "promoted" else release.step
    rows = []
    for at, shares in enumerate(arms.shares):
        units = [comparison.units.get(at, (0, 0)) for comparison in own]
        challengers = [challenger for _, challenger in units]
        title = plan.steps[at].title if not plan.experiment else _title(shares)
        state = "done" if at < reached else "now" if at == reached else "next"
        pairs = sum(comparison.pairs(at) for comparison in own)
        units_row = (max(champion for champion, _ in units), *challengers)
        rows.append({"title": title, "state": state, "pairs": pairs, "units": units_row})
    return rows[-NEWEST:] if plan.experiment else rows


def _title(shares: dict[int, float]) -> str:
    """Return the shares of the champion and of each challenger."""
    rest = 1 - sum(shares.values())
    each = [f"version {version}: {100 * share:.3g} %" for version, share in shares.items() if share]
    return ", ".join([f"champion: {100 * rest:.3g} %", *each])


def _needs(arms: Arms) -> list[dict[str, Any]]:
    """Return how many requests show how much more failures, at the last step's share."""
    plan = arms.plan
    if not plan.steps:
        return []
    means = arms.first.arms().get("errors")
    base = means[0].low if means else 0.02
    return [need._asdict() for need in needs(plan, base, plan.steps[-1].share)]


def _primary(plan: ReleasePlan, analysis: Analysis | None) -> dict[str, Any] | None:
    if analysis is None:
        return None
    welch = analysis.welch
    senders = analysis.senders
    return {
        "name": analysis.primary.name,
        "pairs": analysis.primary.pairs,
        "difference": _interval(analysis.primary.interval),
        "arms": [_interval(mean.interval) for mean in (analysis.champion, analysis.challenger)],
        "gain": analysis.primary.gain,
        "units": analysis.units,
        "fixed_horizon": welch
        and {
            "difference": welch.difference,
            "interval": _interval(welch.interval),
            "p_value": welch.p_value,
        },
        "outliers": senders.users,
        "outlying_keys": senders.keys,
        "left_out": senders.left_out,
    }


def _left_out(comparison: ArmComparison) -> dict[str, int]:
    """Return key -> users whose tests do not count, since the key has too many."""
    total: Counter[str] = Counter()
    for watch in comparison.watches:
        for limit in watch.limits:
            total += limit.left_out
    return dict(total)


def _interval(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
