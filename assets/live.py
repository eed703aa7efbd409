"""Metadata of a running training for Dagster: last step, machines, cost, expected end, curves.

In: verl's metrics, and the trainer's messages through Pipes. Out: metadata of an observation.
Numbers stay numbers, so that Dagster plots them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from artifacts.charts import image
from evaluation.reports.live_curves import panels
from verl_jobs.job import VALIDATION
from verl_jobs.metrics.figures import KEYS, last_figures, seconds_left, seconds_trained, series
from verl_jobs.metrics.machine import measured

EVERY_S = 5.0  # minimum time between two observations, each of a new step


def live(
    history: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
    steps: int,
    price: float,
    now: float,
) -> dict[str, Any]:
    """Return the observation's metadata.

    messages: from the trainer, oldest first. price: per hour of its machines, 0 if unknown.
    now: seconds since 1970.
    """
    metadata: dict[str, Any] = {
        "step": int(history[-1]["step"]),
        "steps": steps,
        **last_figures(history),
    }
    scored = [float(row[VALIDATION]) for row in history if VALIDATION in row]
    metadata |= {"validation": scored[-1]} if scored else {}
    metadata |= measured(messages[-1]) if messages else {}
    if price:
        metadata["cost_of_the_steps"] = price * seconds_trained(history) / 3600
    if (left := seconds_left(history, steps)) is not None:
        metadata |= {
            "minutes_left": left / 60,
            "expected_end": dg.MetadataValue.timestamp(datetime.fromtimestamp(now + left, UTC)),
        }
    curves = {_title(name): series(history, name) for name in KEYS}
    for message in messages:
        for name, value in measured(message).items():
            curves.setdefault(_title(name), []).append((int(message["step"]), value))
    metadata = {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in metadata.items()
    }
    return metadata | {"curves": dg.MetadataValue.md(image("training so far", panels(curves)))}


def _title(name: str) -> str:
    return name.replace("_", " ")
