"""Judge programs from the command line: `python -m sandbox.judge`.

Input: JSON lines {"id", "source", "problem"}. Output: JSON lines {"id", "verdict", ...} in input
order, and nothing else on stdout.
A problem has `style`, `tests`, and as needed `entry_point`, `prompt`, `limits`, `tolerance`,
`compare`, `checker`, `packages`, `in_place`. There is one worker per core, or RATCHET_WORKERS of
them.
The exit status is 0 whatever the verdicts. An invalid line gets the verdict INFRA and a detail that
says what is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from math import inf
from typing import Any, TextIO

from sandbox.backends import KINDS
from sandbox.backends.local import IsolationError
from sandbox.explain import table
from sandbox.protocol import (
    AssertTest,
    CallTest,
    Job,
    Limits,
    Report,
    StdioTest,
    Test,
    UnittestTest,
    Verdict,
)
from sandbox.sandbox import Sandbox, SandboxConfig, SandboxError

EXAMPLE = (
    'a line: {"id": 1, "source": "f = abs", "problem": {"style": "call", "entry_point": "f", '
    '"tests": [{"args": [-2], "expected": 2}]}}'
)


@dataclass
class _Line:
    """One request: its own id, and its answer as text once there is one."""

    request_id: Any
    answer: str | None = None
    job: Job | None = None
    visible: int = 0


def main(arguments: list[str] | None = None) -> int:
    prog = "python -m sandbox.judge" if arguments is None else "ratchet judge"
    parser = argparse.ArgumentParser(
        prog=prog, description="Judges programs: JSON lines in, JSON lines out.", epilog=EXAMPLE
    )
    parser.add_argument(
        "--isolation",
        choices=("auto", "root", "userns", "bare"),
        default="auto",
        help="a named level is never lowered",
    )
    parser.add_argument("--backend", choices=KINDS, default="local", help="where programs run")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="tables for people; what was expected only of the first `visible_tests`",
    )
    options = parser.parse_args(arguments)
    workers = os.environ.get("RATCHET_WORKERS")
    if workers is not None and not (workers.isdigit() and int(workers) > 0):
        print(
            f"RATCHET_WORKERS is {workers!r}: give a number of workers, at least 1", file=sys.stderr
        )
        return 2
    try:
        with Sandbox(
            SandboxConfig(
                workers=int(workers) if workers else None,
                backend=options.backend,
                isolation=options.isolation,
            )
        ) as sandbox:
            judge_lines(sandbox, sys.stdin.buffer, sys.stdout, explain=options.explain)
    except (IsolationError, SandboxError) as refused:
        print(refused, file=sys.stderr)
        return 3
    return 0


def judge_lines(
    sandbox: Sandbox, lines: Iterable[bytes], out: TextIO, *, explain: bool = False
) -> None:
    """Judge the lines; write each answer as soon as all earlier ones are written. explain: write
    tables (sandbox/explain.py).
    """
    requests: list[_Line] = []
    written = 0

    def flush() -> None:
        nonlocal written
        while written < len(requests) and (answer := requests[written].answer) is not None:
            out.write(answer + "\n")
            requests[written] = _Line(None, "")  # written, so no longer kept in memory
            written += 1
        out.flush()

    for report in sandbox.run(_jobs(lines, requests)):
        line = requests[int(report.job_id)]
        assert line.job
        line.answer = (
            table(line.request_id, line.job, report, line.visible)
            if explain
            else json.dumps(_answer(line.request_id, report))
        )
        flush()
    flush()


def _jobs(lines: Iterable[bytes], requests: list[_Line]) -> Iterator[Job]:
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        request_id = None
        try:
            request = json.loads(line)
            request_id = request["id"]
            job = job_of(request["problem"], request["source"], str(len(requests)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            detail = f"line {number + 1} is not a valid request: {type(error).__name__}: {error}"
            requests.append(
                _Line(
                    request_id,
                    json.dumps({"id": request_id, "verdict": Verdict.INFRA, "detail": detail}),
                )
            )
            continue
        requests.append(
            _Line(request_id, None, job, int(request["problem"].get("visible_tests") or 0))
        )
        yield job


def job_of(problem: dict[str, Any], source: str, job_id: str) -> Job:
    """Return the job for a problem in its JSON form. Raises KeyError, TypeError or ValueError if
    the problem is invalid.
    """
    style, tests = problem["style"], problem["tests"]
    typed_tests: tuple[Test, ...]
    if style == "call":
        typed_tests = tuple(
            CallTest(tuple(test.get("args", ())), test.get("kwargs", {}), test["expected"])
            for test in tests
        )
    elif style == "stdio":
        typed_tests = tuple(StdioTest(test["stdin"], test["stdout"]) for test in tests)
    elif style in ("assert", "unittest"):
        kind = AssertTest if style == "assert" else UnittestTest
        typed_tests = tuple(kind(text) for text in ([tests] if isinstance(tests, str) else tests))
    else:
        raise ValueError(f"`style` must be call, assert, stdio or unittest, got {style!r}")
    if not typed_tests or not isinstance(source, str):
        raise ValueError("give `source` as text and at least one test")
    limits = _limits(problem.get("limits") or {})
    prompt, checker = problem.get("prompt") or "", problem.get("checker")
    compare: Any = problem.get("compare") or "exact"
    packages = tuple(map(str, problem.get("packages") or ()))
    in_place = problem.get("in_place") is True
    return Job(
        job_id,
        source,
        style,
        typed_tests,
        problem.get("entry_point"),
        prompt,
        limits,
        problem.get("tolerance"),
        compare,
        checker,
        packages,
        in_place,
    )


def _limits(values: dict[str, Any]) -> Limits:
    """Return the limits; null leaves the default. Raises ValueError, naming the limit, if a limit
    is not a number above 0.
    """
    known = {field.name for field in fields(Limits)}
    chosen = {name: value for name, value in values.items() if name in known and value is not None}
    for name, value in chosen.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
            raise ValueError(f"`limits.{name}` must be a number above 0, got {value!r}")
    converted: dict[str, Any] = {
        name: float(value) if name.endswith("_s") else int(value) for name, value in chosen.items()
    }
    return Limits(**converted)


def _answer(request_id: Any, report: Report) -> dict[str, Any]:
    return {
        "id": request_id, "verdict": report.verdict, "passed": report.passed, "total": report.total,
        "detail": report.detail,
        "cpu_s": round(report.cpu_s, 4), "wall_s": round(report.wall_s, 4),
        "peak_bytes": report.peak_bytes,
        "isolation": report.isolation, "trust": report.trust, "denied": report.denied,
        "tried": report.tried,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
