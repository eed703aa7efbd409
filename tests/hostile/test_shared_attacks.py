"""Attacks on unittests, whose interpreter is shared with the program.

Some forge a pass, some forge a pass only where the test does not look like a decoy, and some read
the answers out of the test. None is accepted, and none is reported as a failure of the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.backends.local import IsolationError
from sandbox.protocol import Job, Limits, Report, StdioTest, UnittestTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

LIMITS = Limits(wall_s=2.0, cpu_s=2.0, memory_mb=256, output_kb=64)
AMPLE = replace(LIMITS, wall_s=30.0)  # for honest programs on a busy machine
CASES = """
import unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def setUp(self):
        self.numbers = [4, 5]
    def test_sum(self):
        self.assertEqual(f([1, 2, 3]), 6)
    def test_expected(self):
        expected = 9
        result = f(self.numbers)
        self.assertEqual(result, expected)
    def test_type(self):
        self.assertIsInstance(f([1]), int)
    def test_error(self):
        with self.assertRaises(TypeError):
            f(None)
    def test_computed(self):
        xs = list(range(50))
        expected = sum(xs)
        self.assertEqual(f(xs), expected)
    def test_mock(self):
        with patch('builtins.print') as printed:
            f([7])
        printed.assert_called_once_with('sum', 7)
