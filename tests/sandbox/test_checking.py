"""Comparisons other than equality, a problem's checker, tests that share the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.protocol import (
    CallTest,
    Job,
    Limits,
    Report,
    StdioTest,
    UnittestTest,
    Verdict,
)
from tests.sandbox.jobs import QUICK, asserting, call, stdio

Judge = Callable[[Job], Report]


@pytest.mark.parametrize(
    ("returned", "expected", "compare", "tolerance", "verdict"),
    [
        ("[3, 1, 2]", [1, 2, 3], "unordered", None, "AC"),
        ("[3, 1, 2]", [1, 2, 3], "exact", None, "WA"),
        ("[3, 1, 1]", [1, 3], "unordered", None, "WA"),
        ("[3, 1, 1]", [1, 3], "set", None, "AC"),
        ("{3, 1}", [1, 3], "unordered", None, "AC"),
        ("[(2, 1), [1.0, 2]]", [[1, 2], [2, 1]], "unordered", None, "AC"),
        ("[[2, {'a': 1}], [1]]", [[1], [2, {"a": 1}]], "unordered", None, "AC"),
        ("[2.0000001, 1]", [1, 2], "unordered", 1e-6, "AC"),
        ("[[2.0000001, 'a'], [1, 'b']]", [[1, "b"], [2, "a"]], "unordered", 1e-6, "AC"),
        ("[2.1, 1]", [1, 2], "unordered", 1e-6, "WA"),
        ("[2.0000001, 1, 1]", [1, 2], "set", 1e-6, "AC"),
        ("5", 5, "unordered", None, "AC"),
        ("'ab'", ["a", "b"], "unordered", None, "WA"),
        ("[]", [1], "set", None, "WA"),
    ],
)
def test_results_are_compared_in_any_order(
    judge: Judge,
    returned: str,
    expected: object,
    compare: str,
    tolerance: float | None,
    verdict: str,
) -> None:
    job = replace(
        call(f"def f():\n    return {returned}", CallTest((), {}, expected), tolerance=tolerance),
        compare=compare,
    )
    assert judge(job).verdict == verdict


@pytest.mark.parametrize(
    ("printed", "expected", "compare", "tolerance", "verdict"),
    [
        ("1 2\\n3", "1\n2 3\n", "tokens", None, "AC"),
        ("1 2\\n3", "1\n2 3\n", "exact", None, "WA"),
        ("1 2", "1 2 3", "tokens", None, "WA"),
        ("0.30000001 x", "0.3\nx", "tokens", 1e-6, "AC"),
        ("0.100001", "0.1", "tokens", 1e-6, "AC"),
        ("yes", "Yes", "tokens", None, "WA"),
        ("YES 0.33333", "Yes\n0.333334", "loose", None, "AC"),
        ("YES", "Yes", "loose", 1e-6, "AC"),
        ("1000000.1", "1000000.2", "loose", None, "WA"),
        ("10", "11", "loose", None, "WA"),
    ],
)
def test_output_is_compared_by_tokens(
    judge: Judge,
    printed: str,
    expected: str,
    compare: str,
    tolerance: float | None,
    verdict: str,
) -> None:
    assert (
        judge(
            replace(
                stdio(f"print('{printed}')", "", expected, tolerance=tolerance), compare=compare
            )
        ).verdict
        == verdict
    )


def test_many_similar_elements_are_no_sandbox_failure(judge: Judge) -> None:
    source = "def f():\n    return [[0.5] * 200 + [i] for i in range(200)]"
    job = replace(
        call(source, CallTest((), {}, [[0.5] * 200 + [i + 2] for i in range(200)]), tolerance=1e-9),
        compare="unordered",
    )
    assert judge(job).verdict == "WA"


ROOT = "def check(args, got, expected, **kwargs):\n    return abs(got * got - args[0]) < 1e-6"


@pytest.mark.parametrize(
    ("source", "checker", "verdict"),
    [
        ("def f(x):\n    return -x ** 0.5", ROOT, "AC"),
        ("def f(x):\n    return x", ROOT, "WA"),
        ("def f(x):\n    return 'x'", ROOT, "WA"),
        ("def f(x):\n    raise ValueError", ROOT, "RE"),
        ("def f(x):\n    return object()", ROOT, "WA"),
        # the truth value of the result is not the checker's decision
        (
            "def f(x):\n    return [1]",
            "def check(args, got, expected):\n    return got",
            "WA",
        ),
        (
            "def f(x):\n    return 10**9",
            "def check(args, got, expected):\n    return sum(range(got)) == 0",
            "TLE",
        ),
        (
            "def f(x):\n    return 10**11",
            "def check(args, got, expected):\n    return [0] * got == 0",
            "WA",
        ),
        (
            "def f(x):\n    return 1",
            "import os\ndef check(args, got, expected):\n    os._exit(0)",
            "WA",
        ),
    ],
)
def test_the_checker_decides_on_the_returned_value(
    judge: Judge, source: str, checker: str, verdict: str
) -> None:
    tests = (CallTest((4.0,), {}, None), CallTest((9.0,), {}, None))
    # only the wall-clock limit applies to a checker
    limits = Limits(wall_s=1.0 if verdict == "TLE" else 20.0, cpu_s=1.0)
    report = judge(replace(call(source, *tests), checker=checker, limits=limits))
    assert (report.verdict, report.trust, report.total) == (verdict, "apart", 2), report


def test_a_checker_decides_on_output_test_by_test(judge: Judge) -> None:
    checker = (
        "def check(stdin, got, expected):\n    return sum(map(int, got.split())) == int(stdin)"
    )
    job = Job(
        "job",
        "n = int(input())\nprint(2, n - 2 if n > 3 else 0)",
        "stdio",
        (StdioTest("5", ""), StdioTest("3", "")),
        limits=QUICK,
        checker=checker,
    )
    assert [result.verdict for result in judge(job).tests] == ["AC", "WA"]


def test_a_checker_sees_neither_the_program_nor_the_host(judge: Judge) -> None:
    spy = (
        "import os, glob\ndef check(args, got, expected):\n"
        "    return not glob.glob('/proc/[0-9]*/fd/*9999') and not "
        "os.path.exists('/etc/hostname')"
    )
    assert judge(replace(call("def f(a, b):\n    return 0"), checker=spy)).verdict == "AC"


def test_a_broken_checker_makes_the_problem_unusable(judge: Judge) -> None:
    report = judge(replace(call("def f(a, b):\n    return 5"), checker="def check("))
    assert (report.verdict, report.unusable) == (Verdict.INFRA, True)


CASES = """
import unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(f([1, 2, 3]), 6)
    def test_mock(self):
        with patch('random.randint', return_value=9) as drawn:
            self.assertTrue(f([1]) == 1)
            self.assertAlmostEqual(f([0.1, 0.2]), 0.3)
        drawn.assert_not_called()
    def test_error(self):
        with self.assertRaises(TypeError):
            f(None)
        for x in [[], [0]]:
            self.assertEqual(f(x), 0)
