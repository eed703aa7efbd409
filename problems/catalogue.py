"""Which sources a user has added, and where they lie: `sources.json` under RATCHET_HOME."""

from __future__ import annotations

import json
import re
from pathlib import Path

from artifacts.store import write_atomic
from problems.record import ProblemError

FILE = "sources.json"


def listed(home: Path) -> dict[str, Path | None]:
    """Name to local path, or to None where the hub is read. Raises ProblemError when the file is broken."""
    file = home / FILE
    if not file.exists():
        return {}
    try:
        paths = json.loads(file.read_text(encoding="utf-8"))
        return {name: None if path is None else Path(path) for name, path in paths.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise ProblemError(f"broken ({error})", 'write {"name": "path or null"}, or remove the file and add the sources again', str(file)) from error


def add_source(home: Path, name: str, path: Path | None) -> None:
    """Adds a source, or gives it another path. Raises ProblemError for a bad name and FileNotFoundError for a path that does not exist."""
    from problems.sources.registry import SOURCES

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ProblemError(f"{name!r} is no name of a source", "use lower-case letters, digits and _", "sources")
    if path is None and name not in SOURCES:
        raise ProblemError(f"unknown source {name!r}", f"give --path to your own files, or use one of {', '.join(SOURCES)}", "sources")
    if path is not None and not path.exists():
        raise FileNotFoundError(f"source {name}: {path} does not exist: check --path")
    _write(home, listed(home) | {name: path and path.resolve()})


def remove_source(home: Path, name: str) -> None:
    """Forgets a source; its files stay. Raises ProblemError when it was never added."""
    sources = listed(home)
    if name not in sources:
        raise ProblemError(f"{name!r} was not added", f"there are: {', '.join(sources) or 'none'}", str(home / FILE))
    _write(home, {other: path for other, path in sources.items() if other != name})


def _write(home: Path, sources: dict[str, Path | None]) -> None:
    write_atomic(home / FILE, json.dumps({name: path and str(path) for name, path in sorted(sources.items())}, indent=1) + "\n")
