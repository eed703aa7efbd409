"""What goes into the sandbox and what comes out: `Job` and `Report`, plain data on both sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class Verdict(StrEnum):
    """INFRA is a failure of ours, never of the program, and never a score."""

    AC = "AC"  # accepted: every test was decided, positively
    WA = "WA"  # wrong answer
    TLE = "TLE"  # over its CPU or wall time
    MLE = "MLE"  # over its memory
    OLE = "OLE"  # over its output
    RE = "RE"  # raised, crashed, or left early
    CE = "CE"  # not a Python program
    INFRA = "INFRA"


Style = Literal["call", "assert", "stdio", "unittest"]
Compare = Literal["exact", "unordered", "set", "tokens"]
COMPARES: dict[Style, tuple[Compare, ...]] = {
    "call": ("exact", "unordered", "set"), "stdio": ("exact", "tokens"), "assert": ("exact",), "unittest": ("exact",),
}  # fmt: skip


LOAD = 3.0  # processes that may want the same core before a program that computes is stopped by the clock


@dataclass(frozen=True)
class Limits:
    """Time is per test, and output for a run of the program: all tests of a job, or one of `stdio`. All processes of the program count together.

    Totals are for the program over all its tests; None: what these have one by one. Memory, processes and files bound each moment, so the whole too.
    CPU time bounds work: it says the same on a machine under load. The clock is there for programs that wait, and has room to spare for load.
    Where no cgroup can be written the sums are read from /proc, some hundred times a second: docs/explanation/sandbox.md says what holds on which level.
    """

    wall_s: float = 9.0
    cpu_s: float = 3.0
    memory_mb: int = 256
    output_kb: int = 1024  # stdout and stderr
    processes: int = 64  # threads count too
    files: int = 256  # open at once
    total_wall_s: float | None = None
    total_cpu_s: float | None = None
    total_output_kb: int | None = None

    @classmethod
    def of_work(cls, cpu_s: float, memory_mb: int = 256) -> Limits:
        """For a problem whose programs compute and do not wait: LOAD times as long by the clock, so that it is the CPU time that decides."""
        return cls(wall_s=LOAD * cpu_s, cpu_s=cpu_s, memory_mb=memory_mb)


@dataclass(frozen=True)
class CallTest:
    """`entry_point(*args, **kwargs)` must return `expected`. Plain data only: None, bool, int, float, str, bytes, list, tuple, set, dict."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None


@dataclass(frozen=True)
class StdioTest:
    """The program reads `stdin` and must print `stdout`; white space at line ends does not count."""

    stdin: str
    stdout: str


@dataclass(frozen=True)
class AssertTest:
    """Python source that defines `check(candidate)`; it runs in a judge process, never beside the program."""

    source: str


@dataclass(frozen=True)
class UnittestTest:
    """Python source with `unittest.TestCase` classes, which must share the program's interpreter, because they patch it: trust level "shared".

    Each method is run by itself and has a result of its own in the report.
    """

    source: str


Test = CallTest | StdioTest | AssertTest | UnittestTest


@dataclass(frozen=True)
class Job:
    """One program to be judged. `tolerance` is absolute or relative, for floats; None compares exactly.

    compare: for `call`, "unordered" takes the elements of a result in any order and "set" does not count them either; for `stdio`, "tokens" takes
    any white space for any other ("exact" goes line by line).
    checker: Python source of the problem's own comparison, in place of all that: `check(args, got, expected, **kwargs) -> bool` for `call`, with the
    test's arguments, `check(stdin, got, expected) -> bool` for `stdio`. It is not trusted: it runs confined, in a process of its own. What it raises,
    and an answer that is neither True nor False, is a wrong answer.
    """

    job_id: str
    source: str
    style: Style
    tests: tuple[Test, ...]
    entry_point: str | None = None
    prompt: str = ""  # trusted text of the problem: helper functions that an `assert` test may use
    limits: Limits = Limits()
    tolerance: float | None = None
    compare: Compare = "exact"
    checker: str | None = None
    packages: tuple[
        str, ...
    ] = ()  # that the problem needs besides the standard library; where one is absent, the job is not run
    in_place: bool = False  # for `assert`: the tests see what a call changed in its arguments even where it returned something (sandbox/in_place.py)


@dataclass(frozen=True)
class TestResult:
    verdict: Verdict
    detail: str = ""  # what came, in words; never what was expected
    wall_s: float = 0.0
    name: str = ""  # of a test method, `Class.method`

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class Report:
    """One per job, whatever the program did. The verdict is AC only if every test's is.

    tests: a result for each test of the job, or for each method of its unittests, in order.
    """

    job_id: str
    verdict: Verdict
    tests: tuple[TestResult, ...]
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = 0
    isolation: str = "none"  # what confined the program, e.g. "namespaces+rlimits"
    trust: Literal["apart", "shared"] = (
        "apart"  # "apart": decided outside the program's process; "shared": the program's own word went into it
    )
    detail: str = ""
    unusable: bool = False  # with INFRA: a test or checker of the problem cannot be run, and asking again does not help
    absent: tuple[str, ...] = ()  # packages for want of which the job was not run; unusable too
    verdicts: tuple[Verdict, ...] = ()  # of each run, where the job was run more than once
    denied: dict[str, int] | None = (
        None  # calls that the sandbox refused, by name, counted outside the program; None where it cannot count
    )
    tried: dict[str, int] | None = (
        None  # what the program tried, by kind (sandbox/tried.py); None, or a kind absent, where it cannot be counted
    )

    @property
    def flickers(self) -> bool:
        """Whether repeated runs came to different verdicts; one that was our failure says nothing."""
        return len(set(self.verdicts) - {Verdict.INFRA}) > 1

    @property
    def passed(self) -> int:
        return sum(test.verdict is Verdict.AC for test in self.tests)

    @property
    def total(self) -> int:
        return len(self.tests)
