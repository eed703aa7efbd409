"""Style `script`: what decides, and that what can be forged is never worth anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems.schema import Problem
from rewards.composite import Reward
from rewards.config import RewardConfig
from sandbox.protocol import Job, Limits
from sandbox.styles.script import ScriptTest
from sandbox.verdict import Verdict
from tests.sandbox.conftest import Judge

LIMITS = Limits(wall_s=20.0, cpu_s=1.0, memory_mb=256)
JAVASCRIPT = "const assert = require('node:assert');\nassert.deepEqual(f(2), 4);\n"
CPP = "#include <assert.h>\nint main() { auto candidate = f; assert(candidate(2) == 4); }\n"
PYTHON = "assert f(2) == 4\n"
TESTS = {"javascript": JAVASCRIPT, "cpp": CPP, "python": PYTHON}
VERDICTS = {
    ("javascript", "function f(x) { return 2 * x }"): "AC",
    ("javascript", "function f(x) { return x }"): "WA",
    ("javascript", "function g(x) { return x }"): "RE",
    ("javascript", "function f(x) { for (;;); }"): "TLE",
    ("javascript", "function f(x) {"): "CE",
    ("python", "def f(x):\n    return 2 * x"): "AC",
    ("python", "def f(x):\n    return x"): "WA",
    ("python", "def f(x)"): "CE",
    ("cpp", "long f(long x) { return 2 * x; }"): "AC",
    ("cpp", "long f(long x) { return x; }"): "WA",
    ("cpp", "long f(long x) { return y; }"): "CE",
}
# Each passes as it does upstream, without the function that the tests call.
FORGERIES = {
    "exits first": ("javascript", "process.exit(0)"),
    "exits in the end": ("javascript", "f = x => 1; process.on('exit', () => process.exit(0))"),
    "swallows errors": ("javascript", "process.on('uncaughtException', () => {}); f = x => 1"),
    "replaces the assertion": (
        "javascript",
        "require('module')._load = () => ({ deepEqual() {} }); const f = x => 1",
    ),
    "hides the tests": ("javascript", "/* no test */ const f = 0; module.exports = 1; return;"),
    "leaves before main": (
        "cpp",
        "#include <unistd.h>\nstruct A { A() { _exit(0); } } a;\nlong f(long x) { return 1; }",
    ),
    "ends with a signal handler": (
        "cpp",
        "#include <csignal>\n#include <unistd.h>\nvoid end(int) { _exit(0); }\n"
        "long f(long x) { signal(SIGABRT, end); return 1; }",
    ),
    "exits in Python": ("python", "raise SystemExit(0)"),
}  # fmt: skip


def job(language: str, source: str) -> Job:
    tests = (ScriptTest(TESTS[language]),)
    return Job("job", source, "script", tests, "f", limits=LIMITS, language=language)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "source"), VERDICTS)
def test_the_exit_status_decides(judge: Judge, language: str, source: str) -> None:
    report = judge(job(language, source))
    assert report.verdict == VERDICTS[language, source], report.detail
    assert report.trust == "shared"


@pytest.mark.slow
@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_pass_is_shared_and_worth_no_more_than_a_failure(judge: Judge, what: str) -> None:
    language, source = FORGERIES[what]
    report = judge(job(language, source))
    assert (report.verdict, report.trust) == ("AC", "shared"), report.detail
    problem = Problem(
        "mine/1", "mine", "Double a number.", "script", ({"source": TESTS[language]},), "f",
        extra={"language": language},
    )  # fmt: skip
    failed = tuple(replace(test, verdict=Verdict.WA) for test in report.tests)
    failure = replace(report, verdict=Verdict.WA, tests=failed)
    reward = Reward(RewardConfig())
    score = reward.score(problem, source, report)
    assert score.shared
    assert score.unpaid > 0
    assert score.value == reward.score(problem, source, failure).value


def test_each_test_runs_with_the_program(judge: Judge) -> None:
    tests = (ScriptTest(PYTHON), ScriptTest("assert f(3) == 7"))
    report = judge(replace(job("python", "def f(x):\n    return 2 * x"), tests=tests))
    assert [test.verdict for test in report.tests] == ["AC", "WA"]


def test_the_detail_does_not_quote_the_test(judge: Judge) -> None:
    report = judge(job("javascript", "function g() {}"))
    assert "deepEqual" not in report.tests[0].detail + report.detail
