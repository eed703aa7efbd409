"""Run programs in the sandbox and return their outputs for new inputs.

For a wrong answer, a report contains the actual value, truncated to 200 bytes. So each input gets
an expected value that no program returns, and the output is read from the report. A longer output
is fetched in slices. Nothing runs outside the sandbox, and the sandbox needs no change for this.
The result is what the program claims, not a verdict: a caller that makes a test of it must run the
references against that test.
"""

from __future__ import annotations

import ast
import zlib
from base64 import b85decode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from problems.schema import Problem
from sandbox import wire
from sandbox.protocol import CallTest, Job, StdioTest, Test, Verdict
from sandbox.sandbox import Runs
from sandbox.wire import NotPlain, decode, encode
from sandbox.worker.messages import NOT_RUN

NOTHING = "\x00nothing that a program gives\x00"
CUT = 200  # a report contains this many bytes of the actual value
# characters per slice, and number of slices: about 19 kB of compressed text
SLICE, SLICES = 190, 128
MAX_OUTPUT = 2**18  # maximum characters of an output
TOO_LONG = f"longer than {MAX_OUTPUT:,} characters, or than {SLICE * SLICES:,} compressed"

Input = dict[str, Any]  # a test without its expected output: args and kwargs, or stdin


class NoOutput(RuntimeError):
    """The sandbox failed, not the program: run again."""


@dataclass(frozen=True)
class Output:
    """A program's output for one input: a value (for stdio the printed text), or a fault.

    The fault is the verdict and its detail.
    """

    value: Any = None
    fault: str = ""

    @property
    def same(self) -> str:
        """A text that is equal for equal outputs of the same types.

        Raises NotPlain if the output is not plain data.
        """
        return f"fault {self.fault}" if self.fault else encode(self.value)


@dataclass(frozen=True)
class OutputRequest:
    """A program and its inputs.

    problem: defines how the program is called (style, entry point), and its limits.
    """

    problem: Problem
    source: str
    inputs: Sequence[Input]


def outputs(requests: Sequence[OutputRequest], sandbox: Runs) -> list[list[Output]]:
    """Return, for each question, one output per input, in order.

    Supports the styles call, assert (its entry point is called) and stdio. If the program hangs or
    dies on an input, only that input has a fault: the inputs after it are run again without it.
    Raises ValueError for style unittest and for an input that is not plain data, NoOutput when the
    sandbox itself failed.
    """
    direct = _outcomes([_direct(request) for request in requests], sandbox)
    results = [[_read(outcome) for outcome in row] for row in direct]
    long = [
        (at, nth)
        for at, row in enumerate(results)
        for nth, output in enumerate(row)
        if output.fault == TOO_LONG
    ]
    sliced = _outcomes(
        [_slices(requests[at], requests[at].inputs[nth]) for at, nth in long], sandbox
    )
    for (at, nth), pieces in zip(long, sliced, strict=True):
        results[at][nth] = _joined(pieces, not requests[at].problem.kind.has_entry_point)
    return results


TestOutcome = tuple[Verdict, str]


def _outcomes(jobs: Sequence[Job], sandbox: Runs) -> list[list[TestOutcome]]:
    """Return verdict and detail of each test.

    A test that was skipped because of an earlier one is run again.
    """
    outcomes: list[list[TestOutcome | None]] = [[None] * len(job.tests) for job in jobs]
    while pending := {
        at: [nth for nth, outcome in enumerate(row) if outcome is None]
        for at, row in enumerate(outcomes)
        if None in row
    }:
        retried = [
            replace(jobs[at], job_id=str(at), tests=tuple(jobs[at].tests[nth] for nth in places))
            for at, places in pending.items()
        ]
        for report in sandbox.run(retried):
            if report.verdict is Verdict.INFRA and not report.unusable:
                raise NoOutput(
                    f"{jobs[int(report.job_id)].job_id}: the sandbox gave no output "
                    f"({report.detail}): run again"
                )
            places, row = pending[int(report.job_id)], outcomes[int(report.job_id)]
            for number, (nth, test) in enumerate(zip(places, report.tests, strict=True)):
                if number == 0 or test.detail != NOT_RUN:
                    row[nth] = (test.verdict, test.detail)
    return [[outcome for outcome in row if outcome is not None] for row in outcomes]


def _job(problem: Problem, source: str, tests: Iterable[Test]) -> Job:
    if problem.kind.shared:
        raise ValueError(f"problem {problem.problem_id}: tests of style unittest have no inputs")
    return Job(
        problem.problem_id,
        source,
        "call" if problem.kind.has_entry_point else "stdio",
        tuple(tests),
        problem.entry_point,
        limits=problem.limits,
        packages=problem.packages,
    )


