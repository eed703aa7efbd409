"""From completions to verdicts: what is run, in which order, what is cached, and what is retried.

In: a harness, completions, a sandbox, earlier verdicts. Out: a `Judged` for each completion, in
their order.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from evaluation.completions import Completion, Prefer
from evaluation.judging.failure_kinds import Fault, fault
from evaluation.judging.reports import reports
from problems.columns import ProblemError
from problems.json_lines import JsonLines
from rewards.extraction import extract_code
from sandbox.protocol import Job, Report, Verdict

SYNC_S = 1.0  # a machine failure loses at most this much judging time; a kill loses nothing
UNMEASURED = "UNMEASURED"  # the task needs a package that is not here


class Task(Protocol):
    @property
    def task_id(self) -> str: ...
    @property
    def entry_point(self) -> str: ...
    @property
    def prompt(self) -> str:
        """The prompt, as published."""

    @property
    def canonical(self) -> str:
        """The canonical solution; "" if none is published."""

    @property
    def content(self) -> str:
        """Hash of everything that decides a verdict."""


@dataclass(frozen=True)
class Harness(ABC):
    """One benchmark as its own harness judges it. `tasks` by upstream's id; `sets`: test sets that
    a program runs one after another while it passes.
    """

    name: str
    version: str  # of the harness here: raised whenever the same program could get another verdict
    upstream: str  # the harness it agrees with, and its version
    tasks: Mapping[str, Any]
    release: str  # release of the data
    source: str  # name of the tasks' source in problems/sources
    sets: tuple[str, ...] = ("base",)
    prefer: Prefer = "solution"
    packages: tuple[str, ...] = ("numpy",)  # packages that programs may import

    @abstractmethod
    def program(self, task: Any, completion: Completion, sanitized: bool) -> str:
        """Return the program to run for a completion."""

    @abstractmethod
    def job(self, task: Any, which: str, program: str, job_id: str) -> Job:
        """Return the sandbox's job for one program and one set of tests."""

    def named(self, completion: Completion) -> Completion:
        """Return the completion under its task's id here, which may be upstream's (`key`) or ours
        (`source/key`).
        """
        return replace(completion, task_id=self.known_id(completion.task_id))

    def known_id(self, task_id: str) -> str:
        """Return the task's id here; an unknown one is returned unchanged."""
        known = (task_id, task_id.partition("/")[2], f"{self.name}/{task_id}")
        return next((name for name in known if name in self.tasks), task_id)

    def answered(self, task: Any, completion: Completion) -> Completion:
        """Return what is stored of a model's completion before it is judged: of a chat the program,
        of a base model everything.
        """
        return (
            replace(completion, text=extract_code(completion.text))
            if completion.whole
            else completion
        )

    def prepare(self, tasks: Sequence[Any], sandbox: Any, told: Callable[[int, int], None]) -> None:  # noqa: B027  # most need nothing
        """Compute what jobs of these tasks need. told: called with the numbers done and in all."""

    def said(self, report: Report) -> tuple[str, str]:
        """Return a report's verdict, and its reason in words."""
        return (
            (UNMEASURED, f"needs {', '.join(report.absent)}")
            if report.absent
            else (report.verdict.value, report.detail)
        )

    def fault(self, report: Report) -> Fault:
        """Return where the program failed, if known."""
        return fault(report)

    def shown(self, task: Any, test: int) -> str:
        """Return the text of a test (numbered from 1) that the statement shows.

        Return "" for others: hidden tests stay hidden.
        """
        return ""

    def tags(self, task: Any) -> tuple[str, ...]:
        """Return the task's tags, by which scores are split."""
        return ()

    def absent(self, task: Any) -> str:
        """Return why a task cannot be measured on this machine; "" if it can."""
        return ""


class Ruling(NamedTuple):
    """The cached verdict of one program on one set of tests."""

    verdict: str
    detail: str
    seconds: float
    test: int = 0  # number of the first failed test, from 1; 0 if unknown
    raised: str = ""  # type of the exception that ended it
    isolation: str = ""  # its isolation level
    accepted: int = 0  # number of tests that passed
    total: int = 0  # number of tests


