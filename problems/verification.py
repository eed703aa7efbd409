"""Verification: a problem is kept when every solution passes its tests and an answer that does nothing fails them.

Resumable: verdicts are appended to a journal, keyed by content hash and flushed to disk once a batch. A pass that is killed redoes at most the
batch in flight; a problem that did not change is not run again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from problems.funnel import Removed, Stage
from problems.limits import Measured, cost, learned, most
from problems.record import ProblemError
from problems.schema import Problem
from sandbox.protocol import Job, Report, Verdict
from sandbox.wire import NotPlain, encode

BROKEN_TESTS = "its tests cannot be run"
ABSENT = "not measured, for want of "  # the packages: the machine is at fault


class Runs(Protocol):
    """A sandbox: one report per job, whatever the programs did."""

    def run(self, jobs: Sequence[Job]) -> Iterable[Report]: ...


class NoVerdict(RuntimeError):
    """The sandbox failed, not the problems: what was decided is in the journal, so run again."""


@dataclass(frozen=True)
class Entry:
    """A line of the journal. `reason` is None for a problem that was kept."""

    content_hash: str
    problem_id: str
    reason: str | None
    detail: str
    isolation: str
    wall_s: float | None = None  # the slowest test of any solution; None in lines from before it was kept
    peak_mb: float | None = None
    cpu_s: float | None = None  # at most what that test took; None in older lines, where the clock stands for it


@dataclass(frozen=True)
class Verified:
    """Every problem is in `kept` or in `removed`, in the order they came. `isolation`: levels under which verdicts were reached.

    `measured`: what the references of those kept took, where it is known, and the limits that follow from it.
    """

    kept: list[Problem]
    removed: list[Removed]
    isolation: tuple[str, ...] = ()
    measured: tuple[Measured, ...] = field(default=(), compare=False)  # a clock's word: no part of what was verified

    @property
    def stage(self) -> Stage:
        return Stage("verified", len(self.kept) + len(self.removed), len(self.kept), tuple(self.removed))


def verify(
    problems: Sequence[Problem], sandbox: Runs, journal: Path, batch_size: int = 256, on_progress: Callable[[int, int], None] | None = None
) -> Verified:
    """Runs what the journal does not know yet, `batch_size` problems at a time; `on_progress(done, total)` after each batch.

    A second pass over the same journal waits until the first has ended. Raises NoVerdict when the sandbox itself failed (its own retries included),
    and ProblemError when the journal is broken other than at its torn end.
    """
    hashes = {problem.content_hash: problem for problem in problems}
    with Journal(journal) as book:
        waiting = iter([problem for digest, problem in hashes.items() if digest not in book.entries])
        while batch := list(islice(waiting, batch_size)):
            entries, undecided = _judge(batch, sandbox)
            book.append(entries)
            if undecided:
                raise NoVerdict(
                    f"no verdict for {len(undecided)} of {len(batch)} problems, first {undecided[0]}: see the sandbox's log, then run again"
                )
            if on_progress:
                on_progress(sum(digest in book.entries for digest in hashes), len(hashes))
        found = [book.entries[problem.content_hash] for problem in problems]
    kept = [problem for problem, entry in zip(problems, found, strict=True) if entry.reason is None]
    removed = [Removed(entry.problem_id, entry.reason, entry.detail) for entry in found if entry.reason is not None]
    measured = tuple(row for entry in found if entry.reason is None and (row := _measured(entry)))
    return Verified(kept, removed, tuple(sorted({entry.isolation for entry in found} - {""})), measured)


def _measured(entry: Entry) -> Measured | None:
    if entry.wall_s is None or entry.peak_mb is None:
        return None
    return learned(entry.problem_id, entry.wall_s, entry.wall_s if entry.cpu_s is None else entry.cpu_s, entry.peak_mb)


class Journal:
    """Verdicts on disk, a JSON line each, by content hash. Held by one process at a time; a torn last line is cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}

    def __enter__(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = self.path.open("a+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise ProblemError(f"broken ({error})", "remove the line: its problem is verified again", f"{self.path}: line {number}") from error
            self.entries.setdefault(entry.content_hash, entry)
            whole += len(line)
        self._file.truncate(whole)
        return self

    def append(self, entries: Iterable[Entry]) -> None:
        """All lines in one write, then to disk. A problem for which a package is absent here is not put down: it may be installed."""
        fresh = [entry for entry in entries if entry.content_hash not in self.entries]
        self._file.write(b"".join(json.dumps(asdict(entry)).encode() + b"\n" for entry in fresh if not (entry.reason or "").startswith(ABSENT)))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries.update((entry.content_hash, entry) for entry in fresh)

    def __exit__(self, *_: object) -> None:
        self._file.close()  # gives the lock back


def idle_answer(problem: Problem) -> str:
    """The least a program can do: return None, or print nothing. Tests that accept it decide nothing."""
    name, _, method = (problem.entry_point or "").partition("().")
    if method:
        return f"class {name}:\n    def {method}(*args, **kwargs):\n        return None\n"
    return f"def {name}(*args, **kwargs):\n    return None\n" if name else "pass\n"


def _judge(batch: Sequence[Problem], sandbox: Runs) -> tuple[list[Entry], list[str]]:
    """The entries of a batch, and the ids of those for which the sandbox gave no verdict."""
    jobs, faults = [], [_unfit(problem) for problem in batch]
    for number, problem in enumerate(batch):
        if not faults[number]:
            jobs += [problem.job(source, f"{number}/{which}") for which, source in enumerate([*problem.solutions, idle_answer(problem)])]
    reports = {report.job_id: report for report in sandbox.run(jobs)} if jobs else {}
    entries, undecided = [], []
    for number, problem in enumerate(batch):
        found = [] if faults[number] else [reports[f"{number}/{which}"] for which in range(len(problem.solutions) + 1)]
        fault = faults[number] or _fault(found)
        if fault is None:
            undecided.append(f"{problem.problem_id} ({next(report.detail for report in found if report.verdict is Verdict.INFRA)})")
        else:
            wall_s, cpu_s, peak_mb = most(map(cost, found[:-1])) if found else (None, None, None)
            entries.append(Entry(problem.content_hash, problem.problem_id, *fault, found[0].isolation if found else "", wall_s, peak_mb, cpu_s))
    return entries, undecided


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


def _fault(reports: Sequence[Report]) -> tuple[str | None, str] | None:
    """Reason and detail of what is wrong with a problem; (None, "") when nothing is; None when the sandbox failed.

    reports: one per solution, then the idle answer's.
    """
    *own, idle = reports
    if failed := next((report for report in reports if report.verdict is Verdict.INFRA), None):
        return (ABSENT + ", ".join(failed.absent) if failed.absent else BROKEN_TESTS, failed.detail) if failed.unusable else None
    for which, report in enumerate(own, 1):
        if report.verdict is not Verdict.AC:
            return f"a solution fails its tests ({report.verdict})", f"solution {which} of {len(own)}: {_first_failure(report)}"
    if idle.verdict is Verdict.AC:
        return "tests too weak", "they pass an answer that does nothing"
    return None, ""


def _first_failure(report: Report) -> str:
    number, test = next(((i, test) for i, test in enumerate(report.tests, 1) if test.verdict is not Verdict.AC), (0, None))
    words = f"test {number} of {report.total}: {test.verdict} {test.detail}" if test else report.detail
    return " ".join(words.split())[:300]
