"""Completions to compare: those of a scorecard or a file, as plain text by task.

In: a scorecard (`.json`), or completions as `evaluation.completions` reads them. Out: a
`Contestant`. Texts are kept whole: a reward finds a completion's preference by its text.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from artifacts.integrity import CorruptArtifact
from evaluation import completions
from evaluation.scorecard import Scorecard
from problems.columns import ProblemError

TASK = ("task_id", "problem_id")
STATEMENT = ("statement", "prompt", "question")


@dataclass(frozen=True)
class Contestant:
    name: str
    completions: dict[str, tuple[str, ...]]  # task -> its completions, by number of the sample
    # Task -> its statement, if the file has it.
    statements: dict[str, str] = field(default_factory=dict)


def read_contestant(path: Path) -> Contestant:
    """Read a scorecard's or a file's completions, named by the checkpoint or the file. Raises
    ProblemError with file, row and fix.
    """
    if path.suffix == ".json" and path.read_text(
        encoding="utf-8", errors="replace"
    ).lstrip().startswith("{"):
        try:
            return of_card(Scorecard.read(path))
        except (ValidationError, ValueError, CorruptArtifact) as error:
            raise ProblemError(
                "it is not a scorecard, or was changed after it was written",
                "give a scorecard (.json), or completions (.jsonl, .jsonl.gz)",
                str(path),
            ) from error
    samples = completions.read(path, prefer="completion")
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    return Contestant(
        name,
        _by_task((each.task_id, each.sample, each.text) for each in samples),
        _statements(path) if ".jsonl" in path.suffixes else {},
    )


def of_card(card: Scorecard, name: str = "") -> Contestant:
    return Contestant(
        name or card.checkpoint,
        _by_task((each.task_id, each.sample, each.completion) for each in card.samples),
        dict(card.prompts),
    )


def read_statements(path: Path) -> dict[str, str]:
    """Read task -> statement from JSON lines or a parquet file in our schema. Raises ProblemError
    for an empty file, FileNotFoundError.
    """
    if path.suffix == ".parquet":
        from problems.prompt import prompt_text
        from problems.schema import read_parquet

        return {problem.problem_id: prompt_text(problem) for problem in read_parquet(path)}
    if not (statements := _statements(path)):
        raise ProblemError(
            "it has no statements",
            f"give each row a task ({' or '.join(TASK)}) and a statement "
            f"({' or '.join(STATEMENT)})",
            str(path),
        )
    return statements


def _statements(path: Path) -> dict[str, str]:
    """Return the statements in the rows; rows without one are skipped."""
    statements: dict[str, str] = {}
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as lines
    ):
        for number, line in enumerate(lines, 1):
            try:
                row: Any = json.loads(line) if line.strip() else {}
            except ValueError as error:
                raise ProblemError(
                    f"invalid JSON ({error})",
                    "correct the line, or remove it",
                    f"{path}: line {number}",
                ) from error
            task, text = (
                next((row[key] for key in keys if key in row), None)
                if isinstance(row, dict)
                else None
                for keys in (TASK, STATEMENT)
            )
            if task is not None and isinstance(text, str):
                statements[str(task)] = _whole(text)
    return statements


def _by_task(samples: Iterable[tuple[str, int, str]]) -> dict[str, tuple[str, ...]]:
    by_task: dict[str, list[str]] = {}
    for task, _, text in sorted(samples, key=lambda sample: sample[1]):
        by_task.setdefault(task, []).append(_whole(text))
    return {task: tuple(texts) for task, texts in by_task.items()}


def _whole(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