@dataclass(frozen=True)
class Judged:
    """The verdict of one completion. `passed`: by set, in their order; a set that was not run
    because an earlier one failed is not passed.
    """

    task_id: str
    sample: int
    passed: Mapping[str, bool | None]  # None: not measured
    verdict: str
    detail: str = ""
    seconds: float = 0.0
    cut: bool = False
    program: str = field(default="", repr=False)
    failed_test: int = 0
    raised: str = ""
    isolation: str = ""
    accepted: int = 0
    total: int = 0

    @property
    def measured(self) -> bool:
        return self.verdict != UNMEASURED

    def row(self) -> dict[str, Any]:
        """Return the row that `--out` writes. A set's value is true only if it and all sets before
        it pass.
        """
        verdict_fields = {
            "verdict": self.verdict,
            "detail": self.detail,
            "seconds": round(self.seconds, 4),
        }
        return {
            "task_id": self.task_id,
            "sample": self.sample,
            **self.passed,
            **verdict_fields,
            **({"cut": True} if self.cut else {}),
        }


class Verdicts:
    """Cache of verdicts: a file of lines in the home, each program's verdict on a set under the
    hash of everything that decides it.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the cache. Raises ProblemError for a broken file."""
        self.known: dict[str, Ruling] = {}
        self._synced = time.monotonic()
        self._file = JsonLines(path) if path else None
        if self._file:
            self._file.open(self._read, "remove the file: everything is judged again then")

    def _read(self, row: dict[str, Any]) -> None:
        fields = {name: row[name] for name in Ruling._fields if name in row}
        self.known[row["key"]] = Ruling(**fields)

    def add(self, key: str, ruling: Ruling) -> None:
        self.known[key] = ruling
        # The missing package may be installed next time, and the machine may be less busy.
        if ruling.verdict in (UNMEASURED, Verdict.TLE):
            return
        if self._file:
            late = time.monotonic() - self._synced > SYNC_S
            self._file.append([{"key": key} | ruling._asdict()], synced=late)
            self._synced = time.monotonic() if late else self._synced

    def close(self) -> None:
        if self._file:
            self._file.sync()
            self._file.close()


def key_of(harness: Harness, task: Task, which: str, program: str) -> str:
    """Return the cache key of a verdict: program, tests, limits and harness."""
    text = "\0".join((harness.name, harness.version, task.content, which, program))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check(harness: Harness, completions: Sequence[Completion], partial: bool) -> list[str]:
    """Return the tasks without completions. Raises ProblemError for completions of unknown tasks
    and, unless `partial`, for missing tasks.
    """
    if strange := sorted({each.task_id for each in completions} - harness.tasks.keys()):
        like = (
            f"{harness.name} {harness.release} has {len(harness.tasks)} tasks like "
            f"{next(iter(harness.tasks))}"
        )
        fix = f"{like}: is this a file of its answers? --data takes another release"
        raise ProblemError(
            f"{len(strange)} tasks are none of its own, the first is {strange[0]}",
            fix,
            harness.name,
        )
    missing = [task for task in harness.tasks if task not in {each.task_id for each in completions}]
    if missing and not partial:
        few = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise ProblemError(
            f"{len(missing)} of {len(harness.tasks)} tasks have no completion ({few})",
            "--allow-partial scores the others",
            harness.name,
        )
    return missing


