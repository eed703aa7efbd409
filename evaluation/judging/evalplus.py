"""HumanEval+ and MBPP+ as evalplus 0.3.1 judges them: base inputs, then plus inputs, each in one
process; the canonical solution is the reference.

In: rows of `HumanEvalPlus.jsonl` or `MbppPlus.jsonl`, of any release. Out: a job for each sample
and input set, and the meaning of its report. As upstream: empty namespace, swallowed output, an
alarm of max(1 s, 4 times the canonical solution's time) for each call and of min(60 s, their sum) +
2 s for all, a limit of 4 GB, its special comparisons.
Different: an alarm counts CPU time (three times as much wall time), so that a busy machine fails no
completion. The verdict is decided outside the program's process, so that it cannot be forged. Plus
inputs run only if the base inputs pass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.completions import Completion
from evaluation.judging import plus_program
from evaluation.judging.failure_kinds import Fault, fault
from evaluation.judging.harness import Harness
from evaluation.judging.sanitize import sanitize
from evaluation.sampling import Progress
from problems.columns import ProblemError
from problems.encoding import decode, dumps, encode
from problems.json_lines import JsonLines
from problems.schema import Problem
from problems.sources.mbppplus import RESTORE
from problems.sources.source import Row, text
from problems.verification.outputs import TOO_LONG, Output, OutputRequest, Runs, outputs
from sandbox.protocol import CallTest, Job, Limits, Report, Verdict

SETS = ("base", "plus")
VERSION = "2"  # raised whenever the same program could get another verdict
MIN_S, FACTOR, MOST_S, GRACE_S = 1.0, 4.0, 60.0, 2.0
MEMORY_MB = 4096
REFERENCE_S = 240.0  # CPU time of the canonical solution on one set of inputs
TOGETHER = 8  # canonical solutions run in one batch
PIECE = 32  # inputs in one job where each result is reported
VIEWS = {
    **dict.fromkeys(
        (
            "similar_elements",
            "find_char_long",
            "common_in_nested_lists",
            "extract_singly",
            "larg_nnum",
            "intersection_array",
            "find_dissimilar",
            "Diff",
        ),
        "set",
    ),
    **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), "not none"),
    "are_equivalent": "any",
}
ORACLES = {  # MBPP's; HumanEval has find_zero: "root"
    "sum_div": "or zero",
    "surface_Area": "surface",
    "digit_distance_nums": "digits",
}


@dataclass(frozen=True)
class Expected:
    """The canonical solution's results for one set of inputs: one digest, or each result if a
    tolerance or an oracle may decide.
    """

    digest: str
    # For each input: type, digest, numbers, whether made of floats.
    outputs: tuple[tuple[str, str, Any, bool], ...] | None
    slow: dict[str, float]  # input -> seconds, for inputs over 0.2 s
    whole_s: float  # CPU time for all inputs and their digests


@dataclass(frozen=True)
class PlusTask:
    task_id: str
    prompt: str
    entry_point: str
    canonical: str
    atol: float
    inputs: Mapping[str, Sequence[Sequence[Any]]]  # base, plus
    view: str
    oracle: str
    content: str  # sha256 of the row, which decides every verdict

    @property
    def texts(self) -> Mapping[str, str]:
        return _texts(id(self), self)

    def arguments(
        self, code: str, which: str, limits: float | list[float], whole: bool, reference: bool
    ) -> tuple[Any, ...]:
        return code, self.entry_point, self.texts[which], limits, self.view, whole, reference

    def job(self, job_id: str, program: str, which: str, expected: Expected) -> Job:
        """Return the job that checks `program` on the base or the plus inputs."""
        each = [
            max(MIN_S, FACTOR * expected.slow.get(str(at), 0.0))
            for at in range(len(self.inputs[which]))
        ]
        most = min(MOST_S, sum(each)) + GRACE_S
        most += 2 * expected.whole_s  # upstream compares faster than a digest is made
        limits = Limits(
            wall_s=plus_program.LOAD * most, cpu_s=most, memory_mb=MEMORY_MB, output_kb=64 * 1024
        )
        whole = expected.outputs is not None
        want: Any = (
            {"outputs": list(expected.outputs), "atol": self.atol, "oracle": self.oracle}
            if expected.outputs is not None
            else expected.digest
        )
        call = CallTest(
            self.arguments(
                program, which, MIN_S if max(each, default=MIN_S) == MIN_S else each, whole, False
            ),
            {},
            want,
        )
        checker = _source("plus_check.py") if whole else None
        return Job(
            job_id,
            _source("plus_program.py"),
            "call",
            (call,),
            "run",
            limits=limits,
            checker=checker,
        )


@cache
def _source(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


_INPUT_TEXTS: dict[int, tuple[PlusTask, dict[str, str]]] = {}


def _texts(key: int, task: PlusTask) -> dict[str, str]:
    """Return the inputs as JSON text, made once per task."""
    if key not in _INPUT_TEXTS or _INPUT_TEXTS[key][0] is not task:
        texts = {
            which: dumps([list(arguments) for arguments in task.inputs[which]]) for which in SETS
        }
        _INPUT_TEXTS[key] = (task, texts)
    return _INPUT_TEXTS[key][1]


def humaneval_task(row: Row, where: str) -> PlusTask:
    return _task(row, where, lambda inputs: inputs, {}, {"find_zero": "root"})


def mbpp_task(row: Row, where: str, exact: Collection[str] = ()) -> PlusTask:
    """Return a task of MBPP+. exact: functions whose results are compared exactly, not as sets."""
    number = int(text(row, "task_id", where).rsplit("/", 1)[-1])
    restore = _sets if number == 115 else RESTORE.get(number)
    return _task(
        row,
        where,
        lambda inputs: [restore(arguments) for arguments in inputs] if restore else inputs,
        {name: view for name, view in VIEWS.items() if name not in exact},
        ORACLES,
    )


def _sets(arguments: list[Any]) -> list[Any]:
    """Return the input of Mbpp/115, a list of sets; empty ones become dicts, as upstream."""
    return [[set(item) if isinstance(item, list) and item else {} for item in arguments[0]]]


def _task(
    row: Row, where: str, restore: Any, views: Mapping[str, str], oracles: Mapping[str, str]
) -> PlusTask:
    inputs = {}
    for which in SETS:
        rows = row.get(f"{which}_input") or []
        if not isinstance(rows, list) or not all(isinstance(each, list) for each in rows):
            raise ProblemError(
                f"key '{which}_input' is no list of argument lists", "fetch the file again", where
            )
        inputs[which] = restore(rows)
    if not inputs["base"]:
        raise ProblemError("no base inputs", "is this a file of evalplus?", where)
    name, prompt = text(row, "entry_point", where), text(row, "prompt", where)
    canonical = prompt + text(row, "canonical_solution", where)
    atol = float(row.get("atol") or 0)
    return PlusTask(
        text(row, "task_id", where),
        prompt,
        name,
        canonical,
        atol,
        inputs,
        views.get(name, "all"),
        oracles.get(name, ""),
        _hash(row),
    )


def _hash(row: Row) -> str:
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()


def expectations(tasks: Sequence[PlusTask], sandbox: Runs) -> dict[str, dict[str, Expected]]:
    """Return the canonical solutions' results, by task and set. Raises ProblemError for one that
    fails on its own inputs.
    """
    requests = [(task, which) for task in tasks for which in SETS]
    output_requests = [
        _request(task, task.arguments(task.canonical, which, REFERENCE_S, False, True))
        for task, which in requests
    ]
    expected: dict[str, dict[str, Expected]] = {task.task_id: {} for task in tasks}
    for (task, which), (output,) in zip(requests, outputs(output_requests, sandbox), strict=True):
        if output.fault:
            raise ProblemError(
                f"the canonical solution fails on the {which} inputs: {output.fault}",
                "is the file whole?",
                task.task_id,
            )
        digest, floats, slow, whole_s = output.value
        exact = not (floats or task.atol or task.oracle)
        expected[task.task_id][which] = Expected(
            digest, None if exact else _results(task, which, sandbox), slow, whole_s
        )
    return expected


def _request(task: PlusTask, arguments: tuple[Any, ...]) -> OutputRequest:
    limits = Limits(
        wall_s=plus_program.LOAD * REFERENCE_S,
        cpu_s=REFERENCE_S,
        memory_mb=2 * MEMORY_MB,
        output_kb=64 * 1024,
    )
    problem = Problem(task.task_id, "canonical", "", "call", (), "run", limits=limits)
    return OutputRequest(problem, _source("plus_program.py"), [{"args": arguments}])


def _results(task: PlusTask, which: str, sandbox: Runs) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return each result of the canonical solution, computed in pieces, because a report is short;
    a piece that is too long is halved.
    """
    inputs, results = list(task.inputs[which]), dict[int, list[Any]]()
    waiting = [(at, min(at + PIECE, len(inputs))) for at in range(0, len(inputs), PIECE)]
    while waiting:
        pieces = [
            (
                task.canonical,
                task.entry_point,
                dumps([list(one) for one in inputs[a:b]]),
                REFERENCE_S,
                task.view,
                True,
                True,
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
            elif output.fault:
                raise ProblemError(
                    f"the canonical solution fails on the {which} inputs: {output.fault}",
                    "is the file whole?",
                    task.task_id,
                )
            else:
                results |= dict(zip(range(a, b), output.value, strict=True))
        waiting = again
    return tuple(
        (kind, digest, value, _floats(kind, value))
        for _, (kind, digest, value) in sorted(results.items())
    )


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
    """`cache_file`: the canonical solutions' results, by task; each is computed once."""

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
            if cached := known.get(f"{VERSION} {task.content}"):
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
                        "task": f"{VERSION} {content}",
                        "expected": {which: encode(asdict(each)) for which, each in sets},
                    }
                    for content, sets in rows
                )
        on_progress(len(lacking), len(lacking))
        if file:
            file.close()

    def job(self, task: PlusTask, which: str, program: str, job_id: str) -> Job:
        return task.job(job_id, program, which, self.expected[task.task_id][which])

    def verdict(self, report: Report) -> tuple[str, str]:
        return verdict_of(report)

    def fault(self, report: Report) -> Fault:
        """Return the exception alone: all inputs of a set are one test, so it has no number."""
        return Fault(0, fault(report).raised)


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
        name,
        VERSION,
        upstream,
        tasks,
        (releases or {}).get(len(tasks), "") or digest,
        source,
        SETS,
        cache_file=home / "benchmarks" / f"{source if name[-1] == '+' else name}.expected.jsonl",
    )
