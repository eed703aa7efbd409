"""Input and output of the sandbox: `Job` and `Report`, both plain data.

`Job.read` is the only reader of a job's form. docs/reference/file-formats.md lists its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sandbox.languages import LANGUAGES, PYTHON
from sandbox.languages.language import COMPILING
from sandbox.limits import LOAD, Limits
from sandbox.reading import Invalid, Key, is_count, is_number, is_text, is_texts, near, read_keys
from sandbox.styles import STYLES
from sandbox.styles.assert_ import AssertTest
from sandbox.styles.call import CallTest
from sandbox.styles.stdio import StdioTest
from sandbox.styles.style import Style
from sandbox.styles.unittest_ import UnittestTest
from sandbox.verdict import Verdict
from sandbox.wire import NotPlain

__all__ = [
    "LOAD", "AssertTest", "CallTest", "Invalid", "Job", "Limits", "Report", "StdioTest", "Test",
    "TestResult", "UnittestTest", "Verdict",
]  # fmt: skip

GRACE_S = 60.0  # on top of all limits of a job
FOLDER_GRACE_S = 300.0  # and for a zygote that imports the modules of a package folder
COMPILE_GRACE_S = 2 * COMPILING.wall_s  # and for each run of a compiler

Test = Any  # a test of a style: CallTest, StdioTest, AssertTest, UnittestTest or another style's
RECORD_KEYS = {
    "id": Key("any value", lambda value: True, required=True, nullable=True),
    "source": Key("the program, as text", is_text, required=True),
    "problem": Key("an object", lambda value: isinstance(value, Mapping), required=True),
}
COMPARES = sorted({compare for style in STYLES.values() for compare in style.compares})
PROBLEM_KEYS = {
    "style": Key(
        f"one of {', '.join(STYLES)}",
        lambda value: is_text(value) and value in STYLES,
        required=True,
    ),
    "tests": Key("a list of tests, at least one", lambda value: len(value) > 0, required=True),
    "entry_point": Key("the name of the function, as text", is_text),
    "prompt": Key("text", is_text),
    "limits": Key("an object", lambda value: isinstance(value, (Mapping, Limits))),
    "tolerance": Key("a number, at least 0", lambda value: is_number(value) and value >= 0),
    "compare": Key(f"one of {', '.join(COMPARES)}", lambda value: value in COMPARES),
    "checker": Key("Python source, as text", is_text),
    "packages": Key("a list of modules", is_texts),
    "in_place": Key("true or false", lambda value: isinstance(value, bool)),
    "language": Key(
        f"one of {', '.join((PYTHON, *LANGUAGES))}",
        lambda value: is_text(value) and (value == PYTHON or value in LANGUAGES),
    ),
    "visible_tests": Key("a whole number, at least 0", is_count),
}


@dataclass(frozen=True)
class Job:
    """One program to be judged.

    entry_point: a function, or a method as `Solution().name`. For `call`, a program may write the
        one as the other.
    tolerance: absolute or relative, for floats; None compares exactly.
    compare: for `call`, "unordered" ignores the order of the elements of a result, and "set" also
        ignores how often each occurs. For `stdio`, "exact" compares line by line, "tokens" treats
        all white space as equal, and "loose" also upper and lower case, and decimals that differ
        by less than 1e-5.
    checker: Python source of the problem's own comparison, which replaces the above: `check(args,
        got, expected, **kwargs) -> bool` for `call`, with the test's arguments; `check(stdin, got,
        expected) -> bool` for `stdio`. It is not trusted and runs confined, in its own process. An
        exception, or a result other than True or False, is a wrong answer.
    """

    job_id: str
    source: str
    style: str  # a name of sandbox/styles/
    tests: tuple[Test, ...]
    entry_point: str | None = None
    prompt: str = ""  # trusted source of the problem: helper functions for `assert` tests
    limits: Limits = Limits()  # noqa: RUF009  # frozen
    tolerance: float | None = None
    compare: str = "exact"
    checker: str | None = None
    packages: tuple[str, ...] = ()  # that the problem needs; without them the job is not run
    in_place: bool = False  # `assert`: show changes to arguments; see sandbox/worker/in_place.py
    language: str = PYTHON  # of the program: Python or a name of sandbox/languages/
    # a folder of packages (`pip install --target`) in place of those of the settings
    package_folder: str = ""
    # Not 0: other draws of `random`, hash seed, clock, time zone and addresses; never for judging.
    seed: int = 0
    visible_tests: int = 0  # how many of the first tests people may see
    # Not 0, with `stdio`: run the program for its output. The details are what it printed, errors
    # included, cut in the middle to this many bytes.
    output_bytes: int = 0

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Job:
        """Return the job of a record {"id", "source", "problem"}, from JSON or from Python.

        Raises Invalid, which names the key and the fix.
        """
        outer = read_keys(record, RECORD_KEYS)
        problem = dict(outer["problem"])
        tests = problem.get("tests")
        if isinstance(tests, str):  # the source of one test
            problem["tests"] = tests = [tests]
        if tests is not None and not isinstance(tests, (list, tuple)):
            raise Invalid("tests", "is no list", f"expected {PROBLEM_KEYS['tests'].expected}")
        values = read_keys(problem, PROBLEM_KEYS)
        style = STYLES[values["style"]]
        limits = _inside("limits", Limits.read, values.pop("limits", {}))
        job = cls(
            job_id=str(outer["id"]),
            source=outer["source"],
            limits=limits,
            **values
            | {
                "tests": tuple(
                    _inside(f"tests[{at}]", style.read, test)
                    for at, test in enumerate(values["tests"])
                ),
                "packages": tuple(values.get("packages", ())),
            },
        )
        job.check()
        return job

    def check(self) -> None:
        """Raise Invalid unless the parts of the job fit its style."""
        style = self.kind
        if not self.tests:
            raise Invalid("tests", "is empty", "give at least one test")
        for at, test in enumerate(self.tests):
            if type(test) is not style.test:
                raise Invalid(
                    f"tests[{at}]",
                    f"is a {type(test).__name__}",
                    f"style {style.name} needs {style.test.__name__}",
                )
        if self.entry_point is None and style.has_entry_point:
            raise Invalid(
                "entry_point", "is missing", f"style {style.name} needs the name of the function"
            )
        if self.compare not in style.compares:
            fix = f"style {style.name} compares {' or '.join(style.compares)}"
            raise Invalid("compare", f"is {self.compare!r}", fix)
        given = {
            "checker": bool(self.checker),
            "in_place": self.in_place,
            "tolerance": self.tolerance is not None,
            "language": self.language != PYTHON,
        }
        for option in given:
            if given[option] and option not in style.options:
                names = [each.name for each in STYLES.values() if option in each.options]
                raise Invalid(
                    option, f"does not fit style {style.name}", f"it is for {' and '.join(names)}"
                )
        for name, least in LANGUAGES[self.language].least.items() if given["language"] else ():
            if getattr(self.limits, name) < least:
                reason = f"is less than {self.language} programs need"
                raise Invalid(f"limits.{name}", reason, f"give at least {least}")
        if self.visible_tests > len(self.tests):
            reason = f"is {self.visible_tests} of {len(self.tests)} tests"
            raise Invalid("visible_tests", reason, "show at most as many as there are")

    @property
    def kind(self) -> Style:
        """The style of its tests. Raises Invalid for an unknown one."""
        if self.style not in STYLES:
            hint = near(self.style, STYLES)
            raise Invalid("style", f"is {self.style!r}{hint}", f"known are {', '.join(STYLES)}")
        return STYLES[self.style]

    @cached_property
    def payload(self) -> bytes:
        """The job as a worker reads it. Raises Invalid for what cannot be run."""
        self.check()
        message = {
            "id": self.job_id, "source": self.source, "style": self.style,
            "entry": self.entry_point, "prompt": self.prompt, "limits": vars(self.limits),
            "tolerance": self.tolerance, "compare": self.compare, "checker": self.checker,
            "packages": list(self.packages), "in_place": self.in_place, "language": self.language,
            "package_folder": self.package_folder, "seed": self.seed,
            "output_bytes": self.output_bytes,
            "tests": [self._sent(at, test) for at, test in enumerate(self.tests)],
        }  # fmt: skip
        return json.dumps(message).encode()

    def _sent(self, at: int, test: Test) -> dict[str, Any]:
        try:
            return self.kind.payload(test)
        except NotPlain as error:
            fix = "write it as an assert test"
            raise Invalid(f"tests[{at}]", f"is not plain data ({error})", fix) from None

    @property
    def longest_s(self) -> float:
        """How long to wait for the answer: a worker that takes longer is broken."""
        clocks = sum(map(self.kind.clocks, self.tests))
        grace_s = GRACE_S + (FOLDER_GRACE_S if self.package_folder else 0.0)
        if self.language != PYTHON:  # the language's example, then the program, with each script
            grace_s += COMPILE_GRACE_S * (1 + (len(self.tests) if self.kind.shared else 1))
        return grace_s + self.limits.wall_s * clocks * 2


def _inside(place: str, read: Any, record: Any) -> Any:
    try:
        return read(record)
    except Invalid as fault:
        raise fault.inside(place) from None


@dataclass(frozen=True)
class TestResult:
    verdict: Verdict
    detail: str = ""  # what the program returned, printed or did; never the expected value
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

    @classmethod
    def of_answer(cls, job: Job, answer: dict[str, Any]) -> Report:
        """Return the report in a worker's answer. Raises KeyError, TypeError or ValueError if it is
        not an answer to this job.
        """
        names = answer["names"] or [""] * len(answer["tests"])
        rows = tuple(
            TestResult(Verdict(verdict), detail, wall_s, name)
            for (verdict, detail, wall_s), name in zip(answer["tests"], names, strict=True)
        )
        if len(rows) < len(job.tests) or (len(rows) > len(job.tests) and not job.kind.many_rows):
            raise ValueError(f"the worker reported {len(rows)} of {len(job.tests)} tests")
        return cls(
            job.job_id, Verdict(answer["verdict"]), rows, cpu_s=answer["cpu_s"],
            wall_s=answer["wall_s"], peak_bytes=answer["peak_bytes"],
            isolation=answer["isolation"], trust=answer["trust"], detail=answer["detail"],
            denied=answer["denied"], tried=answer["tried"],
            unusable=answer["unusable"], absent=tuple(answer["absent"]),
        )  # fmt: skip

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
