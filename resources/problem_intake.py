"""Files of problems that a person put into the inbox: looked into, copied and noted as a source before anything reads them.

In: a file of `inbox_problems/`. Out: a source in `sources.json` that lies in a copy under its content's hash, or `ProblemError` that says why not.
The source is called after the file; one named as upstream names its own (`MbppPlus.jsonl.gz`), or after a known source, is that source.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts.hashing import hash_data, hash_file
from problems.catalogue import add_source, listed
from problems.columns import ProblemError
from problems.sources.place import Place
from problems.sources.registry import SOURCES, load
from resources.home import Home

LOOK = 200  # rows that are read before a file is taken: the next run reads them all, and names each bad one


@dataclass(frozen=True)
class Taken:
    """A file that is a source now. `new` is False where the source had the same content already."""

    source: str
    place: Place
    problems: int  # of the rows looked at
    rejected: tuple[str, ...]
    new: bool


def waiting(home: Home) -> list[Path]:
    """Files in the inbox, but for hidden ones."""
    return sorted(
        path
        for path in home.problem_inbox.glob("*")
        if path.is_file() and not path.name.startswith(".")
    )


def fingerprint(file: Path) -> str:
    """Name, size and time: cheap, and different while somebody still copies. Empty where it was taken away meanwhile."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return ""
    return hash_data([file.name, stat.st_size, stat.st_mtime_ns])


def source_name(file: Path) -> str:
    """Raises ProblemError where the file's name has no letter to begin with."""
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
        raise ProblemError(
            "a name without letters", "call the file as the source shall be called", str(file)
        )
    return known[0] if known else stem


def take_in(home: Home, file: Path) -> Taken:
    """A source that had columns of its own before keeps them.

    Raises ProblemError when none of the first rows can be read, and for a file whose source another file of the inbox is already.
    """
    name = source_name(file)
    before = listed(home.path).get(name)
    if (
        before
        and (other := _put_before(home, before))
        and other.name != file.name
        and other.exists()
    ):
        raise ProblemError(
            f"its source would be {name}, which {other.name} is",
            "give one of the two another name, or take it away",
            str(file),
        )
    columns = (
        replace(before, path=file, hub=None, revision=None, commit=None, config=None)
        if before
        else Place(file)
    )
    looked = load(name, columns, most=LOOK)
    if not looked.problems:
        first = looked.rejected[0]
        raise ProblemError(
            f"none of {looked.rows} rows can be read, the first is {first.row}: {first.reason}",
            first.mend,
            str(file),
        )
    kept = home.problem_files / hash_file(file)[:16] / file.name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_name(f".{kept.name}")
        shutil.copyfile(file, beside)
        beside.replace(kept)
    place = replace(columns, path=kept.resolve())
    add_source(home.path, name, place)
    bad = tuple(
        f"{rejected.row}: {rejected.reason}: {rejected.mend}" for rejected in looked.rejected
    )
    return Taken(name, place, len(looked.problems), bad, place != before)


def _put_before(home: Home, place: Place) -> Path | None:
    """Where the file of the inbox lay that a source was copied from; None for a source that came another way."""
    copied = place.path is not None and place.path.is_relative_to(home.problem_files.resolve())
    return home.problem_inbox / place.path.name if copied and place.path else None
