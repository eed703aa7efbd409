"""Scorecards for tests: one champion with its challengers, and functions that make others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evaluation.scorecard import Scorecard, ScoredSample


def sample(task_id: str, solved: bool | int = False, **fields: Any) -> ScoredSample:
    """Make a completion that passes all tests or fails. fields: its other fields."""
    verdict = "AC" if solved else "WA"
    return ScoredSample(
        **{"task_id": task_id, "completion": "", "program": "", "verdict": verdict, **fields}
    )


def scorecard(name: str, samples: Iterable[ScoredSample], **fields: Any) -> Scorecard:
    """Make the scorecard of a checkpoint on "heldout". fields: the fields that differ from that."""
    usual = {
        "benchmark": "heldout",
        "benchmark_version": "v1",
        "harness_version": "1",
        "checkpoint": name,
        "checkpoint_hash": f"hash of {name}",
        "sampling": {"n": 1},
        "samples": tuple(samples),
        "isolation": "none",
    }
    return Scorecard(**{**usual, **fields})


def card(name: str, solved: Iterable[bool | int], **fields: Any) -> Scorecard:
    """Make a scorecard with one completion per task. solved: which of them pass."""
    return scorecard(name, (sample(f"t{i}", s) for i, s in enumerate(solved)), **fields)


def counted(name: str, passing: Sequence[int], n: int = 10) -> Scorecard:
    """Make a scorecard with n completions per task. passing: how many of them pass."""
    samples = (
        sample(f"t{i:03d}", k < count, sample=k)
        for i, count in enumerate(passing)
        for k in range(n)
    )
    return scorecard(name, samples, sampling={"n": n})


OLD = card("old", [1] * 100 + [0] * 300)
BETTER = card("better", [1] * 90 + [0] * 10 + [1] * 60 + [0] * 240)
LUCKY = card("lucky", [1] * 95 + [0] * 5 + [1] * 10 + [0] * 290)
