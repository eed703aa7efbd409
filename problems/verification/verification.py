"""Verify problems: solutions must pass the tests; an idle program and mutants must fail them.

Resumable: verdicts are appended to a journal, keyed by content hash and flushed to disk once per
batch of a few seconds. A pass that is killed repeats at most the batch in flight, and an unchanged
problem is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import monotonic

from problems.encoding import dumps, loads
from problems.funnel import Removed, Stage
from problems.schema import Problem
from problems.verification.journal import Journal, JournalEntry
from problems.verification.limits import Measured, measurement
from problems.verification.problem_check import (
    TOO_WEAK,
    NoVerdict,
    ProblemCheck,
    judges,
    needs_strength,
    references,
)
from problems.verification.settings import Verification
from problems.verification.strength import Strength
from problems.verification.verification_batch import check_batch
from sandbox.sandbox import Runs

BATCH_S = 5.0  # seconds that a batch should take
FIRST_BATCH, MIN_BATCH = 8, 2  # problems


@dataclass(frozen=True)
class VerifiedProblems:
    """The result: every problem is in `problems` or in `removed`, in the order of the input.

    isolation: levels under which verdicts were reached. strength: of the tests of every problem
    whose solutions pass and whose tests judge completions. measured: the known cost of the
    references of kept problems, and the limits that follow from it.
    """

    problems: list[Problem]
    removed: list[Removed]
    isolation: tuple[str, ...] = ()
    strength: tuple[Strength, ...] = ()
    # Measured times are not part of what was verified.
    measured: tuple[Measured, ...] = field(default=(), compare=False)

    @property
    def stage(self) -> Stage:
        return Stage.counted("verified", len(self.problems), self.removed)


def verify(
    problems: Sequence[Problem],
    sandbox: Runs,
    journal: Path,
    config: Verification | None = None,
    batch_size: int = 256,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> VerifiedProblems:
    """Run what is not in the journal yet, at most `batch_size` problems at a time.

    Calls `on_progress(done, total)` at first and after each batch of about BATCH_S seconds. A
    second pass over the same journal waits until the first has ended. Raises NoVerdict when the
    sandbox itself failed (after its own retries), and ProblemError when the journal is broken other
    than at its torn end.
    """
    config = config or Verification()
    # computed once, because hashing is expensive
    digests = [problem.content_hash for problem in problems]
    hashes = dict(zip(digests, problems, strict=True))
    with Journal(journal, config.how) as journal_file:
        pending = [(key, each) for key, each in hashes.items() if key not in journal_file.entries]
        done, size, rest = len(hashes) - len(pending), FIRST_BATCH, iter(pending)
        on_progress(done, len(hashes))
        while batch := list(islice(rest, min(size, batch_size))):
            started = monotonic()
            _verify_batch(batch, sandbox, journal_file, config)
            size = max(MIN_BATCH, int(len(batch) * BATCH_S / (monotonic() - started)))
            done += len(batch)
            on_progress(done, len(hashes))
        entries = [journal_file.entries[digest] for digest in digests]
    return _result(problems, entries)


def _verify_batch(
    batch: Sequence[tuple[str, Problem]], sandbox: Runs, journal: Journal, config: Verification
) -> None:
    """Run a batch of problems by hash, and append the verdicts to the journal. Raises NoVerdict."""
    problems = [problem for _, problem in batch]
    checks = check_batch(problems, sandbox, config.repeats, config.mutants, config.agreement)
    journal.append(
        _entry(digest, check, config)
        for (digest, _), check in zip(batch, checks, strict=True)
        if not check.undecided
    )
    if undecided := [check for check in checks if check.undecided]:
        first = undecided[0]
        raise NoVerdict(
            f"no verdict for {len(undecided)} of {len(checks)} problems, first "
            f"{first.problem.problem_id} ({first.undecided}): see the sandbox's log, then run again"
        )


def _result(problems: Sequence[Problem], entries: Sequence[JournalEntry]) -> VerifiedProblems:
    """Return the result of the problems with these entries, in their order."""
    decided = list(zip(problems, entries, strict=True))
    return VerifiedProblems(
        [_changed(problem, entry) for problem, entry in decided if entry.reason is None],
        [
            Removed(problem.problem_id, entry.reason, entry.detail)
            for problem, entry in decided
            if entry.reason is not None
        ],
        tuple(sorted({entry.isolation for entry in entries} - {""})),
        tuple(
            _strength(_changed(problem, entry), entry)
            for problem, entry in decided
            if judges(problem) and entry.reason in (None, TOO_WEAK)
        ),
        tuple(row for entry in entries if entry.reason is None and (row := _measured(entry))),
    )


def _entry(digest: str, check: ProblemCheck, config: Verification) -> JournalEntry:
    problem, killed = check.problem, check.decided - len(check.survivors)
    reason, detail = check.fault or (None, "")
    names = tuple(mutant.name for mutant in check.survivors)
    if check.sound and needs_strength(problem) and killed < config.threshold * check.decided:
        alone = " (one reference, so no test was added)" if len(references(problem)) == 1 else ""
        reason, detail = (
            TOO_WEAK,
            f"{len(names)} of {check.decided} broken solutions pass{alone}: {'; '.join(names)}"[
                :300
            ],
        )
    isolation = check.own[0].isolation if check.own else ""
    wall_s, cpu_s, peak_mb = check.cost if check.own else (None, None, None)
    return JournalEntry(
        content_hash=digest,
        problem_id=problem.problem_id,
        reason=reason,
        detail=detail,
        isolation=isolation,
        wall_s=wall_s,
        peak_mb=peak_mb,
        cpu_s=cpu_s,
        how=config.how,
        mutants=check.decided,
        killed=killed,
        survivors=names,
        added=tuple(map(dumps, check.added)),
        dropped=check.dropped,
        equivalent=check.equivalent,
        solved=check.solved,
        agreement=check.agreement,
    )


def _changed(problem: Problem, entry: JournalEntry) -> Problem:
    """Append the added tests, leave out wrong solutions, and take samples as solutions.

    Added tests come last, where no test is shown in the statement.
    """
    if entry.agreement is not None:
        marks = {"verified_by": "solver", "agreement": entry.agreement}
        solutions = tuple(problem.samples[at] for at in entry.solved)
        problem = replace(problem, solutions=solutions, extra=problem.extra | marks)
    added = tuple(map(loads, entry.added))
    notes: dict[str, object] = {"added_tests": len(added)} if added else {}
    if entry.dropped:
        notes["dropped_solutions"] = [which + 1 for which in entry.dropped]
    solutions = tuple(
        solution for which, solution in enumerate(problem.solutions) if which not in entry.dropped
    )
    return (
        replace(
            problem, tests=problem.tests + added, solutions=solutions, extra=problem.extra | notes
        )
        if notes
        else problem
    )


def _strength(problem: Problem, entry: JournalEntry) -> Strength:
    return Strength(
        problem_id=problem.problem_id,
        source=problem.source,
        trainable=not problem.gated,
        kept=entry.reason is None,
        references=len(references(problem)),
        mutants=entry.mutants,
        killed=entry.killed,
        survivors=entry.survivors,
        added_tests=len(entry.added),
        equivalent=entry.equivalent,
    )


def _measured(entry: JournalEntry) -> Measured | None:
    if entry.wall_s is None or entry.cpu_s is None or entry.peak_mb is None:
        return None
    return measurement(entry.problem_id, entry.wall_s, entry.cpu_s, entry.peak_mb)
