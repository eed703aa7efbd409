"""Key figures of a training: of its last step, as series, and its remaining time.

In: verl's metrics, one row per step (verl_jobs/job.py). Out: plain numbers by short names; values
that were not measured are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from verl_jobs.metrics.verl_keys import ENTROPY, FROM_START
from verl_jobs.samples import CUT

History = Sequence[Mapping[str, Any]]
RECENT = 10  # steps whose mean duration predicts the remaining ones
KEYS: dict[str, tuple[str, ...]] = {  # the first measured key counts
    "reward": ("critic/score/mean",),
    "KL": FROM_START,
    "entropy": (ENTROPY,),
    "length": ("response_length/mean",),
    "cut": (CUT,),
    "tokens_per_second": ("perf/throughput",),
    "seconds_a_step": ("timing_s/step",),
}


def last_figures(history: History) -> dict[str, float]:
    """Return the figures of the last step.

    length: tokens of a completion; cut: share of truncated completions; KL: nats a token.
    """
    steps = [row for row in history if row["step"] > 0]
    if not steps:
        return {}
    values = {name: _value(steps[-1], keys) for name, keys in KEYS.items()}
    return {name: value for name, value in values.items() if value is not None}


def series(history: History, name: str) -> list[tuple[int, float]]:
    """Return (step, value) for one of KEYS."""
    return [
        (int(row["step"]), value)
        for row in history
        if row["step"] > 0 and (value := _value(row, KEYS[name])) is not None
    ]


def seconds_trained(history: History) -> float:
    """Return the seconds of all steps.

    Ray's start, and steps that were lost and repeated, are not included.
    """
    return sum(value for _, value in series(history, "seconds_a_step"))


def seconds_left(history: History, steps: int) -> float | None:
    """Return the seconds until the last of `steps`, at the speed of the last few.

    None before the first.
    """
    durations = series(history, "seconds_a_step")
    return (
        fmean(value for _, value in durations[-RECENT:]) * max(0, steps - durations[-1][0])
        if durations
        else None
    )


def _value(row: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    return next((float(row[key]) for key in keys if row.get(key) is not None), None)
