"""Verification: a problem is kept when every solution passes its tests, and an answer that does nothing and broken solutions fail them.

Resumable: verdicts are appended to a journal, keyed by content hash and flushed to disk once a batch. A pass that is killed redoes at most the
batch in flight; a problem that did not change is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from artifacts.hashing import hash_data
from problems.encoding import dumps, loads
from problems.funnel import Removed, Stage
from problems.journal import ABSENT, Entry, Journal
from problems.limits import Measured, cost, learned, most, propose
from problems.mutants import Mutant, mutants
from problems.outputs import NoOutput
from problems.schema import Problem
from problems.strength import Strength
from problems.strengthening import Weak, agreed, strengthen
from problems.syntax import normal_form
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.wire import NotPlain, encode

VERSION = 2  # of what an entry of the journal says: raise it with the rules
BROKEN_TESTS = "its tests cannot be run"
FLICKERS = "verdict flickers"
TOO_WEAK = "tests too weak"
DISAGREE = "references disagree"


class Verification(BaseModel):
    """How hard tests are looked at before a problem may be trained on."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    mutants: NonNegativeInt = 4
    """Broken copies of a problem's first solution that its tests should refuse; demonstrations, whose tests judge nobody, have none."""
    threshold: float = Field(0.5, ge=0, le=1)
    """Least share of the mutants that tests refuse: what may be trained on and stays below is removed, composed problems excepted."""
    repeats: PositiveInt = 2
    """Times that a solution is run; where the verdict flickers, the problem is removed. Composed problems, which are ours, are run once."""

    @property
    def how(self) -> str:
        """A name for these rules, in the journal."""
        return hash_data({"version": VERSION} | self.model_dump(mode="json"))[:12]


class Runs(Protocol):
    """A sandbox: one report per job, whatever the programs did."""

    def run(self, jobs: Sequence[Job], repeat: int = 1) -> Iterable[Report]: ...


class NoVerdict(RuntimeError):
    """The sandbox failed, not the problems: what was decided is in the journal, so run again."""


@dataclass(frozen=True)
class Verified:
    """Every problem is in `kept` or in `removed`, in the order they came. `isolation`: levels under which verdicts were reached.

    strength: of the tests of every problem whose solutions pass and whose tests judge somebody.
    measured: what the references of those kept took, where it is known, and the limits that follow from it.
    """

    kept: list[Problem]
    removed: list[Removed]
    isolation: tuple[str, ...] = ()
    strength: tuple[Strength, ...] = ()
    measured: tuple[Measured, ...] = field(default=(), compare=False)  # a clock's word: no part of what was verified

    @property
    def stage(self) -> Stage:
        return Stage("verified", len(self.kept) + len(self.removed), len(self.kept), tuple(self.removed))


def verify(
    problems: Sequence[Problem],
    sandbox: Runs,
    journal: Path,
    config: Verification | None = None,
    batch_size: int = 256,
    on_progress: Callable[[int, int], None] | None = None,
) -> Verified:
    """Runs what the journal does not know yet, `batch_size` problems at a time; `on_progress(done, total)` after each batch.

    A second pass over the same journal waits until the first has ended. Raises NoVerdict when the sandbox itself failed (its own retries included),
    and ProblemError when the journal is broken other than at its torn end.
    """
    config = config or Verification()
    hashes = {problem.content_hash: problem for problem in problems}
    with Journal(journal, config.how) as book:
        waiting = iter([problem for digest, problem in hashes.items() if digest not in book.entries])
        while batch := list(islice(waiting, batch_size)):
            entries, undecided = _judge(batch, sandbox, config)
            book.append(entries)
            if undecided:
                raise NoVerdict(
                    f"no verdict for {len(undecided)} of {len(batch)} problems, first {undecided[0]}: see the sandbox's log, then run again"
                )
            if on_progress:
                on_progress(sum(digest in book.entries for digest in hashes), len(hashes))
        found = [(problem, book.entries[problem.content_hash]) for problem in problems]
    kept = [_strengthened(problem, entry) for problem, entry in found if entry.reason is None]
    removed = [Removed(problem.problem_id, entry.reason, entry.detail) for problem, entry in found if entry.reason is not None]
    strength = tuple(_strength(problem, entry) for problem, entry in found if judges(problem) and entry.reason in (None, TOO_WEAK))
    measured = tuple(row for _, entry in found if entry.reason is None and (row := _measured(entry)))
    return Verified(kept, removed, tuple(sorted({entry.isolation for _, entry in found} - {""})), strength, measured)


def judges(problem: Problem) -> bool:
    """Whether its tests ever judge an answer."""
    return problem.split != "demonstrations"


