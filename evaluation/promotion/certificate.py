"""The certificate of a decision: what it was decided on, for anyone to recompute.

In: a decision and the scorecards that it compared. Out: plain data, which `check_certificate.py`
recomputes with the standard library alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.promotion.check_certificate import FORMAT, hash_of
from evaluation.promotion.comparison import Comparison
from evaluation.promotion.gate import Decision
from evaluation.promotion.rate import clusters_of, counts_of
from evaluation.scorecard import Scorecard


def certificate(
    decision: Decision, champion: Mapping[str, Scorecard], challenger: Mapping[str, Scorecard]
) -> dict[str, Any]:
    """Return the certificate. champion, challenger: the scorecards by benchmark.

    Raises KeyError for a benchmark of the decision without a scorecard.
    """
    gate = [decision.comparison] if decision.comparison else []
    comparisons = [
        _comparison(each, champion[each.benchmark], challenger[each.benchmark])
        for each in (*gate, *decision.others)
    ]
    parts = {
        "format": FORMAT,
        "kind": decision.kind,
        "champion": decision.champion.model_dump() if decision.champion else None,
        "challenger": decision.challenger.model_dump(),
        "level": decision.level or decision.policy.alpha,
        "policy": decision.policy.model_dump(mode="json"),
        "checks": [check.model_dump(mode="json") for check in decision.checks],
        "comparisons": comparisons,
        "decision": decision.content_hash,
    }
    return parts | {"hashes": {name: hash_of(part) for name, part in parts.items()}}


def _comparison(comparison: Comparison, before: Scorecard, after: Scorecard) -> dict[str, Any]:
    return {
        "benchmark": comparison.benchmark,
        "benchmark_version": comparison.benchmark_version,
        "harness_version": after.harness_version,
        "scorecards": {"champion": before.content_hash, "challenger": after.content_hash},
        "champion": {task: list(count) for task, count in counts_of(before).items()},
        "challenger": {task: list(count) for task, count in counts_of(after).items()},
        "clusters": clusters_of(before, after),
        "k": comparison.k,
        "test": comparison.test,
        "before": comparison.before.share,
        "after": comparison.after.share,
        "p_better": comparison.p_better,
        "p_worse": comparison.p_worse,
        "margin": comparison.margin,
        "p_not_worse": comparison.p_not_worse,
    }
