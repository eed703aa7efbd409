"""Paths in the records of a home, which may be moved or copied after they were written."""

from __future__ import annotations

from pathlib import Path

FEWEST_PARTS = 3  # of an artifact's folder: kind, name, key


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
    """Return where a recorded path is now.

    Older records have absolute paths: one of another home is that of this home's copy, if there is
    one.
    """
    path = Path(stored)
    if not path.is_absolute():
        return str(home / path)
    if path.is_relative_to(home):
        return stored
    tails = (Path(*path.parts[n:]) for n in range(1, len(path.parts) - FEWEST_PARTS + 1))
    return next((str(home / tail) for tail in tails if (home / tail).exists()), stored)
