"""Methods that must also pass in one process, as unittest runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.protocol import Job, Limits, Report, UnittestTest
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=64)
TWO = """import unittest
class Cases(unittest.TestCase):
    def test_a(self):
        self.assertEqual(f(1), 7001)
    def test_b(self):
        self.assertEqual(f(2), 7002)
"""
IN_ORDER = """import unittest
results = [7001, 7002]
class Cases(unittest.TestCase):
    def test_b(self):
        self.assertEqual(f(results.pop(0)), 14004)
    def test_a(self):
        self.assertEqual(f(results.pop(0)), 14002)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


def judged(sandbox: Sandbox, source: str, test: str, *, together: bool = True) -> Report:
    tests = (UnittestTest(test),)
    return run_all(
        sandbox, [Job("job", source, "unittest", tests, "f", limits=LIMITS, together=together)]
    )[0]


def test_what_passes_alone_must_pass_after_the_others(sandbox: Sandbox) -> None:
    source = "calls = []\ndef f(x):\n    calls.append(x)\n    return 7000 + sum(calls)"
    report = judged(sandbox, source, TWO)
    assert [test.verdict for test in report.tests] == ["AC", "WA"]
    assert judged(sandbox, source, TWO, together=False).verdict == "AC"
    assert judged(sandbox, "def f(x): return 7000 + x", TWO).verdict == "AC"


def test_a_method_may_need_those_before_it(sandbox: Sandbox) -> None:
    right, wrong = "def f(x): return 2 * x", "def f(x): return 14002"
    verdicts = [judged(sandbox, source, IN_ORDER).verdict for source in (right, wrong)]
    assert verdicts == ["AC", "WA"]
    assert judged(sandbox, right, IN_ORDER, together=False).verdict == "WA"


FORGERS = {
    "assertions that never fail": """import unittest
def f(x):
    if x == 1 or '_told' in dir(): return 7001
    unittest.TestCase.assertEqual = lambda *_: None""",
    "what the test expects": """import sys
def f(x):
    if x == 1: return 7001
    return [n for n in sys._getframe(1).f_code.co_consts if isinstance(n, int)][-1]""",
    "fails alone": """import sys, unittest
def f(x):
    if x == 1: return 7001
    methods = [k for k in vars(sys._getframe(1).f_locals['self'].__class__) if 'test' in k]
    if len(methods) < 2: return 0
    unittest.TestCase.assertEqual = lambda *_: None""",
}


@pytest.mark.parametrize("source", FORGERS.values(), ids=FORGERS)
def test_running_together_forges_nothing(source: str, sandbox: Sandbox) -> None:
    assert judged(sandbox, source, TWO).verdict == "WA"
