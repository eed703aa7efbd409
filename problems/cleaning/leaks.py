"""Say for each row of a training file whether it leaks a benchmark task, why and how surely.

In: training rows, gated tasks, an open sandbox. Out: one `Leak` per row, in their order. A leak
is what cleaning removes; a suspect is kept, and its task is left out of the clean score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from problems.cleaning.compared import compared
from problems.cleaning.contamination import Overlap
from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.schema import Problem
from sandbox.sandbox import Sandbox

BEHAVIOUR = "same behaviour"


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

    The arguments are those of `compared`. Raises NoOutput if the sandbox fails.
    """
    overlaps = compared(problems, gated, sandbox, model, journal, on_progress, every=True)
    return [_finding(one, found) for one, found in zip(problems, overlaps, strict=True)]


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
