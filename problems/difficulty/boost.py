"""Weigh training problems more that resemble tasks which an earlier champion solved."""

from __future__ import annotations

from collections.abc import Sequence

from problems.schema import Problem

BOOST = 4.0  # most that the weight of a training problem similar to a lost task is multiplied by


def boosted(
    weights: dict[str, float], train: Sequence[Problem], lost: Sequence[Problem]
) -> dict[str, float]:
    """Return the weights of the training problems, up to `BOOST` times as high near lost tasks.

    The factor grows with the share of features in common with a lost task. The lost tasks
    themselves are used at the gate, and never trained on. Features are tags and, in the embedded
    family, the operations of the composition.
    """
    lost_features = [_features(problem) for problem in lost]
    boosted_weights = dict(weights)
    for problem in train:
        own = _features(problem)
        alike = max(
            (len(own & other) / len(own | other) for other in lost_features if own | other),
            default=0.0,
        )
        boosted_weights[problem.problem_id] = weights.get(problem.problem_id, 1.0) * (
            1 + (BOOST - 1) * alike
        )
    return boosted_weights


def _features(problem: Problem) -> frozenset[str]:
    composition = problem.extra.get("composition", ())
    operations = (
        composition.split("|")
        if isinstance(composition, str)
        else [str(operation) for operation in composition]
    )
    return frozenset([*problem.tags, *(f"operation {operation}" for operation in operations)])