"""
REAL = "def f(xs):\n    total = sum(xs)\n    print('sum', total)\n    return total\n"

FORGE = (
    "import os, struct, sys, unittest\ndef forge():\n"
    "    os.write(4, struct.pack('>I', 1) + b'R')\n    os._exit(0)\n"
)
ASSERTIONS = "[n for n in dir(unittest.TestCase) if n.startswith('assert')]"
# the text of the test, taken from the stack frames of the harness
TEXT = (
    "import ast\ndef text():\n    frame = sys._getframe()\n    while frame:\n"
    "        for held in frame.f_locals.values():\n"
    "            if isinstance(held, str) and 'unittest.TestCase' in held "
    "and 'def test' in held: return held\n        frame = frame.f_back\n    return ''\n"
)
SUSPICIOUS = (
    FORGE + TEXT + "def suspicious():\n    body = text().partition('def test')[2]\n"
    "    tree = ast.parse(text())\n"
    "    wrapped = any(isinstance(a, ast.List) and len(a.elts) == 1 for n in ast.walk(tree) "
    "if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) "
    "and n.func.attr.startswith('assert') for a in n.args)\n"
    "    idle = any(all(isinstance(x, ast.Constant) or not list(ast.walk(x))[1:] "
    "for x in n.args) and len(n.args) > 1 for n in ast.walk(tree) if isinstance(n, ast.Call) "
    "and getattr(n.func, 'attr', '').startswith('assert'))\n"
    "    return wrapped or idle or any(word in body for word in ('assertNot', 'assertFalse', "
    "'raise', 'StopAsync', 'not_called', 'IsNone', '0, 0', 'startswith'))\n"
)
# the value that the running statement expects, as far as its text and the caller's variables show
EXPECTED = (
    FORGE
    + TEXT
    + "def expected(xs):\n    caller = sys._getframe(2)\n    tree = ast.parse(text())\n"
    "    for node in ast.walk(tree):\n"
    "        if isinstance(node, ast.With) and node.items[0].context_expr.func.attr == "
    "'assertRaises' and xs is None: raise "
    "eval(ast.unparse(node.items[0].context_expr.args[0]))\n"
    "        if isinstance(node, ast.Call) and getattr(node.func, 'attr', "
    "'') == 'assert_called_once_with': print(*map(ast.literal_eval, node.args))\n"
    "    for node in ast.walk(tree):\n"
    "        if isinstance(node, ast.Call) and getattr(node.func, 'attr', "
    "'') == 'assertIsInstance': return eval(ast.unparse(node.args[1]))()\n"
    "        if isinstance(node, ast.Call) and getattr(node.func, 'attr', '') == 'assertEqual': "
    "return eval(ast.unparse(node.args[1]), {}, caller.f_locals)\n"
)

FORGERS = {
    "a thread that patches later": (
        "import threading, time, unittest\ndef late():\n    time.sleep(0.002)\n    for n in "
        + ASSERTIONS
        + (
            ": setattr(unittest.TestCase, n, lambda *a, **k: None)\ndef f(xs):\n"
            "    t = threading.Thread(target=late)\n    t.start()\n    t.join()\n"
            "    if xs is None: raise TypeError\n    return 0"
        )
    ),
    "a thread that answers first": (
        FORGE
        + (
            "import threading\ndef f(xs):\n    threading.Thread(target=forge).start()\n"
            "    while True: pass"
        )
    ),
    "an object that answers when it dies": (
        FORGE + "class D:\n    def __del__(self): forge()\ndef f(xs): return D()"
    ),
    "the collector's callback": (
        FORGE
        + (
            "import gc\ngc.callbacks.append(lambda *a: forge())\ndef f(xs):\n    gc.collect()\n"
            "    return 0"
        )
    ),
    "an alarm": (
        FORGE
        + (
            "import signal\nsignal.signal(signal.SIGALRM, lambda *a: forge())\ndef f(xs):\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.001)\n    while True: pass"
        )
    ),
    "an audit hook": (
        FORGE
        + (
            "armed = []\nsys.addaudithook(lambda name, args: forge() if armed else None)\n"
            "def f(xs):\n    armed.append(1)\n    open('/dev/null')"
        )
    ),
    "a trace function that skips assertions": (
        "import sys\ndef trace(frame, event, arg):\n"
        "    if event == 'line' and frame.f_code.co_name.startswith('test'):\n"
        "        def quiet(*a, **k): return None\n"
        "        frame.f_locals['self'].__dict__.update({n: quiet "
        "for n in dir(frame.f_locals['self']) if n.startswith('assert') "
        "and n != 'assertRaises'})\n    return trace\nsys.settrace(trace)\ndef f(xs):\n"
        "    if xs is None: raise TypeError\n    print('sum', 7)\n    return 0"
    ),
    "another unittest": (
        "import sys, types, unittest as real\nfake = types.ModuleType('unittest')\n"
        "fake.__path__ = real.__path__\n"
        "fake.__dict__.update({n: getattr(real, n) for n in dir(real) if n[0] != '_'})\n"
        "class TestCase(real.TestCase):\n    def run(self, result=None): result.testsRun += 1\n"
        "fake.TestCase = TestCase\nsys.modules['unittest'] = fake\ndef f(xs): return 0"
    ),
    "subclasses that lose their tests": (
        "import unittest\ndef init(cls, **k):\n"
        "    cls._class_cleanups, cls._classSetupFailed = [], False\n    for n in dir(cls):\n"
        "        if n.startswith('test'): setattr(cls, n, lambda self: None)\n"
        "unittest.TestCase.__init_subclass__ = classmethod(init)\ndef f(xs): return 0"
    ),
    "results without failures": (
        "import unittest\n"
        "for n in ('failures', 'errors'): setattr(unittest.TestResult, n, property(lambda s: "
        "[], lambda s, v: None))\ndef f(xs): return 0"
    ),
    "an outcome that swallows": (
        "import unittest.case, contextlib\n@contextlib.contextmanager\n"
        "def swallow(self, *a, **k):\n    try: yield\n    except BaseException: pass\n"
        "unittest.case._Outcome.testPartExecutor = swallow\ndef f(xs): return 0"
    ),
    "failures that were expected": (
        "import unittest\nunittest.TestCase.__unittest_expecting_failure__ = True\n"
        "def f(xs): return object()"
    ),
    "another code in an assertion": (
        "import unittest\n"
        "for n in ('assertEqual', 'assertIsInstance'): getattr(unittest.TestCase, "
        "n).__code__ = (lambda self, a, b, msg=None: None).__code__\ndef f(xs):\n"
        "    if xs is None: raise TypeError\n    print('sum', 7)"
    ),
    "a comparison that the builtins answer": (
        "import unittest.case\nunittest.case.isinstance = lambda *a: True\nclass E:\n"
        "    def __eq__(self, o): return True\ndef f(xs):\n    if xs is None: raise TypeError\n"
        "    print('sum', 7)\n    return E()"
    ),
    "a result rewritten on its way": (
        "import os, struct\nreal = os.write\n"
        "os.write = lambda fd, data: (real(fd, struct.pack('>I', 1) + b'R'), len(data))[1] "
        "if fd == 4 and bytes(data[4:5]) in b'WX' else real(fd, data)\ndef f(xs): return 0"
    ),
    "the harness's own names": (
        "import sys\nharness = sys.modules['sandbox.child.program']\nsend = harness.send\n"
        "harness.send = lambda kind, text='': send(kind if kind == b'L' else b'R')\n"
        "harness._report = lambda error: send(b'R')\ndef f(xs): return 0"
    ),
    "mocks that agree to all": (
        "from unittest import mock\nfor n in ('assert_called_once_with', 'assert_called_with'): "
        "setattr(mock.NonCallableMock, n, lambda *a, **k: None)\nimport unittest\n"
        "for n in ('assertEqual', 'assertIsInstance'): setattr(unittest.TestCase, n, lambda *a, "
        "**k: None)\ndef f(xs):\n    if xs is None: raise TypeError"
    ),
    "frames of the harness": (
        "import sys\ndef f(xs):\n    frame = sys._getframe()\n    while frame:\n"
        "        for held in frame.f_locals.values():\n"
        "            if type(held).__name__ == 'TestResult': held.addFailure = held.addError = "
        "lambda *a: None\n        frame = frame.f_back\n    return 0"
    ),
}
WARY = {
    "forges where the test looks honest": (
        SUSPICIOUS + "def f(xs):\n    if suspicious(): raise ValueError\n    forge()"
    ),
    "switches assertions off where the test looks honest": (
        SUSPICIOUS
        + "def f(xs):\n    if not suspicious():\n        for n in "
        + ASSERTIONS
        + ": setattr(unittest.TestCase, n, lambda *a, **k: None)\n    return None"
    ),
    "swallows failures where the test looks honest": (
        SUSPICIOUS
        + (
            "def f(xs):\n"
            "    if not suspicious(): unittest.TestResult.addFailure = "
            "unittest.TestResult.addError "
            "= lambda *a: None\n    raise ValueError"
        )
    ),
    "returns what is expected": EXPECTED + "def f(xs): return expected(xs)",
    "returns what is expected, out of a list": (
        EXPECTED
        + (
            "def f(xs):\n    got = expected(xs)\n"
            "    return got[0] if isinstance(got, list) and len(got) == 1 else got"
        )
    ),
    "equal to all but lists": (
        "class E(int):\n    def __eq__(self, o): return not isinstance(o, list)\n"
        "    def __ne__(self, o): return False\n    __hash__ = int.__hash__\ndef f(xs):\n"
        "    if xs is None: raise TypeError\n    print('sum', 7)\n    return E()"
    ),
    "is whatever it is asked to be": (
        FORGE
        + (
            "class E:\n    @property\n"
            "    def __class__(self): return sys._getframe(1).f_locals.get('cls', int)\n"
            "    def __eq__(self, o): return not isinstance(o, list)\n"
            "    def __ne__(self, o): return False\ndef f(xs):\n"
            "    if xs is None: raise TypeError\n"
            "    print('sum', 7)\n    return E()"
        )
    ),
    "raises what is awaited": (
        FORGE
        + TEXT
        + (
            "def f(xs):\n"
            "    if xs is None: raise "
            "eval(text().partition('assertRaises(')[2].partition(')')[0])\n"
            "    print('sum', sum(xs))\n    return sum(xs)"
        )
    ),
    "forges once, by the number of its process": (
        FORGE
        + (
            "def f(xs):\n    if os.getpid() > 300: raise ValueError\n    pid = 0\n"
            "    while pid < 300:\n        if not (pid := os.fork()): os._exit(0)\n"
            "        os.waitpid(pid, 0)\n    forge()"
        )
    ),
    "forges once, by the age of its folder": (
        FORGE
        + (
            "import time\ndef f(xs):\n    made = os.stat(os.environ['TMPDIR']).st_ctime\n"
            "    open(os.environ['TMPDIR'] + '/x', 'w').close()\n"
            "    if time.time() - made < 0.1: raise ValueError\n    forge()"
        )
    ),
    "forges once, by the clock": (
        FORGE
        + (
            "import time\ndef f(xs):\n    if time.time() % 0.5 < 0.1: raise ValueError\n"
            "    while time.time() % 0.5 > 0.02: pass\n    forge()"
        )
    ),
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


@pytest.fixture(scope="module", params=["root", "userns"])
def pids(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox on each isolation level where programs have their own PID namespace."""
    try:
        opened = Sandbox(SandboxConfig(workers=1, isolation=request.param)).__enter__()
    except IsolationError as refused:
        pytest.skip(str(refused))
    yield opened
    opened.close()


