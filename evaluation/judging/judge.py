"""From completions to verdicts: what is run, in which order, what is cached, and what is retried.

In: a harness, completions, a sandbox, earlier verdicts. Out: a `CompletionResult` for each
completion, in their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from artifacts.hashing import hash_text
from artifacts.json_lines import JsonLines
from evaluation.completions import Completion
from evaluation.judging.failure_kinds import ProgramFault
from evaluation.judging.harness import UNMEASURED, Harness, Task
from evaluation.judging.reports import reports
from evaluation.sampling import Progress
from problems.columns import ProblemError
from sandbox.protocol import Job, Report, Verdict

SYNC_S = 1.0  # a machine failure loses at most this much judging time; a kill loses nothing


class SetResult(NamedTuple):
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
class CompletionResult:
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
        """Open the cache. Raises CorruptArtifact for a broken file."""
        self.known: dict[str, SetResult] = {}
        self._synced = time.monotonic()
        self._file = JsonLines(path) if path else None
        if self._file:
            self._file.open(self._read, "remove the file: everything is judged again")

    def _read(self, row: dict[str, Any]) -> None:
        fields = {name: row[name] for name in SetResult._fields if name in row}
        self.known[row["key"]] = SetResult(**fields)

    def add(self, key: str, result: SetResult) -> None:
        self.known[key] = result
        # The missing package may be installed next time, and the machine may be less busy.
        if result.verdict in (UNMEASURED, Verdict.TLE):
            return
        if self._file:
            late = time.monotonic() - self._synced > SYNC_S
            self._file.append([{"key": key} | result._asdict()], synced=late)
            self._synced = time.monotonic() if late else self._synced

    def close(self) -> None:
        if self._file:
            self._file.sync()
            self._file.close()


def key_of(harness: Harness, task: Task, which: str, program: str) -> str:
    """Return the cache key of a verdict: program, tests, limits and the harness's code."""
    text = "\0".join((harness.name, harness.code_hash, task.content, which, program))
    return hash_text(text)


def check(harness: Harness, completions: Sequence[Completion], partial: bool) -> list[str]:
    """Return the tasks without completions. Raises ProblemError for completions of unknown tasks
    and, unless `partial`, for missing tasks.
    """
    if unknown := sorted({each.task_id for each in completions} - harness.tasks.keys()):
        raise ProblemError(
            f"{len(unknown)} task ids are unknown, the first is {unknown[0]}",
            f"{harness.name} {harness.release} has {len(harness.tasks)} tasks such as "
            f"{next(iter(harness.tasks))}: give its completions, or another release with --data",
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
    *,
    sanitized: bool = False,
    on_results: Callable[[Sequence[CompletionResult | None]], None] = lambda _: None,
    on_prepare: Progress = lambda done, total: None,
) -> list[CompletionResult]:
    """Return a result for each completion. The sandbox is opened only if some verdict is not
    cached.

    on_results: called with the results so far, None for a missing one. on_prepare: called while the
    harness prepares the tasks. Raises NotJudged if programs stay without a verdict.
    """
    rows = [(harness.tasks[each.task_id], each) for each in completions]
    programs = [harness.program(task, each, sanitized) for task, each in rows]
    results: list[CompletionResult | None] = [
        _result(harness, rows[at], programs[at], verdicts) for at in range(len(rows))
    ]
    on_results(results)
    if None not in results:
        return [each for each in results if each is not None]
    with sandbox() as opened:
        needed = {task.task_id: task for at, (task, _) in enumerate(rows) if results[at] is None}
        harness.prepare(list(needed.values()), opened, on_prepare)
        for which in harness.sets:
            waiting: dict[str, list[int]] = {}  # key -> completions: equal programs are run once
            for at, (task, _) in enumerate(rows):
                if (
                    results[at] is None
                    and (key := key_of(harness, task, which, programs[at])) not in verdicts.known
                ):
                    waiting.setdefault(key, []).append(at)
            jobs = {
                key: harness.job(rows[at[0]][0], which, programs[at[0]], key)
                for key, at in waiting.items()
            }
            for key, result in _set_results(harness, jobs, opened):
                verdicts.add(key, result)
                for at in waiting[key]:
                    results[at] = _result(harness, rows[at], programs[at], verdicts)
                on_results(results)
            for at in range(len(rows)):
                results[at] = results[at] or _result(harness, rows[at], programs[at], verdicts)
    on_results(results)
    return [each for each in results if each is not None]


def _set_results(
    harness: Harness, jobs: Mapping[str, Job], sandbox: Any
) -> Iterator[tuple[str, SetResult]]:
    """Yield a result for each job. A job that took too long runs again alone, after the others: on
    a busy machine a correct program can be late.
    """
    late = []
    for report in reports(jobs, sandbox):
        result = _set_result(harness, report)
        if result.verdict == Verdict.TLE:
            late.append(report.job_id)
        else:
            yield report.job_id, result
    for key in late:
        for report in reports({key: jobs[key]}, sandbox):
            yield key, _set_result(harness, report)


def _set_result(harness: Harness, report: Report) -> SetResult:
    verdict, detail = harness.verdict(report)
    failed = harness.fault(report) if verdict in (Verdict.WA, Verdict.RE) else ProgramFault()
    return SetResult(
        verdict=verdict,
        detail=detail,
        seconds=report.wall_s,
        test=failed.test,
        raised=failed.raised,
        isolation=report.isolation,
        accepted=report.passed,
        total=report.total,
    )


def _result(
    harness: Harness, row: tuple[Any, Completion], program: str, verdicts: Verdicts
) -> CompletionResult | None:
    """Return a completion's result from those of its sets; None while one is missing."""
    task, completion = row
    if why := harness.absent(task):
        return CompletionResult(
            task_id=completion.task_id,
            sample=completion.sample,
            passed=dict.fromkeys(harness.sets),
            verdict=UNMEASURED,
            detail=why,
            seconds=0.0,
            cut=completion.cut,
            program=program,
        )
    passed: dict[str, bool | None] = dict.fromkeys(harness.sets, False)
    result, detail, seconds, isolation = SetResult(Verdict.AC.value, "", 0.0), "", 0.0, set[str]()
    for which in harness.sets:
        known = verdicts.known.get(key_of(harness, task, which, program))
        if known is None:
            return None
        result, detail = known, known.detail
        seconds += known.seconds
        isolation |= {known.isolation} - {""}
        if known.verdict == UNMEASURED:
            passed = dict.fromkeys(harness.sets)
        if known.verdict != Verdict.AC:
            detail = f"{which}: {detail}" if len(harness.sets) > 1 else detail
            break
        passed[which] = True
    return CompletionResult(
        task_id=completion.task_id,
        sample=completion.sample,
        passed=passed,
        verdict=result.verdict,
        detail=detail,
        seconds=seconds,
        cut=completion.cut,
        program=program,
        failed_test=result.test,
        raised=result.raised,
        isolation=", ".join(sorted(isolation)),
        accepted=result.accepted,
        total=result.total,
    )
