"""The sources that a user has added, with their locations: `sources.json` under RATCHET_HOME."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.home_paths import present_path, stored_path
from problems.columns import ProblemError
from problems.reading.place import SHIPPED, Place
from problems.schema import set_hash

FILE = "sources.json"


def read_sources(home: Path) -> dict[str, Place]:
    """Return the place of each source by name. Raises ProblemError if the file is broken."""
    file = home / FILE
    if not file.exists():
        return {}
    try:
        return {
            name: _moved(Place.from_json(place), lambda path: _present(path, home))
            for name, place in json.loads(file.read_text(encoding="utf-8")).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        fix = (
            'write {"name": "path, null, or an object"}, or remove the file and add the sources '
            "again"
        )
        raise ProblemError(f"not a valid list of sources ({error})", fix, str(file)) from error


def _moved(place: Place, path_of: Callable[[str], str]) -> Place:
    """Return the place with another form of its paths."""
    path, samples = (each and Path(path_of(str(each))) for each in (place.path, place.samples))
    return replace(place, path=path, samples=samples)


def _present(path: str, home: Path) -> str:
    """Return where a file is now. A relative path that a user wrote may be of another folder."""
    present = present_path(path, home)
    return present if Path(present).exists() else path


def validated(name: str, place: Place) -> Place:
    """Validate a source to be added and return its place, with an absolute path.

    Raises ProblemError for a bad name, and for a known dataset or its rows under another name;
    FileNotFoundError for a path that does not exist.
    """
    from problems.augmentation.draft import SOURCE as AUGMENTED
    from problems.reading.mapping import check_names
    from problems.sources.embedded import EMBEDDED
    from problems.sources.registry import SOURCES, recognized
    from problems.synthesis.settings import SOURCE as SYNTHETIC

    known = SOURCES.get(name)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ProblemError(
            f"invalid source name {name!r}", "use lower-case letters, digits and _", "sources"
        )
    if name in (EMBEDDED.name, AUGMENTED, SYNTHETIC):
        raise ProblemError(
            f"{name} is built in and needs no location",
            "give your own problems another name",
            "sources",
        )
    if known is None and place.path is None and place.hub is None:
        raise ProblemError(
            f"unknown source {name!r}",
            f"give --path or --hub, or use one of {', '.join(SOURCES)}",
            "sources",
        )
    if place.path is not None and place.hub is not None:
        raise ProblemError(
            f"source {name} has a path and a hub id", "give one of the two", "sources"
        )
    if known and place.mapped:
        raise ProblemError(
            f"{name} is a known source and takes no column mapping",
            "give your own problems another name",
            "sources",
        )
    if (
        place.hub
        and (
            names := [
                s.name for s in SOURCES.values() if (s.hub_id or "").lower() == place.hub.lower()
            ]
        )
        and name not in names
    ):
        raise ProblemError(
            f"{place.hub} is the known source {names[0]}",
            f"run `ratchet data add {names[0]}`",
            "sources",
        )
    check_names(place)
    for path in (place.path, place.samples):
        if path is not None and not path.exists():
            raise FileNotFoundError(f"source {name}: {path} does not exist: check the path")
    if known and place.path and (found := recognized(place.path, name)) not in (None, name):
        raise ProblemError(
            f"its rows are those of {found} ({SOURCES[found].about}), not of {name}",
            f"run `ratchet data add {found} --path {place.path}`",
            str(place.path),
        )
    return replace(
        place,
        path=place.path and place.path.resolve(),
        samples=place.samples and place.samples.resolve(),
    )


def add_source(home: Path, name: str, place: Place | Path | None) -> None:
    """Add a source, or change its place. Raises as `validated` does."""
    validated_place = validated(name, place if isinstance(place, Place) else Place(place))
    with _changed(home) as sources:
        sources[name] = validated_place


def remove_source(home: Path, name: str) -> None:
    """Forget a source; its files stay. Raises ProblemError if it was never added."""
    if name not in (sources := read_sources(home)):
        raise ProblemError(
            f"{name!r} was not added",
            f"added sources: {', '.join(sources) or 'none'}",
            str(home / FILE),
        )
    with _changed(home) as sources:
        sources.pop(name, None)


def pinned_sources(home: Path) -> dict[str, Place]:
    """Return the sources, each hub source with a commit.

    If no commit is recorded yet, the hub is asked once. Raises ProblemError if it does not answer.
    """
    sources = read_sources(home)
    for name, place in sources.items():
        if place.path is None and place.commit is None:
            pin(home, name, current_commit(name, place))
    return read_sources(home)


def current_commit(name: str, place: Place) -> str:
    """Return the current commit of a hub source, or the version of a shipped one.

    Raises ProblemError.
    """
    from problems.reading.hub import commit_of
    from problems.sources.registry import SOURCES, revision_of

    if place.hub is None and (known := SOURCES.get(name)) and known.generate:
        return f"{SHIPPED}{set_hash(known.generate())[:12]}"
    return commit_of(revision_of(name, place).hub_id, place.revision)


def pin(home: Path, name: str, commit: str) -> None:
    """Record the commit at which a hub source is read from now on.

    A source that was removed in the meantime stays removed.
    """
    with _changed(home) as sources:
        if name in sources:
            sources[name] = replace(sources[name], commit=commit)


@contextmanager
def _changed(home: Path) -> Iterator[dict[str, Place]]:
    """Yield the sources and write them back with their changes.

    A sensor, a run and a user may change them concurrently: each sees the changes of those before.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / f".{FILE}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = read_sources(home)
        yield sources
        write_atomic(
            home / FILE,
            json.dumps(
                {
                    name: _moved(place, lambda path: stored_path(path, home)).to_json()
                    for name, place in sorted(sources.items())
                },
                indent=1,
            )
            + "\n",
        )
