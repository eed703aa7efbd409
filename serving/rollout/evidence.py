"""What the requests of a rollout show by now.

In: a rollout, its comparison, the observations. Out: the guardrails as JSON, what the present step
waits for, the primary metric, the decision.
"""

from __future__ import annotations

from typing import Any

from resources.registry.rollouts import Rollout
from serving.experiment.analysis import Analysis, analyze
from serving.experiment.decision import Decision, decide
from serving.gateway.observations import Observations
from serving.rollout.comparison import Comparison

RATIO_LEVEL = 0.001  # a mismatch of the arms' traffic is a fault, so it must be beyond doubt


def waiting_for(rollout: Rollout, comparison: Comparison, now: float) -> str:
    """Return why the present step is not over; "" if it is. now: seconds since 1970."""
    plan = comparison.plan
    if (left := plan.bake_s - (now - rollout.step_since)) > 0:
        return f"bakes for another {left:.0f} s"
    if (pairs := comparison.pairs(rollout.step)) < plan.least_pairs:
        return f"{pairs} of at least {plan.least_pairs} pairs of requests"
    return ""


def guardrails_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the state of the guardrails as JSON."""
    return [
        {
            "name": harm.guardrail.name,
            "margin": harm.guardrail.margin,
            "pairs": harm.pairs,
            "low": harm.interval.low,
            "high": harm.interval.high,
            "p_value": harm.p_value,
            "level": harm.level,
        }
        for harm in comparison.harms()
    ]


def analysis_of(
    rollout: Rollout, comparison: Comparison, observations: Observations
) -> Analysis | None:
    """Return the analysis of the primary metric; None where quality is not measured.

    Only then are all observations of the rollout read.
    """
    votes, opened = [vote for _, vote in observations.feedback()], rollout.events[0].time
    if not votes and not comparison.measures_quality:
        return None
    return analyze(
        [row for _, row in observations.read(0, rollout.id)],
        votes,
        (row for _, row in observations.read() if row.time < opened),
        challenger=rollout.challenger,
        shares=[step.share for step in comparison.plan.steps],
        level=comparison.plan.level,
        gain=comparison.plan.gain or 0.0,
        users_per_key=comparison.plan.users_per_key,
    )


def decision_of(comparison: Comparison, analysis: Analysis | None) -> Decision:
    """Return the decision that the guardrails and the primary metric support by now.

    A guardrail that no request says anything about, such as tests that none carries, is left out.
    """
    harms = comparison.harms()
    return decide(
        [harm for harm in harms if harm.pairs] or harms,
        analysis.primary if analysis else None,
        ratio_p_value=comparison.ratio_p_value(),
        ratio_level=RATIO_LEVEL,
        least_pairs=comparison.plan.least_pairs,
    )
