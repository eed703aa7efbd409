"""Paths in the records of a home, which may be moved or copied after they were written."""

from __future__ import annotations

from pathlib import Path


def stored_path(path: str, home: Path) -> str:
    """Return a path as it is recorded: relative to the home if it is in it, else unchanged."""
    for place, folder in (
        (Path(path).absolute(), home.absolute()),
        (Path(path).resolve(), home.resolve()),  # by another name of the home
    ):
        if place.is_relative_to(folder):
            return place.relative_to(folder).as_posix()
    return path


def present_path(stored: str, home: Path) -> str:
    """Return where a recorded path is now."""
    return str(home / stored)
