"""What an experiment does next: drop a challenger, or end.

In: an experiment, its arms, the observations. Out: the event to record. A challenger is dropped
when it breaches a guardrail, cannot gain enough any more, or has shown no gain in `max_pairs`
pairs. The experiment ends when a challenger has shown its gain, or none is left.
"""

from __future__ import annotations

from typing import Any

from resources.registry.releases import Kind, Release
from serving.experiment.analysis import Analysis
from serving.experiment.decision import decide, pairs_text
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
        if version in decisions and analysis and analysis.primary.pairs >= arms.plan.max_pairs:
            reason = f"No gain is shown in {pairs_text(analysis.primary.pairs)}."
            dropped.setdefault(version, reason)
    return without(release, arms, dropped) if dropped else None


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


def _middle(analysis: Analysis | None) -> float:
    return sum(analysis.primary.interval) if analysis else 0.0
