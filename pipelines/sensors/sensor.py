"""How every sensor of Ratchet is declared: the UI shows whether it starts a training, and
its docstring. It is on from the
start, but for one that starts trainings: these are off until a person or the profile switches them
on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dagster as dg

from pipelines.settings import SETTINGS


def sensor(
    every_s: int = SETTINGS.profile.automation.poll_s, *, trains: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], dg.SensorDefinition]:
    """Return a decorator that makes a function a sensor. options: of `dg.sensor`."""
    off = trains and not SETTINGS.profile.automation.retrain
    job = options.get("job")
    scores = job is not None and job.name == "evaluate_checkpoint"
    effect = "Starts a training. " if trains else "Only scores. " if scores else "Trains nothing. "
    status = dg.DefaultSensorStatus.STOPPED if off else dg.DefaultSensorStatus.RUNNING

    def declared(function: Callable[..., Any]) -> dg.SensorDefinition:
        return dg.sensor(
            description=f"{effect}{inspect.getdoc(function)}",
            minimum_interval_seconds=every_s,
            default_status=status,
            **options,
        )(function)

    return declared
