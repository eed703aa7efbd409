"""What occurs twice: groups of problems that are one and the same, or nearly, with the one that is kept and what shows it.

Exact: the same statement but for case and layout; or the same solutions and the same tests, whatever the names, the order and the wording.
Near: what MinHash puts forward and an exact comparison confirms (`near_duplicate`); it must resemble the one that is kept, not just another that
went: a chain of small changes would else end with problems that have nothing in common.

A generator that composes problems of parts writes statements and programs that are near-duplicates by nature, and are not: their tests and answers
differ. So a problem that says what it is composed of (`extra.composition`) is compared exactly alone. What was made of others (`extra.parents`) is
like them on purpose: with its parents and with what was made of the same ones, only the statement counts; with all others it is compared in full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.minhash import Hashes, alike
from problems.cleaning.similarity import (
    Kin,
    Sketch,
    Traits,
    key,
    kin,
    programs,
    sketch,
    squeezed,
    tests,
)
from problems.schema import Problem
from problems.syntax import shape

SAME_STATEMENT = "same statement"
SPLIT_ORDER = (
    "heldout",
    "validation",
    "train",
    "demonstrations",
)  # of two equal problems the one that judges stays, the one that teaches goes
LEAST_STATEMENT, LEAST_PROGRAM = (
    0.5,
    0.7,
)  # of a signature's rows that agree: two standard errors under what `near_duplicate` asks for


@dataclass(frozen=True)
class Member:
    """A problem that goes, and what it shares with which other one: mostly the one that is kept, else one that went for the same reason."""

    problem_id: str
    like: str
    how: str  # "same statement", "same solutions and tests", "near statement (0.83) ..."


@dataclass(frozen=True)
class Group:
    """Problems that are one and the same: which is kept and why, and the others."""

    kept: str
    why: str
    others: tuple[Member, ...]


@dataclass(frozen=True)
class Duplicates:
    """`capped` buckets of the search for near-duplicates were too full; `uncompared` comparisons were left out."""

    groups: tuple[Group, ...] = ()
    capped: int = 0
    uncompared: int = 0


class Rank(NamedTuple):
    """What decides which of two equal problems stays: the one whose rank is lower."""

    split: int
    made: bool  # of other problems: what was there before stays
    tests: int  # how many, less than 0
    solutions: int
    problem_id: str


@dataclass(frozen=True)
class Marks:
    """All that is compared of n problems exactly, a few bytes each: equal marks, equal problems."""

    ranks: list[Rank]
    statements: Hashes  # (n,)
    solved: Hashes  # (n,): tests and solutions; 0 where there is no solution, or no other problem with the same tests
    composed: NDArray[np.bool_]  # (n,)
    parents: list[tuple[str, ...]]  # ids of what each was made of

    def take(self, places: Sequence[int]) -> Marks:
        at = np.array(places, np.int64)
        ranks, parents = (
            [self.ranks[place] for place in places],
            [self.parents[place] for place in places],
        )
        return Marks(ranks, self.statements[at], self.solved[at], self.composed[at], parents)

    def related(self, one: int, two: int) -> bool:
        """Whether one was made of the other, or both of the same."""
        ours, theirs = (
            {self.ranks[place].problem_id, *self.parents[place]} for place in (one, two)
        )
        return not ours.isdisjoint(theirs)


def marks(problems: Sequence[Problem], *, alone: bool = True) -> Marks:
    """In their order; `alone`: there are no other problems, so that solutions need not be read where no two have the same tests."""
    tested = np.array(
        [_tested(problem) if problem.solutions else 0 for problem in problems], np.uint64
    )
    solved = np.zeros(len(problems), np.uint64)
    read = (
        (place for bucket in buckets(tested) for place in bucket)
        if alone
        else np.flatnonzero(tested).tolist()
    )
    for place in read:
        shapes = sorted({shape(source) for source in programs(problems[place])})
        solved[place] = key("\n".join([str(tested[place]), *shapes]))
    statements = np.array([key(squeezed(problem.statement)) for problem in problems], np.uint64)
    composed = np.array(["composition" in problem.extra for problem in problems], bool)
    return Marks(
        [rank(problem) for problem in problems],
        statements,
        solved,
        composed,
        [problem.parents for problem in problems],
    )


def rank(problem: Problem) -> Rank:
    return Rank(
        SPLIT_ORDER.index(problem.split),
        bool(problem.parents),
        -len(problem.tests),
        -len(problem.solutions),
        problem.problem_id,
    )


def duplicates(problems: Iterable[Problem], processes: int = 1) -> Duplicates:
    """Groups of two and more, by the ids of those kept; the order of the problems does not matter. Ids must be unique.

    Kept is the one whose split comes first in SPLIT_ORDER, then one that was not made of others, with most tests, with most
    solutions, then by id.
    """
    ordered = sorted(problems, key=rank)
    return grouped(
        marks(ordered),
        lambda places: sketch([ordered[place] for place in places], processes, exact=False),
        lambda places: {place: ordered[place] for place in places},
    )


def grouped(
    marked: Marks,
    sketched: Callable[[Sequence[int]], Sketch],
    read: Callable[[Collection[int]], Mapping[int, Problem]],
) -> Duplicates:
    """As `duplicates`, of problems that need not be in memory, in the order of their ranks.

    sketched: of the problems at these places, in this order. read: the few problems that are to be compared word by word.
    """
    gone = _exact(marked)
    single = [
        place
        for place, one in enumerate(marked.ranks)
        if one.problem_id not in gone and not marked.composed[place]
    ]
    near, capped, uncompared = _near(marked, sketched(single), single, read)
    gone |= near
    by_id = {one.problem_id: one for one in marked.ranks if one.problem_id in gone}
    members: dict[str, list[Member]] = defaultdict(list)
    for _, member in sorted(gone.items()):
        kept = member.like
        while kept in gone:
            kept = gone[kept].like
        members[kept].append(member)
    by_id |= {one.problem_id: one for one in marked.ranks if one.problem_id in members}
    why = {
        kept: _why([by_id[kept], *(by_id[member.problem_id] for member in others)])
        for kept, others in members.items()
    }
    return Duplicates(
        tuple(Group(kept, why[kept], tuple(members[kept])) for kept in sorted(members)),
        capped,
        uncompared,
    )


def near_duplicate(found: Kin) -> str | None:
    """What makes two problems one although nothing is quite the same, or None. Short statements need the same words: in "the nth square number" and
    "the nth cube number" the one word that differs is all that matters."""
    if found.same_program and found.size >= 40 and found.statement >= 0.25:
        return f"same solution up to names, statement {found.statement:.2f}"
    if found.same_words and found.statement >= 0.6:
        return f"near statement ({found.statement:.2f}), its words the same"
    if found.length >= 40 and (
        found.statement >= 0.95
        or (found.statement >= 0.8 and found.statement + found.program >= 1.5)
    ):
        return f"near statement ({found.statement:.2f}), solution {found.program:.2f}"
    if found.size >= 80 and found.program >= 0.8 and found.statement >= 0.5 and found.tests >= 0.5:
        return f"near solution ({found.program:.2f}), statement {found.statement:.2f}, tests {found.tests:.2f}"
    return None


def buckets(keys: Hashes) -> Iterator[list[int]]:
    """The places of each key that occurs more than once, in order; 0 is no key."""
    order = np.argsort(keys, kind="stable")
    ends = np.flatnonzero(np.diff(keys[order], append=~keys[order[-1:]])) + 1
    for start, end in zip(np.concatenate(([0], ends[:-1])).tolist(), ends.tolist(), strict=False):
        if end - start > 1 and keys[order[start]]:
            yield order[start:end].tolist()


def _exact(marked: Marks) -> dict[str, Member]:
    """What goes, by id, each like one that comes before it."""
    root: dict[int, int] = {}
    like: dict[int, tuple[int, str]] = {}
    for how, keys in (
        (SAME_STATEMENT, marked.statements),
        ("same solutions and tests", marked.solved),
    ):
        for bucket in buckets(keys):
            for nth, other in enumerate(bucket):
                strange = (
                    place
                    for place in islice(bucket, nth)
                    if how == SAME_STATEMENT or not marked.related(place, other)
                )
                if (first := next(strange, None)) is not None:
                    like.setdefault(other, (first, how))
                    one, two = sorted((_find(root, first), _find(root, other)))
                    root[two] = one
    gone = {}
    for place in sorted(root):
        if (kept := _find(root, place)) != place:
            first, how = like.get(place, (kept, "same as others of its group"))
            gone[marked.ranks[place].problem_id] = Member(
                marked.ranks[place].problem_id, marked.ranks[first].problem_id, how
            )
    return gone


def _near(
    marked: Marks,
    drawn: Sketch,
    places: Sequence[int],
    read: Callable[[Collection[int]], Mapping[int, Problem]],
) -> tuple[dict[str, Member], int, int]:
    """What goes, by id, each like one that is kept; capped buckets; comparisons left out."""
    by_statement, by_program = (
        alike(drawn.statements, least=LEAST_STATEMENT),
        alike(drawn.programs, least=LEAST_PROGRAM),
    )
    owners = drawn.program_of[by_program.left], drawn.program_of[by_program.right]
    pairs = {
        *zip(by_statement.right.tolist(), by_statement.left.tolist(), strict=True),
        *zip(owners[1].tolist(), owners[0].tolist(), strict=True),
    }
    pairs = {(later, earlier) for later, earlier in pairs if later != earlier}
    found = read({places[row] for pair in pairs for row in pair})
    traits: dict[int, Traits] = {}
    gone: dict[int, Member] = {}
    for later, earlier in sorted(pairs):
        if later in gone or earlier in gone:
            continue
        if marked.related(places[earlier], places[later]):
            continue
        for row in (earlier, later):
            traits.setdefault(row, Traits(found[places[row]]))
        if how := near_duplicate(kin(traits[earlier], traits[later])):
            gone[later] = Member(
                marked.ranks[places[later]].problem_id,
                marked.ranks[places[earlier]].problem_id,
                how,
            )
    capped, uncompared = (
        by_statement.capped + by_program.capped,
        by_statement.uncompared + by_program.uncompared,
    )
    return {member.problem_id: member for member in gone.values()}, capped, uncompared


def _tested(problem: Problem) -> int:
    return key("\n".join(sorted(tests(problem) or map(str, problem.tests))))


def _why(group: Sequence[Rank]) -> str:
    """Why the first is kept: the first thing in which it comes before all others."""
    split, made, tested, solved, _ = zip(*group, strict=True)
    part = f"of part {SPLIT_ORDER[group[0].split]}"
    for ranks, reason in (
        (split, part),
        (made, "not made of another"),
        (tested, "most tests"),
        (solved, "most solutions"),
    ):
        if ranks[0] < min(ranks[1:]):
            return reason
    return "first by id"


def _find(root: dict[int, int], place: int) -> int:
    while (above := root.get(place, place)) != place:
        root[place] = place = root.get(above, above)
    return place
