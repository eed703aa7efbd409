"""Alarms of a running training: metrics of its last steps that are out of the usual range.

In: verl's metrics, one row per step. Out: alarms as sentences. `verl_jobs/trainer/early_stop.py`
ends trainings that cannot recover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rewards import watch
from verl_jobs.samples import CUT

LAST = 5  # number of last steps to average


@dataclass(frozen=True)
class Bound:
    key: str
    most: float
    words: str  # with {} for the value
    fix: str


BOUNDS = (
    Bound(
        CUT,
        0.1,
        "{:.0%} of the completions were truncated",
        "raise training.answer_tokens, or end the stage of training.answer_stages earlier",
    ),
    Bound(
        "training/rollout_probs_diff_mean",
        0.01,
        "engine and trainer differ by {:.3f} in the probability of a token",
        "set training.importance_cap: 2",
    ),
    Bound(
        watch.LOST,
        0.0,
        "{:.1f} completions a step had no verdict and were left out",
        "see the trainer's log for the sandbox's failure",
    ),
    Bound(
        "response/aborted_ratio",
        0.0,
        "the engine aborted {:.0%} of the completions",
        "see the engine's log",
    ),
)


# share of the first steps' entropy; early_stop.py ends the training only at a lower value
ENTROPY, FALLEN = (
    "actor/entropy",
    0.3,
)


def alarms(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one sentence, with the fix, for each bound that the mean of the last steps exceeds.

    Values that were not measured give no alarm.
    """
    messages = []
    for bound in BOUNDS:
        values = [float(row[bound.key]) for row in history if bound.key in row][-LAST:]
        if values and fmean(values) > bound.most:
            messages.append(f"{bound.words.format(fmean(values))}: {bound.fix}")
    return messages + _entropy([float(row[ENTROPY]) for row in history if ENTROPY in row])


def _entropy(values: Sequence[float]) -> list[str]:
    """Return an early alarm of low entropy: equal completions have no differences in reward."""
    if len(values) < 2 * LAST:
        return []
    first, last = fmean(values[:LAST]), fmean(values[-LAST:])
    if last >= FALLEN * first:
        return []
    return [
        (
            f"the entropy fell to {last / first:.0%} of its first {LAST} steps: lower "
            "training.learning_rate, or set training.kl_coefficient"
        )
    ]
