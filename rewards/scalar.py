"""Combine several objectives into one number.

In: components in [-1, 1] with their weights. Out: a value in [-1, 1], never lower when a component
rises.
"""

from __future__ import annotations

from collections.abc import Mapping

LEVELS = 21  # steps of 0.1: smaller differences do not decide before the next component


def weighted_sum(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = sum(values[name] * weight for name, weight in weights.items()) / sum(weights.values())
    return max(-1.0, min(1.0, total))


def lexicographic(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Let the heaviest component decide.

    Another one counts only between completions that are equal, to 0.1, in all heavier ones.
    """
    ordered = sorted(weights, key=lambda name: -weights[name])  # stable: ties keep their order
    number = 0
    for name in ordered:
        number = number * LEVELS + round((values[name] + 1.0) / 2.0 * (LEVELS - 1))
    highest: int = LEVELS ** len(ordered) - 1
    return 2.0 * number / highest - 1.0


def constrained(
    values: Mapping[str, float], weights: Mapping[str, float], floors: Mapping[str, float]
) -> float:
    """Return the weighted sum, in [0, 1] where every floor is kept, in [-1, 0) where one is broken.

    A component that was not measured breaks no floor.
    """
    total = weighted_sum(values, weights)
    holds = all(values[name] >= floor for name, floor in floors.items() if name in values)
    return (total + 1.0) / 2.0 if holds else min((total - 1.0) / 2.0, -1e-6)
