"""Curate the problems that training may see, and record why each other problem was removed.

Removed are gated problems and those that resemble them, problems without an allowed licence, with
secrets or of poor quality, and duplicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from problems.cleaning.compared import compared
from problems.cleaning.contamination import GatedIndex, Overlap, suspects
from problems.cleaning.duplicates import DuplicateGroup, Duplicates, duplicates
from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.cleaning.licences import is_allowed
from problems.cleaning.quality import fault
from problems.cleaning.secrets import secret_in
from problems.cleaning.settings import Curation
from problems.funnel import Removed, Stage
from problems.schema import Problem, refuse_duplicates
from sandbox.sandbox import Sandbox

LicenceCounts = Counter[tuple[str, str]]
OVERLAPS = "overlaps a gated problem"


@dataclass(frozen=True)
class Curated:
    """The result: every problem is in `problems` or in `removed`; the rest is the evidence."""

    problems: list[Problem]
    removed: list[Removed] = field(default_factory=list)
    # leaks, for which a problem was removed, and suspicions
    overlaps: list[Overlap] = field(default_factory=list)
    duplicates: Duplicates = field(default_factory=Duplicates)
    # by benchmark: tasks that a kept problem resembles
    suspects: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        return Stage.counted("curated", len(self.problems), self.removed)


def curate(
    problems: Iterable[Problem],
    gated: Iterable[Problem],
    config: Curation | None = None,
    sandbox: Sandbox | None = None,
    journal: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Curated:
    """Remove problems, in this order of reasons.

    Gated, licence refused, poor, secret, overlapping a gated problem, duplicate. Gated problems
    among `problems` count as `gated` too. All lists are in the order of the ids, independent of the
    input order. sandbox: compares with the gated ones by meaning and behaviour too, with `journal`
    and `on_progress` (see `compared`). Raises ProblemError on an id that occurs twice, NoOutput if
    the sandbox fails.
    """
    config = config or Curation()
    arrived = sorted(problems, key=lambda problem: problem.problem_id)
    refuse_duplicates(arrived, "problems to clean")
    guards = {
        problem.problem_id: problem
        for problem in [*gated, *(problem for problem in arrived if problem.gated)]
    }
    reasons = {
        problem.problem_id: reason for problem in arrived if (reason := own_fault(problem, config))
    }
    rest = [problem for problem in arrived if problem.problem_id not in reasons]
    if sandbox:
        gated, model = list(guards.values()), config.sentence_model
        found = compared(rest, gated, sandbox, model, journal, on_progress)
        overlaps = [overlap for each in found for overlap in each]
    else:
        overlaps = GatedIndex(guards.values()).overlaps(rest, config.processes)
    reasons |= leaking(overlaps, ((problem.problem_id, problem.parents) for problem in rest))
    duplicate_groups = duplicates(
        (problem for problem in rest if problem.problem_id not in reasons), config.processes
    )
    reasons |= {
        removed.problem_id: removed
        for group in duplicate_groups.groups
        for removed in doubled(group)
    }
    passed = [problem for problem in arrived if problem.problem_id not in reasons]
    removed = [reasons[problem.problem_id] for problem in arrived if problem.problem_id in reasons]
    return Curated(
        passed,
        removed,
        overlaps,
        duplicate_groups,
        suspects(overlaps, guards.values(), (problem.problem_id for problem in passed)),
    )


def leaking(
    overlaps: Iterable[Overlap], derived: Iterable[tuple[str, tuple[str, ...]]]
) -> dict[str, Removed]:
    """Return the problems removed for overlapping a gated one, by id.

    The reason is the first leak, or a parent that leaks.
    derived: id and parents of each problem that may be removed.
    """
    reasons: dict[str, Removed] = {}
    for overlap in overlaps:
        if overlap.leak:
            detail = (
                f"{overlap.kind} as {overlap.gated_id} "
                f"{f'({overlap.detail})' if overlap.detail else ''}"
            )
            reasons.setdefault(
                overlap.problem_id, Removed(overlap.problem_id, OVERLAPS, detail.strip())
            )
    children = (
        (problem_id, parent)
        for problem_id, parents in derived
        if (parent := next((parent for parent in parents if parent in reasons), None))
    )
    return {
        child: Removed(child, OVERLAPS, f"made of {parent}, which does")
        for child, parent in children
    } | reasons


def doubled(group: DuplicateGroup) -> list[Removed]:
    """Return the problems removed as duplicates of a kept one."""
    return [
        Removed(
            member.problem_id,
            "duplicate",
            f"{member.how} as {member.like}; {group.kept} is kept: {group.why}",
        )
        for member in group.others
    ]


def licence_counts(problems: Iterable[Problem]) -> LicenceCounts:
    """Return the number of problems of each source and licence, without gated ones."""
    return Counter((problem.source, problem.licence) for problem in problems if not problem.gated)


def licences(counts: LicenceCounts, config: Curation) -> list[tuple[str, str, int, bool]]:
    """Return source, licence, number of problems, and whether the policy allows the licence."""
    return [
        (source, licence, count, is_allowed(licence, config.licences))
        for (source, licence), count in sorted(counts.items())
    ]


def own_fault(problem: Problem, config: Curation) -> Removed | None:
    """Return what is wrong with a problem on its own, independent of the others, else None."""
    if problem.gated or (task := gated_as(problem)):
        task_name = "" if problem.gated else f" ({task})"
        return Removed(
            problem.problem_id,
            "gated",
            f"of a benchmark that is reported{task_name}: for evaluation only",
        )
    if match := known_task(problem):
        detail = f"{match.kind} as {match.task} ({match.detail})"
        return Removed(problem.problem_id, OVERLAPS, detail)
    if not is_allowed(problem.licence, config.licences):
        fix = (
            "name its licence in the row"
            if problem.licence.strip() in ("", "unknown")
            else "allow it in the profile (curation.licences) if you may use it"
        )
        return Removed(problem.problem_id, "licence refused", f"{problem.licence or 'none'}: {fix}")
    if poor := fault(
        problem,
        min_words=config.min_words,
        max_characters=config.max_characters,
        english=config.english,
    ):
        return Removed(problem.problem_id, *poor)
    secret = secret_in(problem)
    return (
        Removed(problem.problem_id, "secret or personal data", f"{secret[0]} in {secret[1]}")
        if secret
        else None
    )


def faulty(problems: Iterable[Problem], config: Curation) -> dict[str, str]:
    """Return the reasons of problems that are removed on their own, by id.

    Nothing is derived from these problems either.
    """
    return {
        problem.problem_id: removed.reason
        for problem in problems
        if (removed := own_fault(problem, config))
    }
