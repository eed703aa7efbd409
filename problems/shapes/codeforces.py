"""open-r1's `codeforces` (CC-BY-4.0), all configurations.

The statement is in parts; `examples` are visible and `official_tests` hidden. `generated_checker`
is a script that reads three files and prints 1; it becomes the problem's checker. There is no
solution. Interactive problems and programs that read a file are refused.
"""

from __future__ import annotations

from typing import Any

from problems.columns import ProblemError
from problems.reading.cases import read_tests
from problems.reading.input_output import MAX_TESTS
from problems.reading.source import Record, Row, text, texts
from problems.shapes.shape import RowShape
from sandbox.reading import shown

PARTS = (("input_format", "Input"), ("output_format", "Output"), ("note", "Note"))
CHECKER = """\
import contextlib, io, pathlib, sys, tempfile

SCRIPT = {script!r}

def check(stdin, got, expected):
    files = {{"input.txt": stdin, "correct_output.txt": expected, "solution_output.txt": got}}
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, name) for name in files]
        for path, text in zip(paths, files.values()):
            path.write_text(text)
        sys.argv, printed = ["checker.py", *map(str, paths)], io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            exec(compile(SCRIPT, "checker.py", "exec"), {{"__name__": "__main__"}})
    return printed.getvalue().strip() in ("1", "1.0", "True")
"""


def read(row: Row, where: str) -> Record:
    """Read a row of `data/train-*.parquet`."""
    _refuse(row, where)
    examples, official = (_tests(row, key, where) for key in ("examples", "official_tests"))
    hidden = [test for test in official if _words(test) not in map(_words, examples)]
    record = read_tests([*examples, *hidden], "official_tests", where)
    script = row.get("generated_checker")
    tags = texts(row, "tags", where) if row.get("tags") else []
    return record | {
        "problem_id": str(row["id"]).replace("/", "_"),
        "statement": _statement(row, where),
        "visible_tests": min(len(examples), MAX_TESTS),
        "tags": ["codeforces", *(tag.replace(" ", "-") for tag in tags)],
        "checker": CHECKER.format(script=script) if script else None,
        "compare": "exact" if script else "tokens",
    }


def _tests(row: Row, key: str, where: str) -> list[dict[str, Any]]:
    tests: Any = row.get(key) or []
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        raise ProblemError(f"key {key!r} is {shown(tests)}", "expected a list of tests", where)
    return tests


def _words(test: dict[str, Any]) -> dict[str, list[str]]:
    """Return a test without its white space: examples and official tests end lines differently."""
    return {name: str(value).split() for name, value in test.items()}


def _statement(row: Row, where: str) -> str:
    parts = [f"# {row['title']}" if row.get("title") else "", text(row, "description", where)]
    parts += [f"## {head}\n\n{row[key]}" for key, head in PARTS if row.get(key)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _refuse(row: Row, where: str) -> None:
    """Raise ProblemError for rows that no Python program can be judged by."""
    language: Any = row.get("language")
    for wrong, what in (
        (row.get("interaction_format"), "the problem is interactive"),
        (row.get("input_mode") not in (None, "stdio"), "the program reads a file"),
        (language not in (None, "python"), f"the prompt asks for {language}"),
    ):
        if wrong:
            raise ProblemError(what, "only programs on standard input are judged", where)


CODEFORCES = RowShape(
    "codeforces",
    "open-r1/codeforces",
    ("id", "contest_id", "description", "examples", "official_tests"),
    read,
    (
        "title",
        "description",
        "examples",
        "official_tests",
        "generated_checker",
        "prompt",
        "tags",
        *(key for key, _ in PARTS),
    ),
    "CC-BY-4.0",
)
