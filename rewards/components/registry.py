"""The components by name, found in the files of this folder; each is named after its file."""

from __future__ import annotations

from pathlib import Path

from rewards import components
from rewards.components.component import Component
from sandbox.discovery import entries

COMPONENTS = dict(
    sorted(entries(components, Component).items(), key=lambda item: (item[1].order, item[0]))
)


def file_of(name: str) -> Path:
    """Return the file that defines a component."""
    return Path(__file__).with_name(f"{name}.py")
