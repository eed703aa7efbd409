"""What an experiment does next: drop a challenger, change the shares of the traffic, or end.

In: an experiment, its arms, the observations. Out: the event to record. A challenger is dropped
when it breaches a guardrail, cannot gain enough any more, or has shown no gain in `most_pairs`
pairs. The experiment ends when a challenger has shown its gain, or none is left.
"""

from __future__ import annotations

from typing import Any

from resources.registry.releases import Kind, Release
from serving.experiment.analysis import Analysis
from serving.experiment.decision import decide
from serving.experiment.thompson import Successes, thompson_shares
from serving.gateway.observations import Observations
from serving.release.arms import Arms
from serving.release.evidence import analyses_of, decision_of, evidence_of

Action = tuple[Kind, int, dict[str, Any]]


def breach_in(release: Release, arms: Arms) -> Action | None:
    """Return the event that drops challengers with a breached guardrail. Cheap."""
    reasons = {
        version: " ".join(decide(arms.comparisons[version].harms(), None).reasons)
        for version in arms.running(release.step)
        if arms.comparisons[version].breached()
    }
    return without(release, arms, reasons) if reasons else None


def next_of(release: Release, arms: Arms, observations: Observations) -> Action | None:
    """Return the event that the primary metric calls for. It reads all observations."""
    analyses = analyses_of(release, arms, observations)
    decisions = {
        v: decision_of(arms.comparisons[v], analyses[v]) for v in arms.running(release.step)
    }
    shown = {v: each for v, each in decisions.items() if each.kind == "deploy" and analyses[v]}
    if shown:
        winner = max(shown, key=lambda version: _middle(analyses[version]))
        reasons = [f"Version {winner}: {reason}" for reason in shown[winner].reasons]
        detail = {"version": winner, "reasons": reasons, **evidence_of(arms)}
        return "promoted", release.step, detail
    dropped = {v: " ".join(each.reasons) for v, each in decisions.items() if each.kind == "keep"}
    for version, analysis in analyses.items():
        if version in decisions and analysis and analysis.primary.pairs >= arms.plan.most_pairs:
            reason = f"No gain is shown in {analysis.primary.pairs} pairs."
            dropped.setdefault(version, reason)
    if dropped:
        return without(release, arms, dropped)
    if arms.plan.allocation == "equal":
        return None
    return divided(release, arms, analyses)


def without(release: Release, arms: Arms, dropped: dict[int, str]) -> Action:
    """Return the event that drops challengers; the last one ends the experiment."""
    now = arms.shares[release.step]
    reasons = [f"Version {version}: {reason}" for version, reason in dropped.items()]
    left = [version for version in arms.running(release.step) if version not in dropped]
    if not left:
        earlier = [
            reason
            for event in release.events
            if event.kind == "step" and event.detail.get("dropped")
            for reason in event.detail["reasons"]
        ]
        detail = {"reasons": [*earlier, *reasons], **evidence_of(arms)}
        return "rolled_back", release.step, detail
    # The shares of those dropped go to all others in proportion, the champion included. So each
    # challenger left keeps its share among its own and the champion's requests, and its open pairs.
    kept = 1 - sum(now[version] for version in dropped)
    shares = {str(v): now[v] / kept if v in left else 0.0 for v in now}
    detail = {"shares": shares, "dropped": list(dropped), "reasons": reasons, **evidence_of(arms)}
    return "step", release.step + 1, detail


def divided(release: Release, arms: Arms, analyses: dict[int, Analysis | None]) -> Action | None:
    """Return the event that divides the traffic by Thompson sampling.

    It is recorded even where hardly any share changes: pairs that are not complete by then are
    lost, and whether they are must not depend on their values.
    """
    now, left = arms.shares[release.step], arms.running(release.step)
    known = {version: analysis for version in left if (analysis := analyses[version])}
    if len(known) < len(left):
        return None  # quality is not measured
    champion = next(iter(known.values())).champion
    counts = {0: Successes(champion.count, champion.total)}
    counts |= {v: Successes(a.challenger.count, a.challenger.total) for v, a in known.items()}
    shares = thompson_shares(counts, arms.plan.least_share)
    new = {version: shares.get(version, 0.0) for version in now}
    text = ", ".join(f"version {version} {100 * new[version]:.3g} %" for version in left)
    reason = f"The traffic is divided by the chance to be the best: {text}, the champion the rest."
    detail = {"shares": {str(version): share for version, share in new.items()}}
    return "step", release.step + 1, {**detail, "reasons": [reason], **evidence_of(arms)}


def _middle(analysis: Analysis | None) -> float:
    return sum(analysis.primary.interval) if analysis else 0.0