def _direct(request: OutputRequest) -> Job:
    tests: list[Test] = [
        CallTest(*_arguments(test_input), NOTHING)
        if request.problem.kind.has_entry_point
        else StdioTest(test_input["stdin"], NOTHING)
        for test_input in request.inputs
    ]
    return _job(request.problem, request.source, tests)


def _arguments(test_input: Input) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(test_input.get("args", ())), test_input.get("kwargs") or {}


def _slices(request: OutputRequest, test_input: Input) -> Job:
    """Call a function appended to the program, once for each slice of the compressed output."""
    problem = request.problem
    arguments: tuple[Any, ...]
    if problem.kind.has_entry_point:
        arguments = _arguments(test_input)
        work = f"_ratchet_wire['encode']({problem.entry_point}(*given[0], **given[1]))"
        source = f"{request.source}\n{_wrapper(work)}"
    else:
        arguments = (test_input["stdin"],)
        source = _wrapper(f"_ratchet_printed({request.source!r}, *given)")
    tests = [CallTest((nth * SLICE, *arguments), {}, NOTHING) for nth in range(SLICES + 1)]
    calls = replace(problem, style="call", entry_point="_ratchet_slice")
    return _job(calls, source, tests)


@cache
def _wire() -> str:
    return Path(str(wire.__file__)).read_text(encoding="utf-8")


def _wrapper(work: str) -> str:
    """Return the source of a wrapper that computes its output once and keeps it for slices."""
    return f"""
import base64 as _ratchet_base64, io as _ratchet_io, sys as _ratchet_sys, zlib as _ratchet_zlib
_ratchet_wire, _ratchet_kept = {{}}, []
exec({_wire()!r}, _ratchet_wire)


def _ratchet_printed(source, stdin):
    before = _ratchet_sys.stdin, _ratchet_sys.stdout
    printed = _ratchet_io.BytesIO()
    _ratchet_sys.stdin = _ratchet_io.TextIOWrapper(_ratchet_io.BytesIO(stdin.encode()), "utf-8")
    _ratchet_sys.stdout = writes = _ratchet_io.TextIOWrapper(printed, "utf-8")
    try:
        exec(compile(source, "program", "exec"), {{"__name__": "__main__"}})
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        _ratchet_sys.stdin, _ratchet_sys.stdout = before
    writes.flush()
    return printed.getvalue().decode()


def _ratchet_slice(start, *given):
    if not _ratchet_kept:
        _ratchet_kept.append(_ratchet_base64.b85encode(_ratchet_zlib.compress(({work}).encode("utf-8"), 9)).decode())
    return _ratchet_kept[0][start : start + {SLICE}]
"""  # noqa: E501


def _read(outcome: TestOutcome) -> Output:
    """Read an output from a report; the fault is TOO_LONG if the report has only a part of it."""
    verdict, detail = outcome
    value_of: Callable[[], Any]
    if verdict is Verdict.WA and detail.startswith("got "):
        text = detail.removeprefix("got ")
        value_of = lambda: decode(text)  # noqa: E731
    elif verdict is Verdict.WA and detail.startswith("printed "):
        text = ast.literal_eval(detail.removeprefix("printed "))
        value_of = lambda: text  # noqa: E731
    else:
        return Output(fault=f"{verdict} {detail}".strip())
    if len(text.encode("utf-8", "replace")) >= CUT:
        return Output(fault=TOO_LONG)
    return _built(value_of)


def _joined(pieces: Sequence[TestOutcome], printed: bool) -> Output:
    read = [_read(outcome) for outcome in pieces]
    if fault := next((output.fault for output in read if output.fault), ""):
        return Output(fault=fault)
    if read[-1].value:
        return Output(fault=TOO_LONG)
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(
            b85decode("".join(output.value for output in read)), MAX_OUTPUT
        ).decode("utf-8")
    except (ValueError, TypeError, zlib.error) as error:
        return Output(fault=f"{Verdict.WA} broken slices: {error}")
    if inflate.unconsumed_tail or not inflate.eof:
        return Output(fault=TOO_LONG)
    return Output(text) if printed else _built(lambda: decode(text))


def _built(make: Callable[[], Any]) -> Output:
    try:
        output = Output(make())
        repr(output.value)
    except (NotPlain, RecursionError) as error:
        return Output(fault=f"{Verdict.WA} {error}")
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return Output(fault=TOO_LONG)
    return output
