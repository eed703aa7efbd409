"""What the requests of a release show by now.

In: a release, its arms, the observations. Out: the guardrails as JSON, what the present step waits
for, the primary metric, the decision on each challenger.
"""

from __future__ import annotations

from typing import Any

from resources.registry.releases import Release
from serving.experiment.analysis import Analysis, analyze
from serving.experiment.decision import ExperimentDecision, decide, pairs_text
from serving.gateway.observations import Observations
from serving.release.arms import Arms, FirstRequests
from serving.release.comparison import ArmComparison

RATIO_LEVEL = 0.001  # a mismatch of the arms' traffic is a fault, so it must be beyond doubt


def waiting_for(release: Release, arms: Arms, ran_s: float) -> str:
    """Return why the present step is not over; "" if it is. ran_s: seconds that it has run."""
    plan, bake_s = arms.plan, arms.plan.bake_s
    watched = not plan.experiment and plan.steps[release.step].watch
    if plan.experiment:  # a long one is looked at less often: its steps are events of the record
        bake_s = max(bake_s, 0.1 * (release.step_since - release.events[0].time))
    elif watched:
        bake_s = plan.watch_s
    if (left := bake_s - ran_s) > 0:
        return f"{'is watched' if watched else 'bakes'} for another {left:.0f} s"
    pairs = sum(comparison.pairs(release.step) for comparison in arms.comparisons.values())
    if pairs < plan.min_pairs and not watched:
        return f"has {pairs} of at least {pairs_text(plan.min_pairs)} of requests"
    return ""


def undecided_for(release: Release, arms: Arms, now: float) -> str:
    """Return why the release ends without a decision; "" if it goes on. now: seconds since 1970."""
    plan = arms.plan
    whole, _, since = release.running()
    days = (whole + (max(0.0, now - since) if since else 0.0)) / 86_400
    if plan.steps and not plan.experiment and plan.steps[release.step].watch:
        return ""
    if days > plan.max_days:
        return f"Undecided after {plan.max_days:g} days."
    if plan.experiment or not plan.steps or not plan.decides(release.step):
        return ""
    pairs = arms.first.pairs(release.step)
    return f"Undecided after {pairs_text(pairs)}." if pairs >= plan.max_pairs else ""


def guardrails_of(comparison: ArmComparison) -> list[dict[str, Any]]:
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
            "cleared": harm.cleared,
            "cleared_p": harm.cleared_p,
        }
        for harm in comparison.harms()
    ]


def evidence_of(arms: Arms) -> dict[str, Any]:
    """Return what an event records: the guardrails of each challenger."""
    evidence: dict[str, Any] = {"observations": arms.read}
    if len(arms.comparisons) == 1:
        return evidence | {"guardrails": guardrails_of(arms.first)}
    each = {str(version): guardrails_of(own) for version, own in arms.comparisons.items()}
    return evidence | {"guardrails_of": each}


def analyses_of(
    release: Release, arms: Arms, observations: Observations
) -> dict[int, Analysis | None]:
    """Return challenger -> analysis of the primary metric; None where quality is not measured.

    Only where it is are all observations of the release read.
    """
    votes = observations.votes_on(release.id)
    plan, comparisons = arms.plan, arms.comparisons
    if not votes and not any(own.measures_quality for own in comparisons.values()):
        return dict.fromkeys(comparisons)
    first = FirstRequests(plan)
    rows = [row for _, row in observations.read(0, release.id) if first.admits(row)]
    return {
        version: analyze(
            [row for row in rows if row.version not in comparison.others],
            votes,
            challenger=version,
            shares=comparison.shares,
            level=plan.level,
            gain=plan.gain or 0.0,
            key_share=plan.key_share,
            trusted=plan.trusted,
        )
        for version, comparison in comparisons.items()
    }


def decision_of(comparison: ArmComparison, analysis: Analysis | None) -> ExperimentDecision:
    """Return the decision that the guardrails support by now, and of a plan with a gain the primary
    metric too.

    A guardrail about which the requests of two keys at least say nothing, such as tests that none
    or one carries, is left out.
    """
    harms = comparison.harms()
    return decide(
        [harm for harm in harms if harm.independent] or harms,
        analysis.primary if analysis and comparison.plan.gain is not None else None,
        tested=comparison.measures_quality,
        ratio_p_value=comparison.ratio_p_value(),
        ratio_level=RATIO_LEVEL,
        min_pairs=comparison.plan.min_pairs,
    )
