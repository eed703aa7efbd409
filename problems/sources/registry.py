"""All sources by name, and how to load one.

An unknown name is a user's own source: its path is read in the columns of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from problems import sources
from problems.cleaning.gating import gated_as
from problems.columns import ProblemError
from problems.reading.cut_tests import without_cut_tests
from problems.reading.hub import Revision, hub_rows
from problems.reading.imported_packages import with_packages
from problems.reading.mapping import mapped
from problems.reading.own import own
from problems.reading.place import Place
from problems.reading.rows import local_rows
from problems.reading.samples import with_samples
from problems.reading.source import LoadedRows, Read, Rejected, Row, Source
from problems.reading.stated import with_stated
from problems.schema import Problem
from problems.shapes.exercism import exercises, track
from problems.shapes.registry import published_record
from problems.shapes.task_folder import folder_rows, task_folders
from sandbox.discovery import entries

Converted = tuple[str, Problem | ProblemError]  # the row's location, and the problem or the error
LOOK = 20  # rows by which a file is recognized
SOURCES = dict(sorted(entries(sources, Source, "name").items()))


def load(name: str, place: Place | Path | None = None, most: int | None = None) -> LoadedRows:
    """Load all rows of a source, or the first `most`; bad rows are rejected with a reason.

    Without a place, the source's own dataset on the hub is read. Raises FileNotFoundError or
    ProblemError if the source as a whole cannot be read.
    """
    place = place if isinstance(place, Place) else Place(place)
    loaded = _joined(name, islice(read(name, place), most))
    return with_samples(loaded, place.samples) if place.samples else loaded


def read(name: str, place: Place) -> Iterator[Converted]:
    """Yield the place of each row with its problem, or the error. Raises as `load`.

    Rows with further samples of the same problem are not joined.
    """
    source = SOURCES.get(name) or _unknown(name, place)
    if place.path is not None and name not in SOURCES and exercises(place.path):
        rows = track(place.path)
    elif place.path is not None and name not in SOURCES and task_folders(place.path):
        rows = folder_rows(place.path)
    elif place.path is not None:
        rows = local_rows(source, place.path)
    elif source.generate:
        return iter([(problem.problem_id, problem) for problem in source.generate()])
    else:
        rows = hub_rows(source, revision_of(name, place))
    return _problems(source, rows)


def recognized(path: Path, name: str = "") -> str | None:
    """Return the known source that the first rows of a file belong to, by their keys.

    None if they belong to several, or to none. name: of the source that the path was given for.
    """
    source = SOURCES.get(name) or own(name)
    try:
        rows = [row for _, row in islice(local_rows(source, path), LOOK)]
    except (OSError, ProblemError):
        return None  # reported where the file is read
    names = {
        next((known.name for known in SOURCES.values() if known.fits and known.fits(row)), None)
        for row in rows
        if not isinstance(row, ProblemError)
    }
    return names.pop() if len(names) == 1 else None


def source_name(file: Path) -> str:
    """Return the name of a file's source: a known one by its rows or its name, else its name.

    Raises ProblemError if its name contains no letter.
    """
    if file.is_file() and (found := recognized(file)):
        return found
    known = [
        source.name
        for source in SOURCES.values()
        if file.name in source.files and not source.all_files
    ]
    stem = (
        re.sub(r"[^a-z0-9]+", "_", file.name.split(".")[0].lower())
        .lstrip("_0123456789")
        .rstrip("_")
    )
    if not known and not stem:
        raise ProblemError("the name has no letters", "name the file after the source", str(file))
    return known[0] if known else stem


def _unknown(name: str, place: Place) -> Source:
    """Return a source for rows in the schema's columns, in mapped columns or as published."""
    source = mapped(name, place) if place.mapped or place.hub else own(name)
    if place.columns:  # the user says what the columns mean
        return source

    def convert(row: Row, where: str) -> Problem:
        record = published_record(row, where)
        if record is None:
            return source.convert(row, where)
        return own(name).convert({**record, **place.constants}, where)

    return replace(source, convert=convert)


def revision_of(name: str, place: Place) -> Revision:
    """Return the hub dataset of a source. Raises ProblemError for a name that has none."""
    known = SOURCES.get(name)
    if place.hub is not None:
        return Revision(place.hub, place.config, place.commit)
    if known is None or known.hub_id is None:
        raise ProblemError(
            f"unknown source {name!r}",
            f"give its path, or use one of {', '.join(SOURCES)}",
            "sources",
        )
    return Revision(known.hub_id, place.config or known.hub_config, place.commit)


def _joined(name: str, problems: Iterable[Converted]) -> LoadedRows:
    loaded, first = LoadedRows(name, []), dict[str, tuple[str, int]]()
    for where, problem in problems:
        if isinstance(problem, ProblemError):
            loaded.rejected.append(Rejected(where, problem.reason, problem.fix))
            continue
        before, at = first.setdefault(problem.problem_id, (where, len(loaded.problems)))
        if before == where:
            loaded.problems.append(problem)
        elif merged := _with_samples_of(loaded.problems[at], problem):
            loaded.problems[at] = merged
        else:
            reason = f"problem_id {problem.problem_id!r} is also at {before}"
            loaded.rejected.append(Rejected(where, reason, "give each problem an id of its own"))
    return loaded


def _with_samples_of(problem: Problem, other: Problem) -> Problem | None:
    """Return the problem with the other's samples, or None if the other is another problem.

    SYNTHETIC-1 has a row for each response of a model to a problem.
    """
    names = ("statement", "tests", "solutions")
    if not other.samples or any(getattr(problem, key) != getattr(other, key) for key in names):
        return None
    samples = [*problem.samples, *other.samples]
    return replace(problem, extra=problem.extra | {"samples": samples})


def _problems(source: Source, rows: Iterable[Read]) -> Iterator[Converted]:
    for where, row in rows:
        if isinstance(row, ProblemError):
            yield where, row
            continue
        try:
            problem = with_stated(source.convert(row, where))
            problem = with_packages(without_cut_tests(problem, where))
            if not problem.gated and gated_as(problem):  # even if the row claims otherwise
                problem = replace(problem, gated=True, split="heldout")
            # A problem that cannot be hashed cannot be kept. Fail here, where the row is known.
            problem.content_hash  # noqa: B018
            yield where, problem
        except ProblemError as error:
            yield where, error
        except TypeError as error:  # from the hash: a value of the row is not plain data
            yield (
                where,
                ProblemError(str(error), "leave the column out, or write it as text", where),
            )
