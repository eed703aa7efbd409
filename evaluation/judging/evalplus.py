"""HumanEval+ and MBPP+ as evalplus 0.3.1 judges them: base inputs, then plus inputs, each in one
process; the canonical solution is the reference.

In: the tasks' rows. Out: a harness, with the expected results of each task. As upstream: empty
namespace, swallowed output, alarms (plus_task.py), a limit of 4 GB, its special comparisons.
Different: an alarm counts CPU time (ten times as much wall time), so that a busy machine fails no
completion. The verdict is decided outside the program's process, so that it cannot be forged. Plus
inputs run only if the base inputs pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from artifacts.json_lines import JsonLines
from evaluation.completions import Completion
from evaluation.judging import plus_program
from evaluation.judging.failure_kinds import ProgramFault, fault
from evaluation.judging.harness import Harness
from evaluation.judging.plus_task import MEMORY_MB, SETS, Expected, PlusTask, source_text
from evaluation.judging.sanitize import sanitize
from evaluation.sampling import Progress
from problems.columns import ProblemError
from problems.encoding import decode, dumps, encode
from problems.reading.source import Row
from problems.schema import Problem
from problems.verification.outputs import TOO_LONG, Output, OutputRequest, outputs
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import Runs

VERSION = "2"
REFERENCE_S = 240.0  # CPU time of the canonical solution on one set of inputs
REPEATS = 2  # further runs of a slow canonical solution
TOGETHER = 8  # canonical solutions run in one batch
PIECE = 32  # inputs in one job where each result is reported


def expectations(tasks: Sequence[PlusTask], sandbox: Runs) -> dict[str, dict[str, Expected]]:
    """Return the canonical solutions' results, by task and set. Raises ProblemError for one that
    fails on its own inputs.

    A slow one runs again, alone, and its least CPU times count: load makes a run slower, never
    faster. They are cached because all models must be judged by the same limits.
    """
    requests = [(task, which) for task in tasks for which in SETS]
    output_requests = [
        _request(
            task, task.call(task.canonical, task.texts[which], limits=REFERENCE_S, reference=True)
        )
        for task, which in requests
    ]
    expected: dict[str, dict[str, Expected]] = {task.task_id: {} for task in tasks}
    for (task, which), request, (output,) in zip(
        requests, output_requests, outputs(output_requests, sandbox), strict=True
    ):
        digest, floats, slow, whole_s = _value(output, task, which)
        for _ in range(REPEATS if slow else 0):
            [[again]] = outputs([request], sandbox)
            _, _, slow_again, whole_again = _value(again, task, which)
            slow = {at: min(seconds, slow_again.get(at, 0.0)) for at, seconds in slow.items()}
            whole_s = min(whole_s, whole_again)
        exact = not (floats or task.atol or task.oracle)
        expected[task.task_id][which] = Expected(
            digest, None if exact else _results(task, which, sandbox), slow, whole_s
        )
    return expected


def _request(task: PlusTask, call: dict[str, Any]) -> OutputRequest:
    limits = Limits(
        wall_s=plus_program.LOAD * REFERENCE_S,
        cpu_s=REFERENCE_S,
        memory_mb=2 * MEMORY_MB,
        output_kb=64 * 1024,
    )
    problem = Problem(task.task_id, "canonical", "", "call", (), "run", limits=limits)
    return OutputRequest(problem, source_text("plus_program.py"), [call])


def _results(task: PlusTask, which: str, sandbox: Runs) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return each result of the canonical solution, computed in pieces, because a report is short;
    a piece that is too long is halved.
    """
    inputs, results = list(task.inputs[which]), dict[int, list[Any]]()
    waiting = [(at, min(at + PIECE, len(inputs))) for at in range(0, len(inputs), PIECE)]
    while waiting:
        pieces = [
            task.call(
                task.canonical,
                dumps([list(one) for one in inputs[a:b]]),
                limits=REFERENCE_S,
                whole=True,
                reference=True,
            )
            for a, b in waiting
        ]
        piece_outputs: list[Output] = [
            one for (one,) in outputs([_request(task, piece) for piece in pieces], sandbox)
        ]
        again = []
        for (a, b), output in zip(waiting, piece_outputs, strict=True):
            if output.fault == TOO_LONG and b - a > 1:
                again += [(a, (a + b) // 2), ((a + b) // 2, b)]
            else:
                results |= dict(zip(range(a, b), _value(output, task, which), strict=True))
        waiting = again
    return tuple(
        (kind, digest, value, _floats(kind, value))
        for _, (kind, digest, value) in sorted(results.items())
    )


def _value(output: Output, task: PlusTask, which: str) -> Any:
    if output.fault:
        raise ProblemError(
            f"the canonical solution fails on the {which} inputs: {output.fault}",
            "is the file whole?",
            task.task_id,
        )
    return output.value


def _floats(kind: str, value: Any) -> bool:
    return kind in ("float", "list", "tuple") and plus_program.is_floats(value)


def verdict_of(report: Report) -> tuple[str, str]:
    """Return verdict and reason of a report. The alarm and invalid Python are exceptions in the
    program's process.
    """
    verdict, detail = report.verdict, report.tests[0].detail if report.tests else report.detail
    if detail.startswith("raised TimeoutException"):
        return Verdict.TLE.value, "over its time on one input"
    if detail.startswith(("raised SyntaxError", "raised IndentationError", "raised TabError")):
        return Verdict.CE.value, detail.removeprefix("raised ")
    return (
        verdict.value,
        "another result than the canonical solution's" if verdict is Verdict.WA else detail,
    )


@dataclass(frozen=True)
class PlusHarness(Harness):
    """Judges completions as evalplus does.

    `cache_file`: the canonical solutions' results, by task; each is computed once.
    """

    cache_file: Path | None = None
    expected: dict[str, dict[str, Expected]] = field(default_factory=dict)

    def program(self, task: PlusTask, completion: Completion, sanitized: bool) -> str:
        text = (
            completion.text
            if completion.whole
            else f"{task.prompt}{chr(10) * sanitized}{completion.text}"
        )
        return sanitize(text, task.entry_point) if sanitized else text

    def prepare(self, tasks: Sequence[PlusTask], sandbox: Runs, on_progress: Progress) -> None:
        """Compute the canonical solutions' results that are not cached."""
        file = JsonLines(self.cache_file) if self.cache_file else None
        known: dict[str, dict[str, Any]] = {}
        if file:
            file.open(
                lambda row: known.update({row["task"]: row["expected"]}),
                "remove the file: its results are computed again",
            )
        for task in tasks:
            if cached := known.get(f"{self.code_hash} {task.content}"):
                self.expected[task.task_id] = {
                    which: _expected(decode(each)) for which, each in cached.items()
                }
        lacking = [task for task in tasks if task.task_id not in self.expected]
        for at in range(0, len(lacking), TOGETHER):
            on_progress(at, len(lacking))
            some = lacking[at : at + TOGETHER]
            self.expected.update(expected := expectations(some, sandbox))
            if file:
                rows = ((task.content, expected[task.task_id].items()) for task in some)
                file.append(
                    {
                        "task": f"{self.code_hash} {content}",
                        "expected": {which: encode(asdict(each)) for which, each in sets},
                    }
                    for content, sets in rows
                )
        on_progress(len(lacking), len(lacking))
        if file:
            file.close()

    def references(self, task: PlusTask) -> Sequence[str]:
        """Return nothing: the canonical solution's results are the expected ones."""
        return ()

    def job(self, task: PlusTask, which: str, program: str, job_id: str) -> Job:
        return task.job(job_id, program, which, self.expected[task.task_id][which])

    def verdict(self, report: Report) -> tuple[str, str]:
        return verdict_of(report)

    def fault(self, report: Report) -> ProgramFault:
        """Return the exception alone: all inputs of a set are one test, so it has no number."""
        return ProgramFault(0, fault(report).raised)


def _expected(row: dict[str, Any]) -> Expected:
    outputs = row["outputs"]
    return Expected(
        row["digest"],
        None if outputs is None else tuple(map(tuple, outputs)),
        row["slow"],
        row["whole_s"],
    )


def plus_harness(
    name: str,
    source: str,
    rows: Iterable[tuple[str, Row]],
    task: Callable[[Row, str], PlusTask],
    *,
    digest: str,
    home: Path,
    releases: Mapping[int, str] | None = None,
    upstream: str = "evalplus 0.3.1",
) -> PlusHarness:
    """Return the harness over EvalPlus's rows. `releases`: names of releases by number of tasks.
    upstream: the release whose rules `task` follows; each has a cache of reference results.
    """
    tasks = {each.task_id: each for each in (task(row, where) for where, row in rows)}
    return PlusHarness(
        name=name,
        version=VERSION,
        upstream=upstream,
        tasks=tasks,
        release=(releases or {}).get(len(tasks), "") or digest,
        source=source,
        sets=SETS,
        cache_file=home / "benchmarks" / f"{source if name[-1] == '+' else name}.expected.jsonl",
    )
