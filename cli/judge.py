"""Run programs against tests in the sandbox."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from cli.app.commands import Command

if TYPE_CHECKING:
    from sandbox.protocol import Job, Report
    from sandbox.sandbox import Sandbox

EXAMPLE = (
    'A line: {"id": 1, "source": "f = abs", "problem": {"style": "call", "entry_point": "f", '
    '"tests": [{"args": [-2], "expected": 2}]}}'
)


@dataclass
class _Line:
    """One request: its own id, and its answer as text once there is one."""

    request_id: Any
    answer: str | None = None
    job: Job | None = None  # for `--explain`


def command(
    file: Annotated[
        Path | None, typer.Argument(help="File of JSON lines. Default: the standard input.")
    ] = None,
    isolation: Annotated[
        Literal["auto", "root", "userns", "bare"],
        typer.Option(help="A named level is never lowered."),
    ] = "auto",
    backend: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Tables for people; what was expected only of the first `visible_tests`.",
        ),
    ] = False,
) -> None:
    """Run programs against tests in the sandbox.

    JSON lines in: "id", "source" and "problem". JSON lines out, in the same order: "id", "verdict"
    and more. A line that cannot be used has the verdict INVALID, with "line", "key" and "fix".
    There is one worker per core, or RATCHET_WORKERS of them.
    """
    from sandbox.backends import KINDS
    from sandbox.sandbox import Sandbox, SandboxConfig

    workers = os.environ.get("RATCHET_WORKERS")
    if workers is not None and not (workers.isdigit() and int(workers) > 0):
        raise typer.BadParameter(
            f"RATCHET_WORKERS is {workers!r}: give a number of workers, at least 1"
        )
    if backend not in KINDS:
        raise typer.BadParameter(f"--backend is {backend!r}: choose {' or '.join(KINDS)}")
    if file is None and sys.stdin.isatty():
        raise typer.BadParameter("give a file of JSON lines, or write them to the standard input")
    config = SandboxConfig(
        workers=int(workers) if workers else None,
        backend=backend,
        isolation=isolation,
    )
    with (
        file.open("rb") if file else nullcontext(sys.stdin.buffer) as lines,
        Sandbox(config) as sandbox,
    ):
        judge_lines(sandbox, lines, sys.stdout, explain=explain)


def judge_lines(
    sandbox: Sandbox, lines: Iterable[bytes], out: TextIO, *, explain: bool = False
) -> None:
    """Judge the lines; write each answer as soon as all earlier ones are written. explain: write
    tables (sandbox/explain.py).
    """
    from sandbox.explain import table

    requests: list[_Line] = []
    written = 0

    def flush() -> None:
        nonlocal written
        while written < len(requests) and (answer := requests[written].answer) is not None:
            out.write(answer + "\n")
            requests[written] = _Line(None, "")  # written, so no longer kept in memory
            written += 1
        out.flush()

    for report in sandbox.run(_jobs(lines, requests, explain)):
        line = requests[int(report.job_id)]
        line.answer = (
            table(line.request_id, line.job, report)
            if line.job
            else json.dumps(_answer(line.request_id, report))
        )
        flush()
    flush()


def _jobs(lines: Iterable[bytes], requests: list[_Line], explain: bool) -> Iterator[Job]:
    from sandbox.protocol import Invalid, Job

    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        request_id = None
        try:
            request = _parsed(line)
            request_id = request.get("id") if isinstance(request, dict) else None
            job = replace(Job.read(request), job_id=str(len(requests)))
            _ = job.payload  # whether its values can be sent
            _check_sources(job)
        except Invalid as fault:
            requests.append(_Line(request_id, _invalid(request_id, number, fault, explain)))
            continue
        requests.append(_Line(request_id, None, job if explain else None))
        yield job


def _check_sources(job: Job) -> None:
    """Raise Invalid for tests or a checker that are no Python: no program is to blame for them."""
    from sandbox.protocol import Invalid

    sources = {"checker": job.checker or ""}
    if job.kind.is_code:
        sources |= {f"tests[{at}].source": test.source for at, test in enumerate(job.tests)}
    for key, source in sources.items():
        if fault := _syntax_fault(source):
            raise Invalid(key, f"is no Python ({fault})", "fix the source")


@lru_cache(maxsize=4096)  # many programs have the same tests
def _syntax_fault(source: str) -> str:
    from artifacts.parsing import parse

    try:
        parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _parsed(line: bytes) -> Any:
    from sandbox.protocol import Invalid

    try:
        return json.loads(line)
    except RecursionError:
        raise Invalid("", "is nested too deeply", "write deep values as an assert test") from None
    except ValueError as error:
        raise Invalid("", f"is no JSON ({error})", "write one object a line") from None


def _invalid(request_id: Any, number: int, fault: Any, explain: bool) -> str:
    from sandbox.protocol import Verdict

    key = f"`{fault.key}`" if fault.key else "the request"
    detail = f"line {number}: {key} {fault.reason}: {fault.fix}"
    if explain:
        return f"{request_id}: {Verdict.INVALID}, {detail}\n"
    return json.dumps(
        {
            "id": request_id, "verdict": Verdict.INVALID, "line": number,
            "key": fault.key, "detail": detail, "fix": fault.fix,
        }
    )  # fmt: skip


def _answer(request_id: Any, report: Report) -> dict[str, Any]:
    return {
        "id": request_id, "verdict": report.verdict, "passed": report.passed, "total": report.total,
        "detail": report.detail,
        "cpu_s": round(report.cpu_s, 4), "wall_s": round(report.wall_s, 4),
        "peak_bytes": report.peak_bytes,
        "isolation": report.isolation, "trust": report.trust, "denied": report.denied,
        "tried": report.tried,
    }  # fmt: skip


COMMAND = Command("Evaluate", command, {"epilog": EXAMPLE})
