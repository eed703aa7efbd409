"""Input and output of the sandbox: `Job` and `Report`, both plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class Verdict(StrEnum):
    """The result of a test or a job. INFRA is a failure of the sandbox, never of the program, and
    never becomes a score.
    """

    AC = "AC"  # accepted: every test was decided, and passed
    WA = "WA"  # wrong answer
    TLE = "TLE"  # over its limit of CPU or wall time
    MLE = "MLE"  # over its limit of memory
    OLE = "OLE"  # over its limit of output
    RE = "RE"  # raised an exception, crashed, or exited early
    CE = "CE"  # not a Python program
    INFRA = "INFRA"


Style = Literal["call", "assert", "stdio", "unittest"]
Compare = Literal["exact", "unordered", "set", "tokens"]
COMPARES: dict[Style, tuple[Compare, ...]] = {
    "call": ("exact", "unordered", "set"),
    "stdio": ("exact", "tokens"),
    "assert": ("exact",),
    "unittest": ("exact",),
}


# How many processes may compete for a core before the wall clock stops a program that only
# computes.
LOAD = 3.0


@dataclass(frozen=True)
class Limits:
    """Limits of a program. They count all of its processes together.

    Times are per test. Output is per run of the program: a run is all tests of a job, or one test
    of style `stdio`.
    The `total_*` limits cover the program over all its tests; None means no limit beyond the one of
    each test. Memory, processes and open files are limited at every moment, so they need no total.
    CPU time limits work and does not depend on how busy the machine is. The wall clock limits
    programs that wait, and leaves room for a busy machine.
    Where no cgroup is writable, usage is read from /proc, about a hundred times a second.
    docs/explanation/sandbox.md lists what is enforced on which isolation level.
    """

    wall_s: float = 9.0
    cpu_s: float = 3.0
    memory_mb: int = 256
    output_kb: int = 1024  # stdout and stderr
    processes: int = 64  # threads count too
    files: int = 256  # open at the same time
    total_wall_s: float | None = None
    total_cpu_s: float | None = None
    total_output_kb: int | None = None

    @classmethod
    def of_work(cls, cpu_s: float, memory_mb: int = 256) -> Limits:
        """Return limits for a program that computes and does not wait. The wall clock allows LOAD
        times the CPU time, so that the CPU time decides.
        """
        return cls(wall_s=LOAD * cpu_s, cpu_s=cpu_s, memory_mb=memory_mb)


@dataclass(frozen=True)
class CallTest:
    """`entry_point(*args, **kwargs)` must return `expected`. Values are plain data: None, bool,
    int, float, str, bytes, list, tuple, set, dict.
    """

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None


@dataclass(frozen=True)
class StdioTest:
    """The program reads `stdin` and must print `stdout`; white space at the ends of lines is
    ignored.
    """

    stdin: str
    stdout: str


@dataclass(frozen=True)
class AssertTest:
    """Python source that defines `check(candidate)`. It runs in a judge process, never in the
    program's process.
    """

    source: str


@dataclass(frozen=True)
class UnittestTest:
    """Python source with `unittest.TestCase` classes.

    They run in the program's own process, because they patch it. A program can therefore forge
    their result: the trust level is "shared". Each method has its own result in the report.
    """

    source: str


def methods_of(source: str) -> int:
    """Return how many test methods have time limits of their own, at least one."""
    return max(1, source.count("def test"))


Test = CallTest | StdioTest | AssertTest | UnittestTest


@dataclass(frozen=True)
class Job:
    """One program to be judged.

    tolerance: absolute or relative, for floats; None compares exactly.
    compare: for `call`, "unordered" ignores the order of the elements of a result, and "set" also
        ignores how often each occurs. For `stdio`, "exact" compares line by line, and "tokens"
        treats all white space as equal.
    checker: Python source of the problem's own comparison, which replaces the above: `check(args,
        got, expected, **kwargs) -> bool` for `call`, with the test's arguments; `check(stdin, got,
        expected) -> bool` for `stdio`. It is not trusted and runs confined, in its own process. An
        exception, or a result other than True or False, is a wrong answer.
    """

    job_id: str
    source: str
    style: Style
    tests: tuple[Test, ...]
    entry_point: str | None = None
    prompt: str = ""  # trusted source of the problem: helper functions for `assert` tests
    limits: Limits = Limits()
    tolerance: float | None = None
    compare: Compare = "exact"
    checker: str | None = None
    packages: tuple[str, ...] = ()  # that the problem needs; without them the job is not run
    in_place: bool = False  # `assert`: show changes to arguments; see sandbox/worker/in_place.py
    # a folder of packages (`pip install --target`) in place of those of the settings
    package_folder: str = ""
    # Not 0: other draws of `random`, hash seed, clock, time zone and addresses; never for judging.
    seed: int = 0


@dataclass(frozen=True)
class TestResult:
    verdict: Verdict
    detail: str = ""  # what the program returned or did; never the expected value
    wall_s: float = 0.0
    name: str = ""  # `Class.method` of a test method

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class Report:
    """The result of one job; every job gets exactly one. The verdict is AC only if that of every
    test is.

    tests: a result for each test of the job, or for each method of its unittests, in order.
    trust: "apart" if every verdict was decided outside the program's process, "shared" if a verdict
        depends on what the program itself said.
    unusable: set with INFRA where a test or checker of the problem cannot be run, or a package is
        absent; a retry does not help.
    """

    job_id: str
    verdict: Verdict
    tests: tuple[TestResult, ...]
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = 0
    isolation: str = "none"  # what confined the program, e.g. "namespaces+rlimits"
    trust: Literal["apart", "shared"] = "apart"  # "shared": relies on what the program said
    detail: str = ""
    unusable: bool = False  # with INFRA: the problem's fault, a retry does not help
    absent: tuple[str, ...] = ()  # packages that are missing, so that the job was not run
    verdicts: tuple[Verdict, ...] = ()  # one per run, where a job is run repeatedly
    denied: dict[str, int] | None = None  # refused calls by name; None: not counted
    tried: dict[str, int] | None = (
        None  # attempts by kind (sandbox/worker/call_counter.py); None: not counted
    )

    @property
    def flickers(self) -> bool:
        """Whether repeated runs had different verdicts, not counting INFRA."""
        return len(set(self.verdicts) - {Verdict.INFRA}) > 1

    @property
    def passed(self) -> int:
        return sum(test.verdict is Verdict.AC for test in self.tests)

    @property
    def total(self) -> int:
        return len(self.tests)
