"""Read rows from CSV: a header, then one problem per row, in UTF-8 with commas (RFC 4180).

A cell is text, so lists, objects, numbers and truth values are written as JSON. An empty cell is a
missing value. `solutions` and `tags` may be one plain text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from problems.columns import COLUMNS, LIST_COLUMNS, ProblemError
from problems.encoding import read_text
from problems.reading.source import Row

JSON_COLUMNS = ("tests", "limits", "extra", "visible_tests", "tolerance", "gated")


def csv_rows(file: Path, content: IO[str], most_bytes: int) -> Iterator[tuple[str, Row | Any]]:
    """Yield each row's location with the row, or with the ProblemError that names its column.

    content: opened with newline="" and errors="surrogateescape". Raises ProblemError for a header
    without names.
    """
    csv.field_size_limit(most_bytes)
    reader = csv.reader(content, strict=True)
    try:
        names = next(reader, [])
        if not all(map(_is_utf8, names)):
            fix = "save the file as UTF-8 (iconv -f utf-16 -t utf-8, or -f latin1)"
            raise ProblemError("the header is not UTF-8", fix, f"{file}: line 1")
        if names and (wrong := _wrong_header(names)):
            raise ProblemError(wrong, "give each column a name of its own", f"{file}: line 1")
        line = reader.line_num
        for cells in reader:
            where, line = f"{file}: line {line + 1}", reader.line_num
            if cells:  # else an empty line
                try:
                    yield where, _row(names, cells, where)
                except ProblemError as error:
                    yield where, error
    except csv.Error as error:
        where = f"{file}: line {reader.line_num}"
        fix = 'put cells with commas, quotes or line breaks in "…", each quote inside doubled'
        yield where, ProblemError(f"broken CSV: {error}; the rest is not read", fix, where)


def _wrong_header(names: list[str]) -> str:
    if "" in names:
        return f"column {names.index('') + 1} has no name"
    twice = next((name for at, name in enumerate(names) if name in names[:at]), "")
    return f"column {twice} is there twice" if twice else ""


def _row(names: list[str], cells: list[str], where: str) -> dict[str, Any]:
    if len(cells) != len(names):
        raise ProblemError(
            f"{len(cells)} cells for {len(names)} columns",
            'put cells with commas or line breaks in "…"',
            where,
        )
    return {
        name: _value(name, cell, where)
        for name, cell in zip(names, cells, strict=True)
        if cell.strip()
    }


def _is_utf8(cell: str) -> bool:
    return cell.isascii() or not any("\udc80" <= character <= "\udcff" for character in cell)


def _value(name: str, cell: str, where: str) -> Any:
    if not _is_utf8(cell):
        fix = "save the file as UTF-8 (iconv -f latin1 -t utf-8)"
        raise ProblemError(f"column {name} is not UTF-8", fix, where)
    if name in COLUMNS and name not in (*JSON_COLUMNS, *LIST_COLUMNS):
        return cell
    text = cell.lower() if name == "gated" else cell
    if name not in JSON_COLUMNS and cell.lstrip()[:1] not in ("[", "{"):
        return [cell] if name in LIST_COLUMNS else cell
    try:
        return read_text(text)
    except (ValueError, RecursionError) as error:
        if name not in JSON_COLUMNS:
            return [cell] if name in LIST_COLUMNS else cell
        expected = COLUMNS[name].expected
        fix = f"write {expected}, as JSON"
        raise ProblemError(f"column {name}: broken JSON: {error}", fix, where) from error
