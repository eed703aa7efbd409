"""Find groups of equal or nearly equal problems, with the one to keep and the evidence.

Exact duplicates have the same statement except for case and layout, or the same solutions and the
same tests, whatever the names, the order and the wording.

Near duplicates are proposed by MinHash and confirmed by an exact comparison (`near_duplicate`). A
near duplicate must resemble the problem that is kept, not just one that is removed too. Otherwise a
chain of small changes could end with problems that have nothing in common.

A generator that composes problems from parts writes statements and programs that look like near
duplicates but are not: their tests and outputs differ. So a problem with `extra.composition` is
compared exactly only. A problem derived from others (`extra.parents`) is similar to them on
purpose. It is compared with its parents, and with other problems derived from the same parents, by
statement only. It is compared in full with all other problems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.minhash import Hashes, alike
from problems.cleaning.similarity import (
    MIN_PROGRAM,
    MIN_STATEMENT,
    Kin,
    Traits,
    core,
    key,
    kin,
    programs,
    tests,
)
from problems.cleaning.sketch import Sketched, sketch
from problems.production import is_production
from problems.schema import Problem
from problems.syntax import shape

T_co = TypeVar("T_co", covariant=True)
Places = NDArray[np.int64]

SAME_STATEMENT = "same statement"
# Of two equal problems, one for evaluation is kept rather than one for training.
SPLIT_ORDER = ("heldout", "validation", "train", "demonstrations")
MAX_TRAITS = 2048  # problems whose compared properties are in memory at once


@dataclass(frozen=True)
class Member:
    """A problem that is removed, and the problem that it duplicates.

    `like` is usually the problem that is kept, otherwise one that was removed for the same reason.
    """

    problem_id: str
    like: str
    how: str  # "same statement", "same solutions and tests", "near statement (0.83) ..."


@dataclass(frozen=True)
class DuplicateGroup:
    """Equal problems: the one that is kept, why, and the others."""

    kept: str  # id; the name of the column in evidence files
    why: str
    others: tuple[Member, ...]


@dataclass(frozen=True)
class Duplicates:
    """The groups of duplicates, and what the search for near duplicates skipped.

    capped: number of overfull buckets; uncompared: number of comparisons skipped.
    """

    groups: tuple[DuplicateGroup, ...] = ()
    capped: int = 0
    uncompared: int = 0


class ByPlace(Protocol[T_co]):
    """Values by place: a list, or a database."""

    def __getitem__(self, place: int, /) -> T_co: ...


class KeepRank(NamedTuple):
    """Decides which of two equal problems is kept: the one with the lower rank."""

    split: int
    # from other problems, or sent by a user of the gateway: originals are preferred
    derived: bool
    tests: int  # negative number of tests
    solutions: int
    problem_id: str


@dataclass(frozen=True)
class Marks:
    """All that is compared exactly of n problems, in a few bytes each.

    Problems with equal marks are equal. Ranks and parents may be looked up in a database.
    """

    ranks: ByPlace[KeepRank]
    statements: Hashes  # (n,)
    # (n,): tests and solutions; 0 without a solution, or if no other problem has the same tests
    solved: Hashes
    composed: NDArray[np.bool_]  # (n,)
    parents: ByPlace[tuple[str, ...]]  # ids of the problems each was derived from

    def related(self, one: int, two: int) -> bool:
        """Return whether one was derived from the other, or both from a common parent."""
        ours, theirs = (
            {self.ranks[place].problem_id, *self.parents[place]} for place in (one, two)
        )
        return not ours.isdisjoint(theirs)


def marks(problems: Sequence[Problem], *, alone: bool = True) -> Marks:
    """Return the marks of the problems, in their order.

    alone: there are no other problems. Then solutions are read only where two problems have the
    same tests.
    """
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
    statements = np.array([key(core(problem.statement)) for problem in problems], np.uint64)
    composed = np.array(["composition" in problem.extra for problem in problems], bool)
    return Marks(
        [rank(problem) for problem in problems],
        statements,
        solved,
        composed,
        [problem.parents for problem in problems],
    )


def rank(problem: Problem) -> KeepRank:
    return KeepRank(
        SPLIT_ORDER.index(problem.split),
        bool(problem.parents) or is_production(problem),
        -len(problem.tests),
        -len(problem.solutions),
        problem.problem_id,
    )


def duplicates(problems: Iterable[Problem], processes: int = 1) -> Duplicates:
    """Return groups of two or more problems. Ids must be unique; the order does not matter.

    Kept is the problem whose split comes first in SPLIT_ORDER; then one not derived from others;
    then the one with most tests; then with most solutions; then the first by id.
    """
    ordered = sorted(problems, key=rank)
    marked = marks(ordered)
    found = find(
        marked,
        lambda places: sketch([ordered[place] for place in places], processes, exact=False),
        lambda places: {place: ordered[place] for place in places},
    )
    return Duplicates(tuple(found.groups(marked)), found.capped, found.uncompared)


@dataclass(frozen=True)
class Found:
    """The duplicates by place: the place that each is like, and how. See `Duplicates`."""

    likes: dict[int, tuple[int, str]]
    capped: int
    uncompared: int

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The places of the problems that are removed, by the one that is kept."""
        members: dict[int, list[int]] = defaultdict(list)
        for place, (first, _) in self.likes.items():
            while first in self.likes:
                first = self.likes[first][0]
            members[first].append(place)
        return members

    def groups(self, marked: Marks) -> Iterator[DuplicateGroup]:
        """Yield the groups by the id of the problem that is kept; members by id."""
        for first in sorted(self.members, key=lambda place: marked.ranks[place].problem_id):
            ranks = {place: marked.ranks[place] for place in self.members[first]}
            others = sorted(ranks, key=lambda place: ranks[place].problem_id)
            yield DuplicateGroup(
                marked.ranks[first].problem_id,
                _why([marked.ranks[first], *ranks.values()]),
                tuple(self._member(place, marked) for place in others),
            )

    def _member(self, place: int, marked: Marks) -> Member:
        like, how = self.likes[place]
        return Member(marked.ranks[place].problem_id, marked.ranks[like].problem_id, how)


