"""How every sensor of Ratchet is declared: it runs from the start, and its docstring is what the UI
shows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dagster as dg

from pipelines.settings import SETTINGS


def sensor(
    every_s: int = SETTINGS.profile.automation.poll_s, **options: Any
) -> Callable[[Callable[..., Any]], dg.SensorDefinition]:
    """Return a decorator that makes a function a sensor. options: of `dg.sensor`."""

    def declared(function: Callable[..., Any]) -> dg.SensorDefinition:
        return dg.sensor(
            description=inspect.getdoc(function),
            minimum_interval_seconds=every_s,
            default_status=dg.DefaultSensorStatus.RUNNING,
            **options,
        )(function)

    return declared