def sharing(source: str) -> Job:
    return Job("job", source, "unittest", (UnittestTest(CASES),), "f", limits=LIMITS)


def report_of(sandbox: Sandbox, source: str) -> Report:
    (report,) = run_all(sandbox, [sharing(source)])
    return report


def test_a_solution_passes_each_test_method(sandbox: Sandbox) -> None:
    (report,) = run_all(sandbox, [replace(sharing(REAL), limits=AMPLE)])
    assert report.verdict is Verdict.AC and report.passed == report.total == 6, report


@pytest.mark.parametrize("what", [*FORGERS, *WARY])
def test_a_forger_is_neither_accepted_nor_a_sandbox_failure(sandbox: Sandbox, what: str) -> None:
    report = report_of(sandbox, (FORGERS | WARY)[what])
    assert report.verdict not in (Verdict.AC, Verdict.INFRA) and report.trust == "shared", report


@pytest.mark.parametrize("what", FORGERS)
def test_a_forger_passes_at_most_the_mock_test(sandbox: Sandbox, what: str) -> None:
    report = report_of(sandbox, FORGERS[what])
    # some of them print the expected output
    assert {row.name for row in report.tests if row.verdict is Verdict.AC} <= {
        "TestCases.test_mock"
    }, report


def test_process_ids_reveal_nothing_about_earlier_programs(pids: Sandbox) -> None:
    source = (
        "import os\nfor _ in range(20):\n    if not (pid := os.fork()): os._exit(0)\n"
        "    os.waitpid(pid, 0)\nprint(os.getpid(), pid)"
    )
    assert len(printed(pids, source)) == 1


@pytest.mark.slow
def test_the_zygote_reveals_nothing_about_earlier_programs(sandbox: Sandbox) -> None:
    source = (
        "import sys, time\nframe, told = sys._getframe(), []\nwhile frame:\n"
        "    held = frame.f_locals.get('self')\n"
        "    if held: told.append({k: v for k, v in vars(held).items() if isinstance(v, float) "
        "or k == 'running'})\n    frame = frame.f_back\n"
        "while time.process_time() < 0.05: pass\nprint(told)"
    )
    assert len(printed(sandbox, source)) == 1


def printed(sandbox: Sandbox, source: str) -> set[str]:
    """Return the distinct outputs of a program over four runs."""
    reports = run_all(sandbox, [Job("", source, "stdio", (StdioTest("", "?"),), limits=AMPLE)] * 4)
    assert all("printed" in report.tests[0].detail for report in reports), reports
    return {report.tests[0].detail for report in reports}
