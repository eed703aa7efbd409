"""Find problems that overlap a task of a gated benchmark, how, and which tasks remain suspect.

In: problems, and the gated ones. Out: `Overlap`s with both texts. A *leak* is reason enough to
remove a problem. A *suspicion* is less: the problem stays, and the task goes on its benchmark's
list of suspects, so that a score can also be given without those tasks. A task can be suspect
although nothing was removed for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from problems.cleaning.meaning import opposed
from problems.cleaning.minhash import CHUNK, alike
from problems.cleaning.normalize import normalize
from problems.cleaning.similarity import (
    LEAD,
    MIN_PROGRAM,
    MIN_STATEMENT,
    Kin,
    Traits,
    core,
    key,
    kin,
)
from problems.cleaning.sketch import MANY, Sketch, sketch
from problems.parallel import parallel_map
from problems.prompt import TURNS, messages
from problems.schema import Problem

# As GPT-3 did (arXiv:2005.14165, appendix C): 13 words in a row; fewer for short texts, but at
# least 8.
MIN_RUN, RUN = (8, 13)
WHOLE = 0.9  # of a statement's words, in one run
# A run of words in more tasks than this is a common phrase and no reason to compare. A task may be
# in three releases.
COMMON = 8
SAID = re.compile(r"#[^\n]*|\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)  # in a program
CAP = 256  # a problem is compared with at most this many gated rows of a bucket


@dataclass(frozen=True)
class Overlap:
    """A problem and the gated one that it resembles: how, and the two texts to compare."""

    problem_id: str
    gated_id: str
    # "same statement", "same solution", "same tests", "words in a row", "near statement" or "near
    # solution"
    kind: str
    detail: str  # the figures
    leak: bool  # otherwise a suspicion
    mine: str
    theirs: str


class GatedIndex:
    """An index of all gated problems."""

    def __init__(self, gated: Iterable[Problem]) -> None:
        self.traits = [
            Traits(problem) for problem in sorted(gated, key=lambda problem: problem.problem_id)
        ]
        self.sketch = sketch([traits.problem for traits in self.traits])
        self.statements: dict[int, set[int]] = defaultdict(set)
        self.shapes: dict[int, set[int]] = defaultdict(set)
        self.tests: dict[int, set[int]] = defaultdict(set)
        runs: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self.texts = [run_words(traits.problem.statement) for traits in self.traits]
        for at, traits in enumerate(self.traits):
            self.statements[key(core(traits.problem.statement))].add(at)
            for run in _runs(self.texts[at], MIN_RUN):
                runs[run].add(at)
        self.runs = {run: tasks for run, tasks in runs.items() if len(tasks) <= COMMON}
        for shape, at in zip(
            self.sketch.shapes.tolist(), self.sketch.program_of.tolist(), strict=True
        ):
            self.shapes[shape].add(at)
        for test, at in zip(self.sketch.tests.tolist(), self.sketch.test_of.tolist(), strict=True):
            self.tests[test].add(at)

    def overlaps(self, problems: Sequence[Problem], processes: int = 1) -> list[Overlap]:
        """Return all overlaps, leaks and suspicions, in the order of the problems.

        There is at most one overlap of each kind per problem and gated task.
        """
        if not self.traits or not problems:
            return []
        parts = [problems[at : at + CHUNK] for at in range(0, len(problems), CHUNK)]
        return [
            overlap
            for part_overlaps in parallel_map(
                self.overlaps_of, parts, processes if len(problems) >= MANY else 1
            )
            for overlap in part_overlaps
        ]

    def overlaps_of(self, problems: Sequence[Problem], own: Sketch | None = None) -> list[Overlap]:
        """Find the overlaps of one part; `own`: its sketch, if already computed."""
        if not self.traits:
            return []
        return [
            overlap
            for place, near in self._candidates(problems, own or sketch(problems))
            for overlap in self._compare(problems[place], near)
        ]

    def _candidates(
        self, problems: Sequence[Problem], own: Sketch
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield problems with the gated ones that they should be compared with."""
        near = defaultdict[int, set[int]](set)
        for place, problem in enumerate(problems):
            if places := self.statements.get(key(core(problem.statement))):
                near[place] |= places
            for run in _runs(run_words(text_of(problem)), MIN_RUN):
                if places := self.runs.get(run):
                    near[place] |= places
        for keys, known, owner in (
            (own.shapes, self.shapes, own.program_of),
            (own.tests, self.tests, own.test_of),
        ):
            for row in np.flatnonzero(np.isin(keys, np.array(list(known), np.uint64))):
                near[int(owner[row])] |= known[int(keys[row])]
        first = len(self.traits)
        pairs = alike(
            np.concatenate([self.sketch.statements, own.statements]),
            first,
            MIN_STATEMENT,
            CAP,
        )
        for left, right in zip(pairs.left.tolist(), (pairs.right - first).tolist(), strict=True):
            near[right].add(left)
        first = len(self.sketch.programs)
        pairs = alike(np.concatenate([self.sketch.programs, own.programs]), first, MIN_PROGRAM, CAP)
        for left, right in zip(
            self.sketch.program_of[pairs.left].tolist(),
            own.program_of[pairs.right - first].tolist(),
            strict=True,
        ):
            near[right].add(left)
        return ((place, sorted(near[place])) for place in sorted(near))

    def _compare(self, problem: Problem, near: Sequence[int]) -> Iterator[Overlap]:
        mine, own, said = Traits(problem), run_words(problem.statement), run_words(text_of(problem))
        for at in near:
            gated, run = self.traits[at], covered(said, self.texts[at])
            part = run[0] >= RUN and covered(own, self.texts[at])[0] >= max(RUN, WHOLE * len(own))
            for kind, detail, leak in judge_overlaps(
                problem, gated.problem, kin(mine, gated), run, part=part
            ):
                texts = _evidence(kind, mine, gated)
                yield Overlap(
                    problem.problem_id, gated.problem.problem_id, kind, detail, leak, *texts
                )


