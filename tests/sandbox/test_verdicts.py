"""What programs do, and the verdicts that they get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.protocol import CallTest, Job, Limits, Report, StdioTest, Verdict
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import QUICK, asserting, call, stdio

Judge = Callable[[Job], Report]
SHORT = Limits(wall_s=0.5, cpu_s=0.5)
SMALL = Limits(wall_s=10.0, cpu_s=10.0, memory_mb=128, output_kb=64)


@pytest.mark.parametrize(
    ("job", "verdict"),
    [
        (call("def f(a, b):\n    return a + b"), "AC"),
        (call("def f(a, b):\n    return a - b"), "WA"),
        (call("f = lambda a, b: sum((a, b))"), "AC"),
        (call("class f:\n    def __new__(cls, a, b):\n        return a + b"), "AC"),
        (call("class Solution:\n    def f(self, a, b):\n        return a + b"), "AC"),
        (replace(call("def f(a, b):\n    return a + b"), entry_point="Solution().f"), "AC"),
        (call("class Solution:\n    def g(self, a, b):\n        return a + b"), "RE"),
        (
            asserting(
                "class Solution:\n    def f(self, x):\n        return x", "assert candidate(1) == 1"
            ),
            "RE",
        ),
        (call("def f(a, b):\n    raise ValueError('no')"), "RE"),
        (call("def g(a, b):\n    return a + b"), "RE"),
        (call("def f(a, b)\n    return a + b"), "CE"),
        (call("x = '\0'"), "CE"),
        (call("x = '\ud800'"), "CE"),
        (call(""), "RE"),
        (call("import os\nos._exit(0)"), "RE"),
        (call("def f(a, b):\n    import os; os.kill(os.getpid(), 11)"), "RE"),
        (call("def f(a, b):\n    return object()"), "WA"),
        (call("import nothing_of_that_name\ndef f(a, b):\n    return a + b"), "RE"),
        (call("def f(a, b):\n    while True: pass", limits=SHORT), "TLE"),
        (call("import time\ntime.sleep(9)", limits=SHORT), "TLE"),
        (call("def f(a, b):\n    return len(bytearray(2**30))", limits=SMALL), "MLE"),
        (call("def f(a, b):\n    print('x' * 10**6)\n    return a + b", limits=SMALL), "OLE"),
        (
            call(
                "import threading, tempfile, random, numpy\ndef f(a, b):\n"
                "    return int(numpy.sum([a, b]))"
            ),
            "AC",
        ),
        (
            call(
                "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: 'int'\n"
                "def f(a, b):\n    return P(a).x + b"
            ),
            "AC",
        ),
        (
            call("def f(a, b):\n    return a + b\nif __name__ == '__main__':\n    f(input(), 1)"),
            "AC",
        ),
        (stdio("print(int(input()) + 1)", "4\n", "5\n"), "AC"),
        (stdio("print(int(input()) + 1)\nraise SystemExit", "4\n", "5\n"), "AC"),
        (stdio("print(int(input()) + 1)\nraise SystemExit(1)", "4\n", "5\n"), "RE"),
        (stdio("print(int(input()) + 1)\nexit()\nprint(7)", "4\n", "5\n"), "AC"),
        (stdio("print(int(input()) + 1)\nquit(1)", "4\n", "5\n"), "RE"),
        (stdio("import sys\nprint(sum(map(int, sys.stdin)), end='')", "1\n2\n", "3\n"), "AC"),
        (stdio("import sys\nprint(5)\nsys.stdout.close()", "4\n", "5\n"), "AC"),
        (stdio("import os\nos.write(1, b'5')", "", "5"), "AC"),
        (stdio("print(6)", "", "5"), "WA"),
        (stdio("print('é')", "", "é"), "AC"),
        (stdio("print(1 / 0)", "", "5"), "RE"),
        (stdio("if", "", "5"), "CE"),
        (stdio("print(5)\nwhile True: pass", "", "5", limits=SHORT), "TLE"),
        (stdio("while True: print('x' * 1000)", "", "5", limits=SMALL), "OLE"),
        (stdio("print(0.30000001)", "", "0.3", tolerance=1e-6), "AC"),
        (stdio("import atexit\natexit.register(print, 5)", "", "5"), "AC"),
        (asserting("def f(x):\n    return x + 1", "assert candidate(1) == 2"), "AC"),
        (asserting("def f(x):\n    return x", "assert candidate(1) == 2"), "WA"),
        (asserting("def f(x):\n    raise KeyError(x)", "assert candidate(1) == 2"), "RE"),
        (
            asserting(
                "def f(x):\n    raise KeyError(x)",
                (
                    "try:\n        candidate(1)\n    except KeyError:\n        return\n"
                    "    assert False"
                ),
            ),
            "AC",
        ),
        (asserting("def f(", "assert candidate(1) == 2"), "CE"),
        (
            asserting("def f(x):\n    while True: pass", "assert candidate(1) == 2", limits=SHORT),
            "TLE",
        ),
        (asserting("def f(x):\n    import os; os._exit(0)", "assert candidate(1) == 2"), "RE"),
        (
            asserting(
                "def f(x):\n    return bytearray(2**30)", "assert candidate(1) == 2", limits=SMALL
            ),
            "MLE",
        ),
        (
            asserting(
                "def f(x):\n    return g(x)",
                "assert helper(candidate(1)) == 2",
                prompt="def helper(x):\n    return x\n",
            ),
            "RE",
        ),
        (
            asserting(
                "def f(x):\n    return x + 1",
                "assert helper(candidate(1)) == 4",
                prompt="def helper(x):\n    return 2 * x\n",
            ),
            "AC",
        ),
        (asserting("def f(x):\n    return x + 1", "assert f(1) == 2"), "AC"),
        (
            asserting(
                "def f(x):\n    return (x, {1: {2}})", "assert candidate([1]) == ([1], {1: {2}})"
            ),
            "AC",
        ),
    ],
)
def test_programs_get_the_expected_verdict(judge: Judge, job: Job, verdict: str) -> None:
    report = judge(job)
    assert report.verdict == verdict, report
    assert report.total == len(job.tests)


def test_each_test_has_its_own_result(judge: Judge) -> None:
    report = judge(
        call(
            "def f(x):\n    return 1 // x",
            *(CallTest((x,), {}, want) for x, want in ((1, 1), (0, 0), (2, 1), (-1, -1))),
        )
    )
    assert [result.verdict for result in report.tests] == ["AC", "RE", "WA", "AC"]
    assert (report.verdict, report.passed, report.total) == ("RE", 2, 4)


def test_tests_that_did_not_run_are_never_accepted(judge: Judge) -> None:
    report = judge(
        call(
            "def f(x):\n    if x == 2:\n        import os; os._exit(0)\n    return x",
            *(CallTest((x,), {}, x) for x in range(1, 5)),
        )
    )
    assert [result.verdict for result in report.tests] == ["AC", "RE", "RE", "RE"]


def test_a_program_that_exits_keeps_only_passed_tests(
    judge: Judge,
) -> None:
    source = (
        "import os\nseen = []\ndef f(x):\n    seen.append(x)\n    if len(seen) > 1:\n"
        "        os._exit(0)\n    return x\n"
    )
    report = judge(
        asserting(
            source,
            "assert candidate(1) == 1",
            "assert candidate(2) == 2",
            "assert candidate(3) == 3",
        )
    )
    assert [result.verdict for result in report.tests] == ["AC", "RE", "RE"]


def test_each_stdio_test_is_a_fresh_run(judge: Judge) -> None:
    source = "import os\nprint(len(os.listdir()) - 1)\nopen('left', 'w').close()\n"
    report = judge(
        Job(
            "job",
            source,
            "stdio",
            (StdioTest("", "0"), StdioTest("", "0"), StdioTest("", "0")),
            limits=QUICK,
        )
    )
    assert report.verdict is Verdict.AC


def test_randomness_and_hashes_are_deterministic(judge: Judge) -> None:
    source = (
        "import random\ndef f(a, b):\n"
        "    return [random.random(), list({'a', 'b', 'c', 'd'}), hash('x')]"
    )
    assert len({judge(call(source)).tests[0].detail for _ in range(6)}) == 1


def test_time_and_memory_are_measured(judge: Judge) -> None:
    report = judge(
        call(
            "held = bytearray(b'x' * 50_000_000)\nimport time\nbusy = sum(range(3_000_000))\n"
            "def f(a, b):\n    return a + b"
        )
    )
    assert report.verdict is Verdict.AC
    assert 45e6 < report.peak_bytes < 200e6
    assert 0.01 < report.cpu_s < 2.0
    assert report.wall_s >= report.tests[0].wall_s > 0


def test_cpu_time_is_summed_over_processes(judge: Judge) -> None:
    source = (
        "import os, time\nfor _ in range(3):\n    if not os.fork():\n        while True: pass\n"
        "def f(a, b):\n    time.sleep(5)\n    return 5"
    )
    assert judge(call(source, limits=Limits(wall_s=10.0, cpu_s=0.3))).verdict is Verdict.TLE


def test_changed_arguments_are_fresh_in_the_next_test(judge: Judge) -> None:
    report = judge(
        call(
            "def f(xs):\n    xs.append(1)\n    return len(xs)",
            CallTest(([],), {}, 1),
            CallTest(([],), {}, 1),
        )
    )
    assert report.verdict is Verdict.AC


def test_broken_tests_give_infra(judge: Judge) -> None:
    assert judge(asserting("def f(x):\n    return x", "assert (")).verdict is Verdict.INFRA


def test_an_invalid_job_is_refused_by_name(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="job"):
        run_all(sandbox, [Job("job", "", "call", ())])
    with pytest.raises(ValueError, match="plain data"):
        run_all(sandbox, [call("", CallTest((object(),), {}, 1))])


def test_reports_come_in_order_of_completion(sandbox: Sandbox) -> None:
    slow = Job("slow", "import time\ntime.sleep(1.5)", "stdio", (StdioTest("", ""),), limits=QUICK)
    quick = [Job(f"quick{i}", "", "stdio", (StdioTest("", ""),), limits=QUICK) for i in range(4)]
    assert next(iter(sandbox.run([slow, *quick]))).job_id != "slow"
