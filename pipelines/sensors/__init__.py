"""Dagster's sensors, one subject a file: new checkpoints, new problems, retraining, stale scores,
MLflow.
"""

import importlib
import pkgutil

import dagster as dg


def sensors() -> list[dg.SensorDefinition]:
    """Return every sensor that a module of this folder defines, by name."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    ]
    defined = {
        value.name: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, dg.SensorDefinition)
    }
    return [defined[name] for name in sorted(defined)]