def find(
    marked: Marks,
    sketched: Callable[[Places], Sketched],
    read: Callable[[Collection[int]], ByPlace[Problem]],
) -> Found:
    """Find duplicates among problems that need not be in memory.

    marked: in the order of the ranks. sketched: returns the sketch of the problems at the given
    places, in this order. read: returns the few problems that must be compared word by word.
    """
    likes = _exact(marked)
    is_single = ~marked.composed
    is_single[np.fromiter(likes, np.int64, len(likes))] = False
    single = np.flatnonzero(is_single)
    near, capped, uncompared = _near(marked, sketched(single), single, read)
    return Found(likes | near, capped, uncompared)


def near_duplicate(kin: Kin) -> str | None:
    """Return why two problems are near duplicates, or None if they are not.

    Short statements need the same words: in "the nth square number" and "the nth cube number" the
    one word that differs is all that matters.
    """
    if kin.same_program and kin.size >= 40 and kin.statement >= 0.25:
        return f"same solution up to names, statement {kin.statement:.2f}"
    if kin.same_words and kin.statement >= 0.6:
        return f"near statement ({kin.statement:.2f}), its words the same"
    if kin.length >= 40 and (
        kin.statement >= 0.95 or (kin.statement >= 0.8 and kin.statement + kin.program >= 1.5)
    ):
        return f"near statement ({kin.statement:.2f}), solution {kin.program:.2f}"
    if kin.size >= 80 and kin.program >= 0.8 and kin.statement >= 0.5 and kin.tests >= 0.5:
        return (
            f"near solution ({kin.program:.2f}), statement {kin.statement:.2f}, tests "
            f"{kin.tests:.2f}"
        )
    return None


def buckets(keys: Hashes) -> Iterator[list[int]]:
    """Yield the places of each key that occurs more than once, in order; 0 means no key."""
    order = np.argsort(keys, kind="stable")
    ends = np.flatnonzero(np.diff(keys[order], append=~keys[order[-1:]])) + 1
    for start, end in zip(np.concatenate(([0], ends[:-1])).tolist(), ends.tolist(), strict=False):
        if end - start > 1 and keys[order[start]]:
            yield order[start:end].tolist()


def _exact(marked: Marks) -> dict[int, tuple[int, str]]:
    """Return the exact duplicates to remove; each is like one that ranks before it."""
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
    return {
        place: like.get(place, (best, "same as others of its group"))
        for place in sorted(root)
        if (best := _find(root, place)) != place
    }


def _near(
    marked: Marks,
    sketched: Sketched,
    places: Places,
    read: Callable[[Collection[int]], ByPlace[Problem]],
) -> tuple[dict[int, tuple[int, str]], int, int]:
    """Find near duplicates.

    Returns the problems to remove, each like one that is kept; the number of capped buckets; the
    number of comparisons skipped.
    """
    by_statement, by_program = (
        alike(sketched.statements, least=MIN_STATEMENT),
        alike(sketched.programs, least=MIN_PROGRAM),
    )
    owners = sketched.program_of[by_program.left], sketched.program_of[by_program.right]
    later = places[np.concatenate([by_statement.right, np.maximum(*owners)])]
    earlier = places[np.concatenate([by_statement.left, np.minimum(*owners)])]
    pairs = np.unique(np.stack([later, earlier], axis=1)[later != earlier], axis=0)
    problems = read(np.unique(pairs).tolist())
    traits = lru_cache(MAX_TRAITS)(lambda place: Traits(problems[place]))
    removed: dict[int, tuple[int, str]] = {}
    for later_place, earlier_place in map(np.ndarray.tolist, pairs):
        if later_place in removed or earlier_place in removed:
            continue
        if marked.related(earlier_place, later_place):
            continue
        if how := near_duplicate(kin(traits(earlier_place), traits(later_place))):
            removed[later_place] = (earlier_place, how)
    capped, uncompared = (
        by_statement.capped + by_program.capped,
        by_statement.uncompared + by_program.uncompared,
    )
    return removed, capped, uncompared


def _tested(problem: Problem) -> int:
    return key("\n".join(sorted(tests(problem) or map(str, problem.tests))))


def _why(group: Sequence[KeepRank]) -> str:
    """Say why the first is kept: the first criterion in which it ranks before all others."""
    split, derived, tested, solved, _ = zip(*group, strict=True)
    part = f"of part {SPLIT_ORDER[group[0].split]}"
    for ranks, reason in (
        (split, part),
        (derived, "neither made of another nor from production"),
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
