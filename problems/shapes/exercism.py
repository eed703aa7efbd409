"""Exercism's Python track (MIT): a folder for each exercise, with unittests and an example.

`track(path)` yields a row for each exercise of the repository, of its folder `exercises/practice`,
or of one exercise. Names that the tests import from the solution come from the program.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from problems.columns import ProblemError
from problems.reading.program_imports import take_imports
from problems.reading.prose import statement
from problems.reading.source import Read, Record, Row, python, text
from problems.shapes.shape import RowShape

CONFIG = Path(".meta") / "config.json"
DOCUMENTS = ("introduction.md", "instructions.md", "instructions.append.md")


def exercises(path: Path) -> list[Path]:
    """Return the folders of exercises in a folder of the track; an empty list in any other."""
    if (path / CONFIG).is_file():
        return [path]
    folders = (path / "exercises" / "practice", path / "practice", path)
    return next(
        (
            found
            for folder in folders
            if folder.is_dir()
            and (found := sorted(p.parents[1] for p in folder.glob(f"*/{CONFIG}")))
        ),
        [],
    )


def track(path: Path) -> Iterator[Read]:
    """Yield a row for each exercise; one that cannot be read is an error in its place."""
    for folder in exercises(path):
        try:
            files = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["files"]
            yield (
                str(folder),
                {
                    "exercise": folder.name,
                    "module": Path(files["solution"][0]).stem,
                    "instructions": "\n\n".join(
                        (folder / ".docs" / name).read_text(encoding="utf-8").strip()
                        for name in DOCUMENTS
                        if (folder / ".docs" / name).is_file()
                    ),
                    "stub": _joined(folder, files["solution"]),
                    "example": _joined(folder, files.get("example") or files["exemplar"]),
                    "unittests": _joined(folder, files["test"]),
                },
            )
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}"
            yield (
                str(folder),
                ProblemError(f"no complete exercise ({reason})", "check it out again", str(folder)),
            )


def read(row: Row, where: str) -> Record:
    """Read a row of `track`."""
    module = text(row, "module", where)
    unittests = text(row, "unittests", where)
    tree = python(unittests, "key 'unittests'", where, "check it out again")
    names = take_imports(tree, module)
    if not names:
        raise ProblemError(
            f"its tests import no name from {module}", "leave the exercise out", where
        )
    return {
        "problem_id": text(row, "exercise", where),
        "statement": statement(row, "instructions", where),
        "style": "unittest",
        "tests": [{"source": ast.unparse(tree)}],
        "entry_point": names[0],
        "solutions": [text(row, "example", where)],
        "extra": {"signature": text(row, "stub", where)},
    }


def _joined(folder: Path, names: list[str]) -> str:
    return "\n\n".join((folder / name).read_text(encoding="utf-8") for name in names)


EXERCISM = RowShape(
    "exercism",
    "Exercism's Python track",
    ("exercise", "module", "instructions", "unittests", "example"),
    read,
    ("exercise", "module", "instructions", "unittests", "example", "stub"),
    "MIT",
)
