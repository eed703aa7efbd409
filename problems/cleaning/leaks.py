"""Say for each row of a training file whether it leaks a benchmark task, why and how surely.

In: training rows, gated tasks, an open sandbox. Out: one `Leak` per row, in their order. A leak
is what cleaning removes; a suspect is kept, and its task is left out of the clean score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from artifacts.code_hash import hash_modules
from artifacts.hashing import hash_data
from artifacts.json_lines import JsonLines
from problems.cleaning.contamination import Overlap
from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.cleaning.semantic import BothIndexes
from problems.schema import Problem, set_hash
from sandbox.sandbox import Sandbox

BEHAVIOUR = "same behaviour"
PART_S, FIRST_PART, MAX_PART = 5.0, 32, 4096  # seconds and rows of a part


@dataclass(frozen=True)
class Leak:
    """The verdict on one row, with the strongest evidence.

    gated_id: a task of equal behaviour before any other, then the one with most kinds of evidence.
    also: other tasks that the row leaks.
    """

    problem_id: str
    verdict: Literal["leak", "suspect", "clean"]
    gated_id: str = ""
    kind: str = ""
    evidence: str = ""
    also: tuple[str, ...] = ()


def find_leaks(
    problems: Sequence[Problem],
    gated: Sequence[Problem],
    sandbox: Sandbox,
    model: str = "",
    journal: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Leak]:
    """Compare rows with gated tasks: names, words, programs and tests, then meaning and behaviour.

    model: see `MeaningIndex`. journal: a file that keeps the verdicts, written every few seconds,
    so that a killed pass resumes, and an unchanged row is not compared again with the same tasks.
    Calls `on_progress(done, total)` after each part of the rows. Raises NoOutput if the sandbox
    fails.
    """
    rules = hash_data([hash_modules((__name__,), ("problems", "sandbox")), set_hash(gated), model])
    keys = [f"{rules[:16]} {problem.content_hash}" for problem in problems]
    known, file = dict[str, Leak](), JsonLines(journal) if journal else None
    if file:
        file.open(
            lambda row: known.update({row["key"]: Leak(**row["leak"] | _also(row["leak"]))}),
            "remove the line: its row is compared again",
        )
    try:
        pending = {key: row for key, row in zip(keys, problems, strict=True) if key not in known}
        indexes = BothIndexes(gated, model) if pending else None
        rest, size = iter(pending.items()), FIRST_PART
        on_progress(len(keys) - len(pending), len(keys))
        while indexes and (part := dict(islice(rest, size))):
            started = monotonic()
            found = dict(zip(part, _findings(list(part.values()), indexes, sandbox), strict=True))
            if file:
                file.append({"key": key, "leak": asdict(leak)} for key, leak in found.items())
            known |= found
            size = int(len(part) * PART_S / (monotonic() - started))
            size = max(FIRST_PART, min(MAX_PART, size))  # a part has costs of its own
            on_progress(sum(key in known for key in keys), len(keys))
    finally:
        if file:
            file.close()
    return [known[key] for key in keys]


def _also(leak: dict[str, Any]) -> dict[str, Any]:
    return {"also": tuple(leak["also"])}  # a list in JSON


def _findings(problems: Sequence[Problem], indexes: BothIndexes, sandbox: Sandbox) -> list[Leak]:
    by_id: dict[str, list[Overlap]] = {problem.problem_id: [] for problem in problems}
    for overlap in indexes.overlaps(problems, sandbox, every=True):
        by_id[overlap.problem_id].append(overlap)
    return [_finding(problem, by_id[problem.problem_id]) for problem in problems]


def _finding(problem: Problem, overlaps: Iterable[Overlap]) -> Leak:
    overlaps = list(overlaps)
    leaks = [overlap for overlap in overlaps if overlap.leak]
    kinds = Counter(overlap.gated_id for overlap in leaks)
    equal = {overlap.gated_id for overlap in leaks if overlap.kind == BEHAVIOUR}

    def rank(overlap: Overlap) -> tuple[bool, bool, int, bool]:
        task, kind = overlap.gated_id, overlap.kind
        return not overlap.leak, task not in equal, -kinds[task], kind != BEHAVIOUR

    ranked = sorted(overlaps, key=rank)
    if not any(overlap.leak for overlap in ranked):
        if task := gated_as(problem):
            return Leak(problem.problem_id, "leak", task, "gated task", "by name or statement")
        if match := known_task(problem):
            return Leak(problem.problem_id, "leak", *match)
    if not ranked:
        return Leak(problem.problem_id, "clean")
    first = ranked[0]
    also = {overlap.gated_id: None for overlap in ranked if overlap.leak} if first.leak else {}
    also.pop(first.gated_id, None)
    return Leak(
        problem.problem_id,
        "leak" if first.leak else "suspect",
        first.gated_id,
        first.kind,
        first.detail,
        tuple(also),
    )
