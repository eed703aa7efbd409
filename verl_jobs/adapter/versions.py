"""Choose the adapter for the installed verl. Imports verl only in `adapter` and `patches`."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType

ADAPTERS = {"0.9": "verl_jobs.adapter.verl_0_9"}  # by verl's major and minor version


class UnsupportedVerl(ValueError):
    """The installed verl has no adapter."""


def nearest(version: str) -> str:
    """Return the series of this version if it has an adapter, else the newest that has one."""
    series = ".".join(version.split(".")[:2])
    return series if series in ADAPTERS else list(ADAPTERS)[-1]


def adapter_name(version: str) -> str:
    """Return the module for this version of verl. Raises UnsupportedVerl."""
    series = ".".join(version.split(".")[:2])
    if series not in ADAPTERS:
        supported = ", ".join(f"{name}.x" for name in ADAPTERS)
        raise UnsupportedVerl(
            f"verl {version} is installed, and verl_jobs/adapter/ supports {supported}: install a "
            "supported version, or write its adapter"
        )
    return ADAPTERS[series]


def installed() -> str:
    """Return the module's name for the installed verl. Raises UnsupportedVerl."""
    return adapter_name(importlib.metadata.version("verl"))


def adapter() -> ModuleType:
    """Return the module for the installed verl. Raises UnsupportedVerl."""
    return importlib.import_module(installed())


def patches() -> ModuleType:
    """Return the module of replaced functions for the installed verl. Raises UnsupportedVerl."""
    return importlib.import_module(f"{installed()}_patches")
