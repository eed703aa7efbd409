"""What is for evaluation only: which tasks are gated, and which problems overlap one.

MBPP is gated by task over all releases: its test tasks 11 to 510, and every id that is in a release of MBPP+ or in sanitized MBPP, whatever its split
(108 of the 378 tasks of MBPP+ v0.2.0 lie in MBPP's train range). MBPP+ v0.1.0 had 399 tasks; its list is not at hand, but it was taken from sanitized
MBPP, so all 427 sanitized ids are gated, which is more than needed by a few. `gated_ids.json` holds the lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from problems.schema import Problem
from problems.syntax import normal_form

IDS = Path(__file__).with_name("gated_ids.json")
MBPP_TEST = range(11, 511)


@cache
def gated_mbpp() -> frozenset[int]:
    """All gated task numbers of MBPP."""
    releases = json.loads(IDS.read_text(encoding="utf-8"))["mbpp"]
    return frozenset(MBPP_TEST).union(*releases.values())


def is_gated_mbpp(task: int) -> bool:
    return task in gated_mbpp()


@dataclass(frozen=True)
class Overlap:
    """A problem that a gated one gives away: which, how, and the two texts to compare."""

    problem_id: str
    gated_id: str
    kind: str  # "same statement", "same solution", "13 words in a row"
    mine: str
    theirs: str


LEAST_WORDS, MOST_WORDS = 8, 13  # as GPT-3 did (arXiv:2005.14165, appendix C): 13 words, fewer for short texts, never under 8
LEAD = re.compile(r"^\s*write (a|the) (python )?function (to|that|which) ")


def words(statement: str) -> list[str]:
    """Lower-case words and numbers of a statement, without "Write a function to", which half of MBPP shares."""
    return re.findall(r"[a-z0-9]+", LEAD.sub("", statement.lower()))


def squeezed(statement: str) -> str:
    """The statement without case and layout; signs stay, for they are often all that differs (`<`, `>`)."""
    return " ".join(statement.lower().split())


class GatedIndex:
    """All gated problems, ready to be looked up: by statement, by solution, by runs of words.

    A run has 13 words, or all words of a shorter statement; a statement of fewer than 8 words is compared whole.
    """

    def __init__(self, gated: Iterable[Problem]) -> None:
        self.statements: dict[str, Problem] = {}
        self.solutions: dict[str, tuple[Problem, str]] = {}
        self.runs: dict[int, dict[tuple[str, ...], Problem]] = {}
        for problem in gated:
            self.statements.setdefault(squeezed(problem.statement), problem)
            for solution in problem.solutions:
                self.solutions.setdefault(normal_form(solution), (problem, solution))
            found = words(problem.statement)
            if (size := min(len(found), MOST_WORDS)) >= LEAST_WORDS:
                for run in _runs(found, size):
                    self.runs.setdefault(size, {}).setdefault(run, problem)

    def overlaps(self, problem: Problem) -> Iterator[Overlap]:
        """Why this problem must not be trained on: each kind at most once."""
        if theirs := self.statements.get(squeezed(problem.statement)):
            yield Overlap(problem.problem_id, theirs.problem_id, "same statement", problem.statement, theirs.statement)
        for solution in problem.solutions:
            if known := self.solutions.get(normal_form(solution)):
                yield Overlap(problem.problem_id, known[0].problem_id, "same solution", solution, known[1])
                break
        found = words(problem.statement)
        for size in sorted(self.runs, reverse=True):
            if hit := next((run for run in _runs(found, size) if run in self.runs[size]), None):
                theirs = self.runs[size][hit]
                yield Overlap(problem.problem_id, theirs.problem_id, f"{size} words in a row", " ".join(hit), theirs.statement)
                break


def overlaps(problems: Iterable[Problem], gated: Iterable[Problem]) -> list[Overlap]:
    """All overlaps of problems with gated ones, in the problems' order."""
    index = GatedIndex(gated)
    return [overlap for problem in problems for overlap in index.overlaps(problem)]


def contamination_report(found: Sequence[Overlap]) -> str:
    """Markdown: the evidence side by side, a row an overlap."""
    lines = ["| problem | gated | how | here | there |", "|---|---|---|---|---|"]
    lines += [f"| {o.problem_id} | {o.gated_id} | {o.kind} | {_cell(o.mine)} | {_cell(o.theirs)} |" for o in found]
    return "\n".join(lines)


def _runs(found: list[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(found[start : start + size]) for start in range(len(found) - size + 1))


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    return (flat if len(flat) <= 160 else flat[:159] + "…").replace("|", "\\|")
