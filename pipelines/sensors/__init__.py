"""Dagster's sensors, one subject a file: new checkpoints, new problems, retraining, stale scores,
MLflow.
"""

import sys

import dagster as dg

from sandbox.discovery import entries


def sensors() -> list[dg.SensorDefinition]:
    """Return every sensor that a module of this folder defines, by name."""
    return sorted(
        entries(sys.modules[__name__], dg.SensorDefinition, "name").values(),
        key=lambda sensor: sensor.name,
    )