def judge(
    harness: Harness,
    completions: Sequence[Completion],
    sandbox: Callable[[], AbstractContextManager[Any]],
    verdicts: Verdicts,
    sanitized: bool = False,
    told: Callable[[Sequence[Judged | None]], None] = lambda _: None,
    preparing: Callable[[int, int], None] = lambda done, of: None,
) -> list[Judged]:
    """Return a verdict for each completion. The sandbox is opened only if some verdict is not
    cached.

    told: called on progress, with the verdicts so far. Raises NotJudged if programs stay without a
    verdict.
    """
    rows = [(harness.tasks[each.task_id], each) for each in completions]
    programs = [harness.program(task, each, sanitized) for task, each in rows]
    judged: list[Judged | None] = [
        _decided(harness, rows[at], programs[at], verdicts) for at in range(len(rows))
    ]
    told(judged)
    if None not in judged:
        return [each for each in judged if each is not None]
    with sandbox() as opened:
        needed = {task.task_id: task for at, (task, _) in enumerate(rows) if judged[at] is None}
        harness.prepare(list(needed.values()), opened, preparing)
        for which in harness.sets:
            waiting: dict[str, list[int]] = {}  # key -> completions: equal programs are run once
            for at, (task, _) in enumerate(rows):
                if (
                    judged[at] is None
                    and (key := key_of(harness, task, which, programs[at])) not in verdicts.known
                ):
                    waiting.setdefault(key, []).append(at)
            jobs = {
                key: harness.job(rows[at[0]][0], which, programs[at[0]], key)
                for key, at in waiting.items()
            }
            for key, ruling in _rulings(harness, jobs, opened):
                verdicts.add(key, ruling)
                for at in waiting[key]:
                    judged[at] = _decided(harness, rows[at], programs[at], verdicts)
                told(judged)
            for at in range(len(rows)):
                judged[at] = judged[at] or _decided(harness, rows[at], programs[at], verdicts)
    told(judged)
    return [each for each in judged if each is not None]


def _rulings(
    harness: Harness, jobs: Mapping[str, Job], sandbox: Any
) -> Iterator[tuple[str, Ruling]]:
    """Yield a ruling for each job. One that took too long is judged again alone, after the others:
    on a busy machine a correct program can be late.
    """
    late = []
    for report in reports(jobs, sandbox):
        ruling = _ruling(harness, report)
        if ruling.verdict == Verdict.TLE:
            late.append(report.job_id)
        else:
            yield report.job_id, ruling
    for key in late:
        for report in reports({key: jobs[key]}, sandbox):
            yield key, _ruling(harness, report)


def _ruling(harness: Harness, report: Report) -> Ruling:
    verdict, detail = harness.said(report)
    failed = harness.fault(report) if verdict in (Verdict.WA, Verdict.RE) else Fault()
    return Ruling(
        verdict,
        detail,
        report.wall_s,
        failed.test,
        failed.raised,
        report.isolation,
        report.passed,
        report.total,
    )


def _decided(
    harness: Harness, row: tuple[Any, Completion], program: str, verdicts: Verdicts
) -> Judged | None:
    """Return a completion's verdict from its programs' verdicts; None while one is missing."""
    task, completion = row
    if why := harness.absent(task):
        return Judged(
            completion.task_id,
            completion.sample,
            dict.fromkeys(harness.sets),
            UNMEASURED,
            why,
            0.0,
            completion.cut,
            program,
        )
    passed: dict[str, bool | None] = dict.fromkeys(harness.sets, False)
    ruling, detail, seconds, isolation = Ruling(Verdict.AC.value, "", 0.0), "", 0.0, set[str]()
    for which in harness.sets:
        known = verdicts.known.get(key_of(harness, task, which, program))
        if known is None:
            return None
        ruling, detail = known, known.detail
        seconds += known.seconds
        isolation |= {known.isolation} - {""}
        if known.verdict == UNMEASURED:
            passed = dict.fromkeys(harness.sets)
        if known.verdict != Verdict.AC:
            detail = f"{which}: {detail}" if len(harness.sets) > 1 else detail
            break
        passed[which] = True
    return Judged(
        completion.task_id,
        completion.sample,
        passed,
        ruling.verdict,
        detail,
        seconds,
        completion.cut,
        program,
        ruling.test,
        ruling.raised,
        ", ".join(sorted(isolation)),
        ruling.accepted,
        ruling.total,
    )