def judge_overlaps(
    problem: Problem, gated: Problem, kin: Kin, run: tuple[int, float], *, part: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield kind, detail, and whether it is a leak.

    run: the longest common run of words, and the share of the gated statement's words that are in
    such runs. A run is a leak if it covers most of a short statement or half of any statement:
    sentences such as "since the answer may be very large, return it modulo 10^9 + 7" occur in
    hundreds of tasks. part: the problem's statement is nearly all one run, so a part of the task's.
    It does not count if one says "upper" and the other "lower".
    """
    longest, share = run
    if core(problem.statement) == core(gated.statement):
        yield "same statement", "", True
    elif kin.statement >= 0.6 and (kin.same_words or kin.length >= 40 or kin.statement >= 0.7):
        leak = kin.same_words or (kin.length >= 40 and kin.statement >= 0.65)
        yield (
            "near statement",
            f"{kin.statement:.2f}{', the same words' if kin.same_words else ''}",
            leak,
        )
    if part or (longest >= MIN_RUN and share >= 0.25):
        yield (
            "words in a row",
            f"{longest}, {share:.0%} of the statement in such runs",
            (part or share >= 0.5) and not opposed(problem, gated),
        )
    if kin.same_program:
        yield (
            "same solution",
            f"up to names, {kin.size} tokens",
            kin.size >= 40 or kin.statement >= 0.25 or kin.shared_tests > 0,
        )
    elif kin.program >= 0.8 and kin.size >= 80:
        yield (
            "near solution",
            f"{kin.program:.2f} of {kin.size} tokens, statement {kin.statement:.2f}",
            kin.statement >= 0.3,
        )
    if kin.shared_tests >= 2 and kin.tests >= 0.5:
        yield (
            "same tests",
            f"{kin.shared_tests}, {kin.tests:.0%} of the smaller set",
            kin.tests >= 0.65,
        )


def text_of(problem: Problem) -> str:
    """Return a problem's statement, with the comments and docstrings of its solutions, and what
    others than the user say in the earlier turns of its chat.
    """
    said = [found for program in problem.solutions for found in SAID.findall(program)]
    turns = messages(problem.extra.get(TURNS))
    said += [turn["content"] for turn in turns if turn["role"] != "user"]
    return "\n".join([problem.statement, *said])


def run_words(statement: str) -> list[str]:
    """Lower-case words and numbers, without "Write a function to"."""
    return re.findall(r"[^\W_]+", LEAD.sub("", normalize(statement).lower()))


def covered(mine: Sequence[str], theirs: Sequence[str]) -> tuple[int, float]:
    """Return the longest common run of words, and the share of `theirs` that is in common runs.

    A run has RUN words, or all words of a shorter text, but at least MIN_RUN. Runs with few
    different words, as in the rows of a table, do not count.
    """
    size = min(RUN, len(theirs))
    if size < MIN_RUN:
        return 0, 0.0
    known = set(_runs(mine, size))
    inside, longest, streak = set[int](), 0, 0
    for at, run in enumerate(_runs(theirs, size)):
        streak = streak + 1 if run in known and len(set(run)) > size // 2 else 0
        if streak:
            inside.update(range(at, at + size))
            longest = max(longest, size + streak - 1)
    return longest, len(inside) / len(theirs)


def suspects(
    overlaps: Iterable[Overlap], gated: Iterable[Problem], problem_ids: Iterable[str]
) -> dict[str, list[dict[str, str]]]:
    """Return the suspect tasks of each benchmark, by source.

    A task is suspect if one of `problem_ids` resembles it; the entry names the problem and how.
    Every benchmark has a list.
    """
    lists: dict[str, dict[str, Overlap]] = {problem.source: {} for problem in gated}
    source = {problem.problem_id: problem.source for problem in gated}
    ids = set(problem_ids)
    for overlap in sorted(
        overlaps, key=lambda overlap: (overlap.gated_id, overlap.problem_id, overlap.kind)
    ):
        if overlap.problem_id in ids:
            lists[source[overlap.gated_id]].setdefault(overlap.gated_id, overlap)
    return {
        name: [
            {"task": o.gated_id, "problem_id": o.problem_id, "how": f"{o.kind} {o.detail}".strip()}
            for o in tasks.values()
        ]
        for name, tasks in sorted(lists.items())
    }


def _runs(tokens: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1))


def _evidence(kind: str, mine: Traits, theirs: Traits) -> tuple[str, str]:
    if kind == "same tests":
        shared = sorted(mine.tests & theirs.tests)[:5]
        return "\n".join(shared), "\n".join(shared)
    if "solution" in kind:
        return "\n\n".join(mine.problem.solutions[:1]), "\n\n".join(theirs.problem.solutions[:1])
    return text_of(mine.problem), theirs.problem.statement
