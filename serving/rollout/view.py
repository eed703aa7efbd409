"""What a person sees of a rollout: steps, both arms with intervals, why it went forward or back.

In: the record and the observations. Out: one JSON object for the terminal, the page and the API.
"""

from __future__ import annotations

import time
from typing import Any

from evaluation.statistics.hypothesis_tests import Interval
from resources.registry.rollouts import Rollout, Rollouts
from serving.experiment.analysis import Analysis
from serving.gateway.observations import Observations
from serving.rollout.comparison import Comparison
from serving.rollout.evidence import analysis_of, decision_of, guardrails_of, waiting_for
from serving.rollout.plan import OtherPlan, Plan, needs, recorded_plan


def overview(rollouts: Rollouts) -> list[dict[str, Any]]:
    """Return every rollout in short, newest first."""
    return [
        {
            "id": rollout.id,
            "state": rollout.state,
            "strategy": rollout.plan.get("strategy", "unknown"),
            "champion": rollout.champion,
            "challenger": rollout.challenger,
            "opened_at": rollout.events[0].created_at,
            "reasons": rollout.last.detail["reasons"],
        }
        for rollout in rollouts.all()[::-1]
    ]


def details(
    rollout: Rollout, observations: Observations, known: dict[str, Comparison] | None = None
) -> dict[str, Any]:
    """Return all of one rollout. known: comparisons of earlier calls, by rollout, which read only
    what is new.
    """
    try:
        plan = recorded_plan(rollout)
    except OtherPlan as error:
        return (
            _facts(rollout) | UNREADABLE | {"decision": {"kind": "keep", "reasons": [str(error)]}}
        )
    new = Comparison(plan, rollout.challenger)
    comparison = new if known is None else known.setdefault(rollout.id, new)
    comparison.follow(rollout.id, observations)
    arms = comparison.arms()
    analysis = analysis_of(rollout, comparison, observations)
    decision = decision_of(comparison, analysis)
    waiting = ""
    if rollout.state == "running":
        waiting = waiting_for(rollout, comparison, time.time())
    return _facts(rollout) | {
        "steps": _steps(rollout, plan, comparison),
        "waiting": waiting,
        "guardrails": [
            {**row, "arms": [_interval(arm) for arm in arms.get(row["name"], ())]}
            for row in guardrails_of(comparison)
        ],
        "sample_ratio_p_value": comparison.ratio_p_value(),
        "primary": _primary(analysis),
        "decision": {"kind": decision.kind, "reasons": list(decision.reasons)},
        "needs": _needs(plan, comparison),
        "requests": comparison.requests,
    }


UNREADABLE: dict[str, Any] = {  # of a rollout whose plan cannot be read
    "steps": [],
    "waiting": "",
    "guardrails": [],
    "sample_ratio_p_value": 1.0,
    "primary": None,
    "needs": [],
    "requests": 0,
}


def _facts(rollout: Rollout) -> dict[str, Any]:
    """Return what the record has of a rollout, without its plan's details."""
    return {
        "id": rollout.id,
        "state": rollout.state,
        "strategy": rollout.plan.get("strategy", "unknown"),
        "champion": rollout.champion,
        "challenger": rollout.challenger,
        "events": [
            {
                "time": event.created_at,
                "kind": event.kind,
                "step": event.step,
                "reasons": event.detail["reasons"],
            }
            for event in rollout.events
        ],
    }


def _steps(rollout: Rollout, plan: Plan, comparison: Comparison) -> list[dict[str, Any]]:
    reached = len(plan.steps) if rollout.state == "promoted" else rollout.step
    return [
        {
            "title": step.title,
            "state": "done" if at < reached else "now" if at == reached else "next",
            "pairs": comparison.pairs(at),
            "units": comparison.units.get(at, (0, 0)),
        }
        for at, step in enumerate(plan.steps)
    ]


def _needs(plan: Plan, comparison: Comparison) -> list[dict[str, Any]]:
    """Return how many requests show how much more failures, at the last step's share."""
    if not plan.steps:
        return []
    arms = comparison.arms().get("errors")
    base = arms[0].low if arms else 0.02
    return [need._asdict() for need in needs(plan, base, plan.steps[-1].share)]


def _primary(analysis: Analysis | None) -> dict[str, Any] | None:
    if analysis is None:
        return None
    welch = analysis.welch
    return {
        "name": analysis.primary.name,
        "pairs": analysis.primary.pairs,
        "difference": _interval(analysis.primary.interval),
        "gain": analysis.primary.gain,
        "units": analysis.units,
        "fixed_horizon": welch
        and {
            "difference": welch.difference,
            "interval": _interval(welch.interval),
            "p_value": welch.p_value,
        },
        "outliers": analysis.outliers,
    }


def _interval(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