def references(problem: Problem) -> list[str]:
    """Its solutions, without those that are another's copy but for layout."""
    return list({normal_form(solution): solution for solution in reversed(problem.solutions)}.values())[::-1]


def _strengthened(problem: Problem, entry: Entry) -> Problem:
    """The tests that were added come last, where none is shown."""
    added = tuple(map(loads, entry.added))
    return replace(problem, tests=problem.tests + added, extra=problem.extra | {"added_tests": len(added)}) if added else problem


def _strength(problem: Problem, entry: Entry) -> Strength:
    return Strength(
        problem.problem_id, problem.source, not problem.gated, entry.reason is None, len(references(problem)), entry.mutants, entry.killed,
        entry.survivors, len(entry.added),
    )  # fmt: skip


def _measured(entry: Entry) -> Measured | None:
    if entry.wall_s is None or entry.peak_mb is None:
        return None
    return learned(entry.problem_id, entry.wall_s, entry.wall_s if entry.cpu_s is None else entry.cpu_s, entry.peak_mb)


def idle_answer(problem: Problem) -> str:
    """The least a program can do: return None, or print nothing. Tests that accept it decide nothing."""
    name, _, method = (problem.entry_point or "").partition("().")
    if method:
        return f"class {name}:\n    def {method}(*args, **kwargs):\n        return None\n"
    return f"def {name}(*args, **kwargs):\n    return None\n" if name else "pass\n"


@dataclass
class Trial:
    """One problem of a batch on its way: `fault` (reason, detail) as soon as something is wrong with it."""

    problem: Problem
    fault: tuple[str, str] | None
    own: list[Report] = field(default_factory=list)  # of its solutions
    undecided: str = ""  # why the sandbox has no verdict
    decided: int = 0  # mutants with a verdict
    survivors: list[Mutant] = field(default_factory=list)
    added: tuple[dict[str, Any], ...] = ()  # tests that refuse what survived before

    @property
    def sound(self) -> bool:
        return not self.fault and not self.undecided

    @property
    def cost(self) -> tuple[float, float, float]:
        return most(map(cost, self.own))

    def entry(self, how: str) -> Entry:
        reason, detail = self.fault or (None, "")
        isolation = self.own[0].isolation if self.own else ""
        wall_s, cpu_s, peak_mb = self.cost if self.own else (None, None, None)
        killed, names = self.decided - len(self.survivors), tuple(mutant.name for mutant in self.survivors)
        return Entry(
            self.problem.content_hash, self.problem.problem_id, reason, detail, isolation, wall_s, peak_mb, cpu_s, how, self.decided, killed, names,
            tuple(map(dumps, self.added)),
        )  # fmt: skip


def _judge(batch: Sequence[Problem], sandbox: Runs, config: Verification) -> tuple[list[Entry], list[str]]:
    """The entries of a batch, and the ids of those for which the sandbox gave no verdict."""
    trials = [Trial(problem, _unfit(problem)) for problem in batch]
    _try_references([trial for trial in trials if trial.sound and composed(trial.problem)], sandbox, 1)
    _try_references([trial for trial in trials if trial.sound and not composed(trial.problem)], sandbox, config.repeats)
    _try_mutants([trial for trial in trials if trial.sound and judges(trial.problem)], sandbox, config.mutants)
    _try_generated([trial for trial in trials if trial.sound and needs_strength(trial.problem)], sandbox)
    for trial in trials:
        if trial.sound and needs_strength(trial.problem) and trial.decided - len(trial.survivors) < config.threshold * trial.decided:
            names = "; ".join(mutant.name for mutant in trial.survivors)
            alone = " (one reference, so none was added)" if len(references(trial.problem)) == 1 else ""
            trial.fault = TOO_WEAK, f"{len(trial.survivors)} of {trial.decided} broken solutions pass{alone}: {names}"[:300]
    undecided = [f"{trial.problem.problem_id} ({trial.undecided})" for trial in trials if trial.undecided]
    return [trial.entry(config.how) for trial in trials if not trial.undecided], undecided


def composed(problem: Problem) -> bool:
    """Of our own operations. One of them may undo another (sorted, then sorted again), and then all its mutants are the same program."""
    return "composition" in problem.extra


def needs_strength(problem: Problem) -> bool:
    """Whether weak tests keep it out: all that is trained on or tuned by, but for compositions, of which a mutant that survives says little."""
    return judges(problem) and not problem.gated and not composed(problem)


