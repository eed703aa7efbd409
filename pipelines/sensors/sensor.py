"""How every sensor of Ratchet is declared: its docstring is what the UI shows. It is on from the
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
    status = dg.DefaultSensorStatus.STOPPED if off else dg.DefaultSensorStatus.RUNNING

    def declared(function: Callable[..., Any]) -> dg.SensorDefinition:
        return dg.sensor(
            description=inspect.getdoc(function),
            minimum_interval_seconds=every_s,
            default_status=status,
            **options,
        )(function)

    return declared
