"""The formats of other tools' logs: each `LogFormat` in the files of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evaluation import logs
from evaluation.logs.archive import Archive
from evaluation.logs.log import LogError, LogFormat, scorecard_of, unique
from evaluation.scorecard import Scorecard
from sandbox.discovery import entries

ZIP = b"PK\x03\x04"


@cache
def formats() -> tuple[LogFormat, ...]:
    """Return the formats, in alphabetical order of their files."""
    return tuple(entries(logs, LogFormat, "tool").values())


def read_log(path: Path, names: Sequence[str] | None) -> Scorecard | None:
    """Return a log as a scorecard by one of its scores; None if no format recognizes the file.

    names: of scores; empty for the log's only or usual one; None if the caller needs programs,
    which only some logs have. Raises LogError.
    """
    content = _content(path)
    form = next((form for form in formats() if form.recognizes(content)), None)
    if form is None:
        return None
    if names is None and not form.has_programs:
        raise LogError(
            f"{path} is a log of {form.tool}, which has no programs: only `ratchet compare` "
            "reads it"
        )
    try:
        log = form.read(content, path)
    except LogError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise LogError(
            f"{path} is no log of {form.tool} that is known here ({type(error).__name__}: "
            f"{error}): write it with the tool's present version"
        ) from error
    return scorecard_of(log, names or (), path, form)


def _content(path: Path) -> Any:
    """Return a file's content; None if it is no data."""
    with path.open("rb") as file:
        if file.read(len(ZIP)) == ZIP:
            return Archive(path)
        file.seek(0)
        try:
            if path.suffix == ".jsonl":
                return _rows(file)
            return json.load(file, object_pairs_hook=unique)
        except LogError as error:
            raise LogError(f"{path}: {error}") from error
        except (ValueError, RecursionError):
            return None


def _rows(lines: Iterable[bytes]) -> list[Any]:
    """Return the rows of JSON lines. Raises LogError for a row that is cut off."""
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                rows.append(json.loads(line, object_pairs_hook=unique))
        except LogError:
            raise
        except ValueError:
            if not rows:
                raise
            raise LogError(
                f"line {number} is no JSON, the file is cut off: copy it again"
            ) from None
    return rows