"""
REAL = "def f(xs):\n    return sum(xs)\n"


def sharing(source: str, cases: str = CASES) -> Job:
    return Job("job", source, "unittest", (UnittestTest(cases),), "f", limits=QUICK)


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (REAL, "AC"),
        ("def f(xs):\n    return 6", "WA"),
        ("def f(xs):\n    return len(", "CE"),
        ("", "RE"),
    ],
)
def test_unittests_share_the_interpreter_with_the_program(
    judge: Judge, source: str, verdict: str
) -> None:
    report = judge(sharing(source))
    assert (report.verdict, report.trust) == (verdict, "shared"), report


ORDER = """
import unittest
class B(unittest.TestCase):
    def test_b(self):
        self.assertEqual(f([2]), 3)
    def test_a(self):
        self.assertEqual(f([1]), 1)
class A(unittest.TestCase):
    def setUp(self):
        self.skip = f([0])
    @unittest.skip("no row")
    def test_skipped(self):
        self.fail()
    @unittest.expectedFailure
    def test_fails(self):
        self.assertEqual(f([0]), -1)
    def test_parts(self):
        for x in (0, 1):
            with self.subTest(x):
                self.assertEqual(f([x]), 3)
    def test_raises(self):
        f(None)
    def test_that_skips_itself(self):
        self.skipTest("no row")
"""


def test_methods_run_in_one_process_in_the_order_of_unittest(judge: Judge) -> None:
    source = "seen = []\ndef f(xs):\n    seen.extend(xs)\n    return sum(seen)"
    rows = [(row.name, row.verdict) for row in judge(sharing(source, ORDER)).tests]
    assert rows == [
        ("B.test_a", "AC"),
        ("B.test_b", "AC"),
        ("A.test_fails", "AC"),
        ("A.test_parts", "WA"),
        ("A.test_raises", "RE"),
    ]


def test_each_unittest_method_has_the_time_limits_of_a_test(judge: Judge) -> None:
    busy = (
        "import time\ndef f(xs):\n    until = time.process_time() + 0.2\n"
        "    while time.process_time() < until: pass\n    return sum(xs)\n"
    )
    cases = "import unittest\nclass T(unittest.TestCase):\n" + "".join(
        f"    def test_{at}(self): self.assertEqual(f([{at}]), {at})\n" for at in range(3)
    )
    limits = Limits(wall_s=20.0, cpu_s=0.4)
    assert judge(replace(sharing(busy, cases), limits=limits)).verdict == "AC"
    report = judge(replace(sharing(busy, cases), limits=replace(limits, cpu_s=0.1)))
    assert (report.verdict, report.total) == ("TLE", 1)


@pytest.mark.slow
def test_time_of_the_judge_is_not_charged_to_the_program(judge: Judge) -> None:
    # wall-clock time: on a busy machine, this much CPU time would take longer than the limit on
    # wall time allows
    check = (
        "import time\n    until = time.monotonic() + 4.2\n"
        "    while time.monotonic() < until: pass\n    assert candidate(1) == 2"
    )
    report = judge(
        asserting("def f(x):\n    return x + 1", check, limits=Limits(wall_s=4.0, cpu_s=1.0))
    )
    assert report.verdict == "AC"
    assert report.tests[0].wall_s > 4.0


@pytest.mark.slow
def test_an_endless_test_ends_within_twice_the_limit(judge: Judge) -> None:
    report = judge(
        asserting(
            "def f(x):\n    return x",
            "while True: candidate(1)",
            limits=Limits(wall_s=0.4, cpu_s=9.0),
        )
    )
    assert report.verdict == "TLE", "it ends before 9 s of CPU time are used"
    assert report.tests[0].wall_s < 6.0, "it ends before 9 s of CPU time are used"


@pytest.mark.parametrize("cases", ["import (", "x = 1"])
def test_broken_unittest_cases_make_the_problem_unusable(judge: Judge, cases: str) -> None:
    report = judge(sharing(REAL, cases))
    assert (report.verdict, report.unusable) == (Verdict.INFRA, True)
