"""What training may see: no gated problem, nothing that overlaps one, no secret, nothing twice. Every removed problem keeps its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from problems.encoding import dumps
from problems.funnel import Removed, Stage
from problems.gating import GatedIndex, Overlap, squeezed
from problems.schema import Problem
from problems.secrets import secret_in
from problems.syntax import normal_form

SPLIT_ORDER = ("heldout", "validation", "train", "demonstrations")  # of two equal problems the one that judges stays, the one that teaches goes


@dataclass(frozen=True)
class Group:
    """Problems that are one and the same: which was kept, and the others with what they share with the kept one or with each other."""

    kept: str
    others: tuple[str, ...]
    same: str  # "statement", "solutions and tests", or both


@dataclass(frozen=True)
class Curated:
    """Every problem is in `kept` or in `removed`; `overlaps` and `groups` are the evidence."""

    kept: list[Problem]
    removed: list[Removed] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    @property
    def stage(self) -> Stage:
        return Stage("curated", len(self.kept) + len(self.removed), len(self.kept), tuple(self.removed))


def curate(problems: Iterable[Problem], gated: Iterable[Problem]) -> Curated:
    """Removes, in this order: gated, holding a secret, overlapping a gated problem, duplicate. Gated ones among `problems` guard too."""
    arrived = list(problems)
    index = GatedIndex([*gated, *(problem for problem in arrived if problem.gated)])
    result, clean = Curated([]), list[Problem]()
    for problem in arrived:
        if problem.gated:
            result.removed.append(Removed(problem.problem_id, "gated", "of a benchmark that is reported: for evaluation only"))
        elif secret := secret_in(problem):
            result.removed.append(Removed(problem.problem_id, "secret or personal data", f"{secret[0]} in {secret[1]}"))
        elif found := list(index.overlaps(problem)):
            detail = f"{found[0].kind} as {found[0].gated_id}" if found[0].kind.startswith("same") else f"{found[0].kind} of {found[0].gated_id}"
            result.removed.append(Removed(problem.problem_id, "overlaps a gated problem", detail))
            result.overlaps.extend(found)
        else:
            clean.append(problem)
    result.groups.extend(duplicates(clean))
    gone = {other: group for group in result.groups for other in group.others}
    for problem in clean:
        if group := gone.get(problem.problem_id):
            result.removed.append(Removed(problem.problem_id, "duplicate", f"same {group.same} as {group.kept}, which is kept"))
        else:
            result.kept.append(problem)
    return result


def duplicates(problems: Iterable[Problem]) -> list[Group]:
    """Groups of two and more with the same statement, or with the same solutions and tests. Ids must be unique.

    Kept is the one whose split comes first in SPLIT_ORDER, then the one with most tests, then with most solutions, then by id.
    """
    by_id = {problem.problem_id: problem for problem in problems}
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, problem in by_id.items():
        alike["statement", squeezed(problem.statement)].append(key)
        if problem.solutions:
            alike["solutions and tests", _program_key(problem)].append(key)
    root = {key: key for key in by_id}
    shared: dict[str, set[str]] = defaultdict(set)
    for (what, _), keys in alike.items():
        for key in keys[1:]:
            root[_find(root, key)] = _find(root, keys[0])
        if len(keys) > 1:
            for key in keys:
                shared[key].add(what)
    members: dict[str, list[Problem]] = defaultdict(list)
    for key in by_id:
        members[_find(root, key)].append(by_id[key])
    groups = []
    for group in members.values():
        if len(group) > 1:
            first, *others = sorted(group, key=_preference)
            same = " or ".join(sorted(set().union(*(shared[problem.problem_id] for problem in group))))
            groups.append(Group(first.problem_id, tuple(problem.problem_id for problem in others), same))
    return groups


def _program_key(problem: Problem) -> str:
    tests = sorted(normal_form(test["source"]) if problem.style == "assert" else dumps(test) for test in problem.tests)
    return dumps([problem.style, sorted(map(normal_form, problem.solutions)), tests])


def _preference(problem: Problem) -> tuple[int, int, int, str]:
    return SPLIT_ORDER.index(problem.split), -len(problem.tests), -len(problem.solutions), problem.problem_id


def _find(root: dict[str, str], key: str) -> str:
    while root[key] != key:
        root[key] = key = root[root[key]]
    return key