def _try_references(trials: Sequence[Trial], sandbox: Runs, repeats: int) -> None:
    """Every solution, and an answer that does nothing where the tests judge anybody."""
    jobs = [
        trial.problem.job(source, f"{at}/{which}")
        for at, trial in enumerate(trials)
        for which, source in enumerate([*trial.problem.solutions, *([idle_answer(trial.problem)] if judges(trial.problem) else [])])
    ]
    reports = {report.job_id: report for report in sandbox.run(jobs, repeat=repeats)} if jobs else {}
    for at, trial in enumerate(trials):
        trial.own = [reports[f"{at}/{which}"] for which in range(len(trial.problem.solutions))]
        everyone = [*trial.own, *([reports[f"{at}/{len(trial.own)}"]] if judges(trial.problem) else [])]
        if failed := next((report for report in everyone if report.verdict is Verdict.INFRA), None):
            if failed.unusable:
                trial.fault = (ABSENT + ", ".join(failed.absent) if failed.absent else BROKEN_TESTS), failed.detail
            else:
                trial.undecided = failed.detail
        else:
            trial.fault = _fault(trial.own) or ((TOO_WEAK, "they pass an answer that does nothing") if _idles(everyone[len(trial.own) :]) else None)


def _idles(reports: Sequence[Report]) -> bool:
    return any(report.verdict is Verdict.AC for report in reports)


def _try_mutants(trials: Sequence[Trial], sandbox: Runs, count: int) -> None:
    """Mutants of the first solution. What the sandbox could not decide counts neither way."""
    made = [mutants(trial.problem.solutions[0], count, trial.problem.entry_point) for trial in trials]
    jobs = [
        replace(trial.problem.job(mutant.source, f"{at}/{which}"), limits=_hurried(trial))
        for at, trial in enumerate(trials)
        for which, mutant in enumerate(made[at])
    ]
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)} if jobs else {}
    for at, trial in enumerate(trials):
        of = [(mutant, verdicts[f"{at}/{which}"]) for which, mutant in enumerate(made[at])]
        trial.decided = sum(verdict is not Verdict.INFRA for _, verdict in of)
        trial.survivors = [mutant for mutant, verdict in of if verdict is Verdict.AC]


def _try_generated(trials: Sequence[Trial], sandbox: Runs) -> None:
    """Inputs of ours: where the references disagree, the problem is ambiguous; where they agree, tests come of it that refuse survivors."""
    try:
        found = agreed([trial.problem for trial in trials], [references(trial.problem) for trial in trials], sandbox)
    except NoOutput as error:
        raise NoVerdict(str(error)) from error
    for trial, said in zip(trials, found, strict=True):
        if said.disagreement:
            trial.fault = DISAGREE, said.disagreement[:300]
    weak = [(trial, said.tests) for trial, said in zip(trials, found, strict=True) if trial.sound and trial.survivors and said.tests]
    of = [Weak(replace(trial.problem, limits=_hurried(trial)), trial.survivors, tests) for trial, tests in weak]
    for (trial, _), (added, left) in zip(weak, strengthen(of, sandbox), strict=True):
        trial.added, trial.survivors = added, left


def _hurried(trial: Trial) -> Limits:
    """The problem's limits, and no more than its solutions showed to be enough: some mutants never end."""
    own, enough = trial.problem.limits, propose(*trial.cost)
    return replace(own, cpu_s=min(own.cpu_s, enough["cpu_s"]), wall_s=min(own.wall_s, enough["wall_s"]))


def _unfit(problem: Problem) -> tuple[str, str] | None:
    """Why a problem cannot even be tried, as reason and detail."""
    if not problem.solutions:
        return "no reference solution", "nothing shows that its tests can be passed"
    try:
        for test in problem.tests if problem.style == "call" else ():
            encode([list(test.get("args", ())), test.get("kwargs") or {}, test["expected"]])
    except NotPlain as error:
        return BROKEN_TESTS, str(error)
    return None


def _fault(own: Sequence[Report]) -> tuple[str, str] | None:
    """Reason and detail of what is wrong with a problem by the word of its solutions."""
    for which, report in enumerate(own, 1):
        if report.flickers:
            return FLICKERS, f"solution {which} of {len(own)}: {', '.join(report.verdicts)}; {_first_failure(report)}"
        if report.verdict is not Verdict.AC:
            return f"a solution fails its tests ({report.verdict})", f"solution {which} of {len(own)}: {_first_failure(report)}"
    return None


def _first_failure(report: Report) -> str:
    number, test = next(((i, test) for i, test in enumerate(report.tests, 1) if test.verdict is not Verdict.AC), (0, None))
    words = f"test {number} of {report.total}: {test.verdict} {test.detail}" if test else report.detail
    return " ".join(words.split())[:300]
