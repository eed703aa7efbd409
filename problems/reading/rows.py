"""Read rows from local files.

An unreadable row is returned as an error in its place; the rows after it, and the other files of a
folder, are still read. At most one batch of rows is in memory at a time, and no row larger than
MAX_ROW_BYTES is accepted.
"""

from __future__ import annotations

import gzip
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from problems.columns import ProblemError
from problems.encoding import unique_keys
from problems.reading.csv_rows import csv_rows
from problems.reading.row_size import MAX_ROW_BYTES, size_of, too_large
from problems.reading.source import SPLIT, Read, Source
from problems.reading.table_rows import table_rows
from sandbox.reading import shown

SUFFIXES = (".jsonl", ".json", ".csv", ".jsonl.gz", ".json.gz", ".csv.gz", ".parquet", ".arrow")
# What `datasets` writes beside the rows.
BESIDE = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
LFS = b"version https://git-lfs.github.com/spec/"  # a clone without LFS has these files
MAX_LIST_BYTES = 2**30  # of a .json file, which is read as a whole


def local_rows(source: Source, path: Path) -> Iterator[Read]:
    """Yield the rows of a file or of a folder's files.

    Raises FileNotFoundError or ProblemError when there is nothing to read. If one of several files
    cannot be read, its error takes its place, unless all files fail.
    """
    files, failed = _files(source, path), list[ProblemError]()
    for file in files:
        try:
            yield from _with_split(source, file, _not_empty_rows(file))
        except ProblemError as error:
            failed.append(error)
            if len(failed) == len(files):
                raise
            yield str(file), error


def _not_empty_rows(file: Path) -> Iterator[Read]:
    """Raise ProblemError when there is no row at all."""
    empty = True
    for read in _file_rows(file):
        empty = False
        yield read
    if empty:
        raise ProblemError(
            "the file is empty", "put one problem on each line, or remove the source", str(file)
        )


def _with_split(source: Source, file: Path, rows: Iterable[Read]) -> Iterator[Read]:
    split = (
        re.search(r"(?:^|[^a-z])(train|test|valid|validation)(?:[^a-z]|$)", _place(file))
        if source.by_split
        else None
    )
    for where, row in rows:
        yield where, row if isinstance(row, ProblemError) or not split else {**row, SPLIT: split[1]}


def _place(file: Path) -> str:
    """Return the text that may name a file's split; `datasets` saves each in a folder."""
    name = f"{file.parent.name}/{file.name}" if file.suffix == ".arrow" else file.name
    return name.lower()


def _files(source: Source, path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"source {source.name}: {path} does not exist: check the path")
    if source.files:
        files = [path / name for name in source.files if (path / name).is_file()]
        files = files if source.all_files else files[:1]
    else:
        files = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and file.name.endswith(SUFFIXES) and _holds_rows(file, path)
        )
    if not files:
        raise FileNotFoundError(
            f"source {source.name}: no {' or '.join(source.files or SUFFIXES)} in {path}: "
            "give the file itself"
        )
    return files


def _holds_rows(file: Path, folder: Path) -> bool:
    """Return whether a file is not hidden, and not the description of `datasets` of its rows."""
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not hidden and file.name not in BESIDE


def _file_rows(file: Path) -> Iterator[Read]:
    if not file.name.endswith(SUFFIXES):
        raise ProblemError(
            f"ending {file.suffix or '(none)'} is unknown",
            f"use one of {', '.join(SUFFIXES)}",
            str(file),
        )
    with file.open("rb") as start:
        if start.read(len(LFS)) == LFS:
            reason = "a pointer of Git LFS instead of the rows"
            raise ProblemError(reason, "fetch them with `git lfs pull` in its clone", str(file))
    if file.suffix in (".parquet", ".arrow"):
        yield from table_rows(file)
        return
    if file.name.endswith((".csv", ".csv.gz")):
        yield from _csv_rows(file)
        return
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as content:
        yield from _lines(file, content) if ".jsonl" in file.name else _list_rows(file, content)  # type: ignore[arg-type]  # what gzip opens is an IO[bytes]


def _csv_rows(file: Path) -> Iterator[Read]:
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(
            file, "rt", encoding="utf-8-sig", errors="surrogateescape", newline=""
        ) as content:
            yield from csv_rows(file, content, MAX_ROW_BYTES)
    except (EOFError, OSError) as error:  # a truncated or broken gzip
        where = f"{file}: at its end"
        yield (
            where,
            ProblemError(f"the file cannot be read on ({error})", "fetch the file again", where),
        )


def _lines(file: Path, content: IO[bytes]) -> Iterator[Read]:
    number = 0
    try:
        while line := content.readline(MAX_ROW_BYTES + 1):
            number, where, size = number + 1, f"{file}: line {number + 1}", len(line)
            rest = line
            # skips the rest of a line that is too long
            while not rest.endswith(b"\n") and (rest := content.readline(MAX_ROW_BYTES)):
                size += len(rest)
            if size > MAX_ROW_BYTES:
                yield where, too_large(size, where)
            elif line.strip():
                yield _parsed(where, line)
    except (EOFError, OSError) as error:  # a truncated or broken gzip: the rows read so far stay
        where = f"{file}: after line {number}"
        yield (
            where,
            ProblemError(f"the file cannot be read on ({error})", "fetch the file again", where),
        )


def _list_rows(file: Path, content: IO[bytes]) -> Iterator[Read]:
    try:
        read = content.read(MAX_LIST_BYTES + 1)
    except (EOFError, OSError) as error:
        raise ProblemError(
            f"the file cannot be read ({error})", "fetch the file again", str(file)
        ) from error
    if len(read) > MAX_LIST_BYTES:
        raise ProblemError(
            f"a list of more than {MAX_LIST_BYTES >> 20} MiB",
            "write it as JSON lines, a problem each (.jsonl)",
            str(file),
        )
    if not read.strip():
        return
    where, rows = _parsed(str(file), read, shape=list)
    if not isinstance(rows, list):
        yield where, rows
        return
    for number, row in enumerate(rows):
        where = f"{file}: row {number}"
        if not isinstance(row, dict):
            yield (
                where,
                ProblemError(
                    f"{shown(row)} instead of an object", "write each problem as {...}", where
                ),
            )
        elif len(read) > MAX_ROW_BYTES and (size := size_of(row)) > MAX_ROW_BYTES:
            yield where, too_large(size, where)
        else:
            yield where, row


def _parsed(where: str, content: bytes, shape: type = dict) -> tuple[str, Any]:
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except UnicodeDecodeError as error:
        encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
        return where, ProblemError(
            f"byte {error.start} is not UTF-8",
            f"save the file as UTF-8 (iconv -f {encoding} -t utf-8)",
            where,
        )
    except json.JSONDecodeError as error:
        # The line number of a JSONL row is already in `where`.
        place = (
            f"line {error.lineno} column {error.colno}"
            if shape is list
            else f"column {error.pos + 1}"
        )
        return where, ProblemError(
            f"broken JSON: {error.msg} at {place}", "fix or remove it", where
        )
    except (RecursionError, ValueError) as error:
        return where, ProblemError(f"JSON that cannot be read: {error}", "fix or remove it", where)
    if not isinstance(value, shape):
        expected = "a list of problems, [{...}, ...]" if shape is list else "an object, {...}"
        return where, ProblemError(
            f"{shown(value)} instead of {expected}", f"write {expected}", where
        )
    return where, value
