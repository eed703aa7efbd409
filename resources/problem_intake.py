"""Import files of problems from the inbox: check, copy and register each one as a source.

In: a file of `inbox_problems/`. Out: a source in `sources.json` that refers to a copy under the
hash of its content, or a `ProblemError` with the reason.
The source is named after the file. A file with a name that upstream uses (`MbppPlus.jsonl.gz`), or
that is named after a known source, becomes that source.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts.hashing import hash_data, hash_file
from problems.catalogue import add_source, read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from problems.sources.registry import load, source_name
from resources.home import Home

# rows read before a file is accepted: the next run reads all of them, and names each bad one
LOOK = 200


@dataclass(frozen=True)
class Imported:
    """A file that is now a source. `new` is False if the source already had the same content."""

    source: str
    place: Place
    problems: int  # among the rows that were read
    rejected: tuple[str, ...]
    new: bool


def waiting(home: Home) -> list[Path]:
    """Return the files in the inbox, except hidden ones."""
    return sorted(
        path
        for path in home.problem_inbox.glob("*")
        if path.is_file() and not path.name.startswith(".")
    )


def fingerprint(file: Path) -> str:
    """Return a hash of name, size and time: cheap, and it changes while the file is being copied.

    Empty if the file has disappeared meanwhile.
    """
    try:
        stat = file.stat()
    except FileNotFoundError:
        return ""
    return hash_data([file.name, stat.st_size, stat.st_mtime_ns])


def import_problems(home: Home, file: Path) -> Imported:
    """Import a file. A source that already had its own columns keeps them.

    Raises ProblemError if no row among the first ones can be read, or if another file of the inbox
    already is this source.
    """
    name = source_name(file)
    before = read_sources(home.path).get(name)
    if (
        before
        and (other := _inbox_path(home, before))
        and other.name != file.name
        and other.exists()
    ):
        raise ProblemError(
            f"its source would be {name}, which {other.name} is already",
            "rename or remove one of the two files",
            str(file),
        )
    columns = (
        replace(before, path=file, hub=None, revision=None, commit=None, config=None)
        if before
        else Place(file)
    )
    sample = load(name, columns, most=LOOK)
    if not sample.problems:
        first = sample.rejected[0]
        raise ProblemError(
            f"all {len(sample.rejected)} rows read are invalid, the first is {first.row}: "
            f"{first.reason}",
            first.fix,
            str(file),
        )
    copy = home.problem_files / hash_file(file)[:16] / file.name
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        beside = copy.with_name(f".{copy.name}")
        shutil.copyfile(file, beside)
        beside.replace(copy)
    place = replace(columns, path=copy.resolve())
    add_source(home.path, name, place)
    bad = tuple(
        f"{rejected.row}: {rejected.reason}: {rejected.fix}" for rejected in sample.rejected
    )
    return Imported(name, place, len(sample.problems), bad, place != before)


def _inbox_path(home: Home, place: Place) -> Path | None:
    """Return the inbox path of the file that a source was copied from, else None."""
    copied = place.path is not None and place.path.is_relative_to(home.problem_files.resolve())
    return home.problem_inbox / place.path.name if copied and place.path else None
