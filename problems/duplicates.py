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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from problems.likeness import Kin, Traits, key, kin, programs, sketch, squeezed, tests
from problems.minhash import alike
from problems.schema import Problem
from problems.syntax import shape

SAME_STATEMENT = "same statement"
SPLIT_ORDER = ("heldout", "validation", "train", "demonstrations")  # of two equal problems the one that judges stays, the one that teaches goes
LEAST_STATEMENT, LEAST_PROGRAM = 0.5, 0.7  # of a signature's rows that agree: two standard errors under what `near_duplicate` asks for


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


def duplicates(problems: Iterable[Problem], processes: int = 1) -> Duplicates:
    """Groups of two and more, by the ids of those kept; the order of the problems does not matter. Ids must be unique.

    Kept is the one whose split comes first in SPLIT_ORDER, then the one with most tests, then with most solutions, then by id.
    """
    ordered = sorted(problems, key=_preference)
    gone = _exact(ordered)
    single = [problem for problem in ordered if problem.problem_id not in gone and "composition" not in problem.extra]
    near, capped, uncompared = _near(single, processes)
    gone |= near
    by_id = {problem.problem_id: problem for problem in ordered}
    members: dict[str, list[Member]] = defaultdict(list)
    for _, member in sorted(gone.items()):
        kept = member.like
        while kept in gone:
            kept = gone[kept].like
        members[kept].append(member)
    why = {kept: _why([by_id[kept], *(by_id[member.problem_id] for member in others)]) for kept, others in members.items()}
    return Duplicates(tuple(Group(kept, why[kept], tuple(members[kept])) for kept in sorted(members)), capped, uncompared)


def related(one: Problem, two: Problem) -> bool:
    """Whether one was made of the other, or both of the same."""
    ours, theirs = ({problem.problem_id, *problem.parents} for problem in (one, two))
    return not ours.isdisjoint(theirs)


def near_duplicate(found: Kin) -> str | None:
    """What makes two problems one although nothing is quite the same, or None. Short statements need the same words: in "the nth square number" and
    "the nth cube number" the one word that differs is all that matters."""
    if found.same_program and found.size >= 40 and found.statement >= 0.25:
        return f"same solution up to names, statement {found.statement:.2f}"
    if found.same_words and found.statement >= 0.6:
        return f"near statement ({found.statement:.2f}), its words the same"
    if found.length >= 40 and (found.statement >= 0.95 or (found.statement >= 0.8 and found.statement + found.program >= 1.5)):
        return f"near statement ({found.statement:.2f}), solution {found.program:.2f}"
    if found.size >= 80 and found.program >= 0.8 and found.statement >= 0.5 and found.tests >= 0.5:
        return f"near solution ({found.program:.2f}), statement {found.statement:.2f}, tests {found.tests:.2f}"
    return None


def _exact(ordered: Sequence[Problem]) -> dict[str, Member]:
    """What goes, by id, each like one that comes before it."""
    statements: dict[int, list[int]] = defaultdict(list)
    tested: dict[int, list[int]] = defaultdict(list)
    for place, problem in enumerate(ordered):
        statements[key(squeezed(problem.statement))].append(place)
        if problem.solutions:
            tested[key("\n".join(sorted(tests(problem) or map(str, problem.tests))))].append(place)
    solved: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for twins in tested.values():
        for place in twins if len(twins) > 1 else ():
            solved[str(twins[0]), *sorted({shape(source) for source in programs(ordered[place])})].append(place)
    root = list(range(len(ordered)))
    like: dict[int, tuple[int, str]] = {}
    for how, buckets in ((SAME_STATEMENT, statements.values()), ("same solutions and tests", solved.values())):
        for bucket in buckets:
            for nth, other in enumerate(bucket):
                strange = (place for place in islice(bucket, nth) if how == SAME_STATEMENT or not related(ordered[place], ordered[other]))
                if (first := next(strange, None)) is not None:
                    like.setdefault(other, (first, how))
                    one, two = sorted((_find(root, first), _find(root, other)))
                    root[two] = one
    ids = [problem.problem_id for problem in ordered]
    gone = {}
    for place, problem_id in enumerate(ids):
        if (kept := _find(root, place)) != place:
            first, how = like.get(place, (kept, "same as others of its group"))
            gone[problem_id] = Member(problem_id, ids[first], how)
    return gone


def _near(ordered: Sequence[Problem], processes: int) -> tuple[dict[str, Member], int, int]:
    """What goes, by id, each like one that is kept; capped buckets; comparisons left out."""
    drawn = sketch(ordered, processes, exact=False)
    by_statement, by_program = alike(drawn.statements, least=LEAST_STATEMENT), alike(drawn.programs, least=LEAST_PROGRAM)
    owners = drawn.program_of[by_program.left], drawn.program_of[by_program.right]
    pairs = {*zip(by_statement.right.tolist(), by_statement.left.tolist(), strict=True), *zip(owners[1].tolist(), owners[0].tolist(), strict=True)}
    traits: dict[int, Traits] = {}
    gone: dict[int, Member] = {}
    for later, earlier in sorted(pairs):
        if later == earlier or later in gone or earlier in gone:
            continue
        one, other = (traits.setdefault(place, Traits(ordered[place])) for place in (earlier, later))
        if related(one.problem, other.problem):
            continue
        if how := near_duplicate(kin(one, other)):
            gone[later] = Member(ordered[later].problem_id, ordered[earlier].problem_id, how)
    found = {member.problem_id: member for member in gone.values()}
    return found, by_statement.capped + by_program.capped, by_statement.uncompared + by_program.uncompared


def _why(group: Sequence[Problem]) -> str:
    """Why the first is kept: the first thing in which it comes before all others."""
    split, tested, solved, _ = zip(*map(_preference, group), strict=True)
    for ranks, reason in ((split, f"of part {group[0].split}"), (tested, "most tests"), (solved, "most solutions")):
        if ranks[0] < min(ranks[1:]):
            return reason
    return "first by id"


def _preference(problem: Problem) -> tuple[int, int, int, str]:
    return SPLIT_ORDER.index(problem.split), -len(problem.tests), -len(problem.solutions), problem.problem_id


def _find(root: list[int], place: int) -> int:
    while root[place] != place:
        root[place] = place = root[root[place]]
    return place
