"""Attacks on unittests, which run in the program's own process.

A program can forge their result. The report then says so: its trust is `shared`. No program makes
the sandbox itself fail.
"""

from __future__ import annotations

import pytest

from sandbox.protocol import Job, Limits, Report, UnittestTest, Verdict
from sandbox.sandbox import Sandbox, run_all

LIMITS = Limits(wall_s=2.0, cpu_s=2.0, memory_mb=256, output_kb=64)
CASES = """
import unittest
class TestCases(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(f([1, 2, 3]), 6)
    def test_error(self):
        with self.assertRaises(TypeError):
            f(None)
"""
SEND = "import os, struct\ndef send(text): os.write(4, struct.pack('>I', len(text)) + text)\n"
ATTACKS = {
    "assertions that are none": (
        "import unittest\nfor n in dir(unittest.TestCase):\n"
        "    if n.startswith('assert'): setattr(unittest.TestCase, n, lambda *a, **k: None)\n"
        "def f(xs): return 0"
    ),
    "results that forget": (
        "import unittest\n"
        "unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *a: None\n"
        "def f(xs): return 0"
    ),
    "a run that runs nothing": (
        "import unittest\nunittest.TestCase.run = lambda *_: None\ndef f(xs): return 0"
    ),
    "a pass of its own writing": (
        SEND + 'def f(xs):\n    send(b\'M["a","AC",""]\')\n    send(b\'R\')\n    os._exit(0)'
    ),
    "a pass of its own writing, before it is loaded": (
        SEND + "send(b'L'); send(b'R')\ndef f(xs): return 0"
    ),
    "a verdict of the sandbox": (
        SEND + 'def f(xs):\n    send(b\'M["a","INFRA",""]\')\n    send(b\'R\')'
    ),
    "results without an end": SEND + 'def f(xs):\n    while True: send(b\'M["a","AC",""]\')',
    "a result a thousand levels deep": SEND + "def f(xs): send(b'M' + b'[' * 9000)",
    "texts that are none": SEND + "def f(xs): send(b'M[1,[],{}]')",
    "an early end": "import os\ndef f(xs): os._exit(0)",
    "a skipped method": "import unittest\ndef f(xs): raise unittest.SkipTest",
    "a patched exec": "import builtins\nbuiltins.exec = builtins.compile = None\ndef f(xs): pass",
}
HONEST_FAILURES = (
    "a run that runs nothing",
    "an early end",
    "a skipped method",
    "texts that are none",
)


def report_of(sandbox: Sandbox, source: str) -> Report:
    job = Job("job", source, "unittest", (UnittestTest(CASES),), "f", limits=LIMITS)
    return run_all(sandbox, [job])[0]


@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_has_shared_trust_and_is_no_sandbox_failure(sandbox: Sandbox, what: str) -> None:
    report = report_of(sandbox, ATTACKS[what])
    assert report.trust == "shared"
    assert report.verdict is not Verdict.INFRA


@pytest.mark.parametrize("what", HONEST_FAILURES)
def test_a_run_without_a_passed_method_is_not_accepted(sandbox: Sandbox, what: str) -> None:
    assert report_of(sandbox, ATTACKS[what]).verdict in (Verdict.WA, Verdict.RE)
