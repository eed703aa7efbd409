"""A unittest method in two parts.

A judge decides on what the program's process reports, and the expected values are never in the
program's process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sandbox.decoys.decoys import alone, find_test_methods
from sandbox.decoys.methods import methods
from sandbox.decoys.split import Split, split
from sandbox.protocol import Job, Limits, Report, UnittestTest
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=64)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


def case(body: str, *, more: str = "", before: str = "") -> str:
    text = f"import unittest\n{before}\nclass Cases(unittest.TestCase):\n"
    text += "".join(f"    {line}\n" for line in more.splitlines())
    return (
        text
        + "    def test_it(self):\n"
        + "".join(f"        {line}\n" for line in body.splitlines())
    )


def parts(text: str) -> Split | None:
    tree = ast.parse(text)
    ((_, c, m),) = find_test_methods(tree)
    single = alone(tree, c, m)
    return split(single, c, single.body[c].body[m])  # type: ignore[attr-defined]


def judged(sandbox: Sandbox, source: str, text: str) -> Report:
    (report,) = run_all(
        sandbox, [Job("job", source, "unittest", (UnittestTest(text),), "f", limits=LIMITS)]
    )
    return report


HIDDEN = {
    "an argument": case("self.assertEqual(f(1), 7001)"),
    "a name": case("want = [7001]\ngot = f(1)\nself.assertEqual(got, want)"),
    "what is computed": case("want = 7000\nself.assertEqual(f(1), want + 1)"),
    "an attribute of setUp": case(
        "self.assertEqual(f(1), self.want)", more="def setUp(self):\n    self.want = {'a': 7001}"
    ),
    "an attribute of the class": case(
        "self.assertEqual(f(1), self.want)", more="want = {'a': 7001}"
    ),
    "a global": case("self.assertEqual(f(1), WANT)", before="WANT = 7001"),
    "a docstring and a message": case(
        '"""It is 7001."""\nself.assertEqual(f(1), 7001, "not 7001")'
    ),
    "an equality": case("self.assertTrue(f(1) == 7001)"),
    "an assert": case("assert f(1) == 7001"),
    "a column of a table": case(
        "for given, want in [(1, 7001), (2, 7001)]:\n    self.assertEqual(f(given), want)"
    ),
    "a subtest": case(
        "for given, want in [(1, 7001), (2, 7001)]:\n    with self.subTest(want=want):\n"
        "        self.assertEqual(f(given), want)"
    ),
    "a helper": case(
        "self.check(1, 7001)",
        more="def check(self, given, want):\n    self.assertEqual(f(given), want)",
    ),
    "what a helper computes": case(
        "self.assertEqual(f(1), self.want(7000))", more="def want(self, x):\n    return x + 1"
    ),
    "below a mock": case(
        "with patch('os.getcwd', return_value='x'):\n    self.assertEqual(f(1), 7001)",
        before="from unittest.mock import patch",
    ),
    "the arguments of a mock": case(
        "with patch('os.kill') as kill:\n    f(1)\nkill.assert_called_once_with(1, 7001)",
        before="from unittest.mock import patch",
    ),
    "the content of a file": case(
        "f(1)\nwith open('x') as file:\n    self.assertEqual(file.read(), '7001')"
    ),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_expected_values_are_only_in_the_judge_part(what: str) -> None:
    split_parts = parts(HIDDEN[what])
    assert split_parts and split_parts.hides
    assert "700" not in split_parts.doing and "700" in split_parts.checks


GUESSED = ["None", "True", "0", "[]", "{}", "''"]


@pytest.mark.parametrize("value", GUESSED)
def test_guessable_expected_values_hide_nothing(value: str) -> None:
    split_parts = parts(case(f"want = {value}\nself.assertEqual(f(1), want)"))
    assert split_parts and not split_parts.hides


BOTH = {
    "def f(x): return x * 2": case("self.assertEqual(f(2), 4)\nself.assertEqual(f([1]), [1, 1])"),
    "def f(xs): xs.sort()": case("xs = [2, 1]\nf(xs)\nself.assertEqual(xs, [1, 2])"),
    "def f(x): return [x, x]": case(
        "for got in f(3):\n    self.assertIn(got, [3, 4])\nself.assertEqual(f(3), [3, 3])"
    ),
    "import math\ndef f(x): return math.inf": case("self.assertEqual(f(1), float('inf'))"),
    "def f(x): return float(10**17) + x": case("self.assertEqual(f(1), float(10**17))"),
    "from collections import Counter\ndef f(x): return Counter(x)": case(
        "got = f('aab')\nself.assertEqual(got['a'], 2)\nself.assertIsInstance(got, dict)"
    ),
    "from datetime import datetime\ndef f(x): return datetime(x, 1, 2)": case(
        "self.assertEqual(f(2020), datetime(2020, 1, 2))\nself.assertIsInstance(f(1), datetime)",
        before="from datetime import datetime",
    ),
    "from pathlib import Path\ndef f(x): return Path(x) / 'y'": case(
        "self.assertEqual(f('x'), Path('x/y'))", before="from pathlib import Path"
    ),
    "class MyError(ValueError): pass\ndef f(x): raise MyError('no')": case(
        "with self.assertRaises(ValueError) as caught:\n    f(1)\n"
        "self.assertEqual(str(caught.exception), 'no')\nself.assertRaises(Exception, f, 1)"
    ),
    "class MyError(KeyError): pass\ndef f(x): raise MyError('no')": case(
        "with self.assertRaises(KeyError):\n    f(1)"
    ),
    (
        "class Item:\n    def __init__(self, x): self.x = x\n"
        "    def __eq__(self, other): return self.x == other.x\ndef f(x): return Item(x)"
    ): case(
        "self.assertEqual(f(1), f(1))\nself.assertEqual(f(1).x, 1)\nself.assertNotEqual(f(1), f(2))"
    ),
    "def f(x): print(x, end='')": case(
        (
            "out = io.StringIO()\nwith redirect_stdout(out):\n    f('word')\n"
            "self.assertEqual(out.getvalue(), 'word')"
        ),
        before="import io\nfrom contextlib import redirect_stdout",
    ),
    "def f(x):\n    return (n for n in range(x))": case(
        "self.assertEqual(list(f(3)), [0, 1, 2])\nself.assertEqual(sum(f(4)), 6)"
    ),
    "def f(x): return type(x)": case("self.assertEqual(f(1), int)\nself.assertEqual(f([]), list)"),
    (
        "from collections import UserDict, deque\nclass D(deque): pass\n"
        "def f(x): return UserDict({x: D([x])})"
    ): case(
        "from collections import deque\nself.assertEqual(f(1), {1: deque([1])})\n"
        "self.assertEqual(f(2)[2][0], 2)"
    ),
    "def f(d):\n    d['x'] = 5\n    return d": case(
        "d = {}\ngot = f(d)\nself.assertIs(got, d)\nself.assertEqual(d, {'x': 5})\n"
        "self.assertEqual(got, d)"
    ),
    "def f(xs): return sorted(xs)": case(
        "import random\nxs = [3, 1, 2]\nrandom.shuffle(xs)\nself.assertEqual(f(xs), [1, 2, 3])\n"
        "self.assertEqual(len(xs), 3)"
    ),
    "def f(x): return x + 7": case(
        "for given, want in {1: 8, 2: 9}.items():\n"
        "    with self.subTest(given=given, want=want):\n"
        "        self.assertEqual(f(given), want)"
    ),
    "WORDS = ['a', 'b']\ndef f(x): return WORDS[x]": case(
        "self.assertIn(f(1), WORDS)\nself.assertEqual(f(0), 'a')"
    ),
    "import os\ndef f(x):\n    os.kill(os.getpid(), x)": case(
        (
            "with patch('os.kill') as kill:\n    f(7)\n    f(9)\n"
            "kill.assert_called_with(os.getpid(), 9)\nself.assertEqual(kill.call_count, 2)"
        ),
        before="import os\nfrom unittest.mock import patch",
    ),
}


@pytest.mark.parametrize("source", BOTH)
def test_a_split_test_accepts_only_the_solution(sandbox: Sandbox, source: str) -> None:
    assert judged(sandbox, source, BOTH[source]).verdict == "AC"
    assert (
        judged(
            sandbox, source.rpartition("def f")[0] + "def f(x): return ['z']", BOTH[source]
        ).verdict
        == "WA"
    )


FORGED = (
    "import os, struct, sys\ndef send(*parts):\n"
    "    for part in parts: os.write(4, struct.pack('>I', len(part)) + part)\n"
)
FORGERS = {
    "a pass": FORGED + "send(b'L', b'R')\nos._exit(0)\ndef f(x): pass",
    "answers at random": FORGED + "send(b'L', b'A0', b'A0', b'R')\nos._exit(0)\ndef f(x): pass",
    "too many answers": (
        FORGED + "send(b'L', *[b'A%d' % n for n in range(9)], b'R')\nos._exit(0)\ndef f(x): pass"
    ),
    "answers without end": FORGED + "send(b'L')\nwhile True: send(b'A0')\ndef f(x): pass",
    "an answer that is broken": FORGED + "send(b'L', b'A{', b'R')\nos._exit(0)\ndef f(x): pass",
    "a verdict": FORGED + "send(b'L', b'V[0,\"AC\",\"\",false]')\nos._exit(0)\ndef f(x): pass",
    "an answer equal to all": (
        "class E:\n    def __eq__(self, o): return True\n"
        "    def __getitem__(self, k): return E()\ndef f(x): return E()"
    ),
    "the teller": (
        "import program\nclass E:\n    def __eq__(self, o): return True\ndef f(x):\n"
        "    program._told = lambda v: None\n    return 3"
    ),
    "another unittest": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x): return 0"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FORGERS)
def test_a_forger_of_answers_passes_no_test(sandbox: Sandbox, what: str) -> None:
    report = judged(
        sandbox, FORGERS[what], case("self.assertEqual(f(2), 41)\nself.assertEqual(f(3), 43)")
    )
    assert report.passed == 0 and report.verdict not in ("AC", "INFRA")


SKIPPING = {
    "a condition": (
        "import sys\nif sys.platform != 'win32': self.skipTest('windows')\n"
        "self.assertEqual(f(1), 3)"
    ),
    "an exception": "import unittest\nraise unittest.SkipTest('later')",
}


@pytest.mark.parametrize("what", SKIPPING)
def test_a_method_that_skips_itself_is_not_counted(sandbox: Sandbox, what: str) -> None:
    other = "    def test_other(self):\n        self.assertEqual(f(1), 5)\n"
    report = judged(sandbox, "def f(x): return 5", case(SKIPPING[what]) + other)
    assert [(row.name, row.verdict) for row in report.tests] == [("Cases.test_other", "AC")]


def test_a_program_cannot_skip_a_test(sandbox: Sandbox) -> None:
    text = case(
        "self.assertEqual(f(1), 5)",
        more=(
            "def setUp(self):\n    import sys\n    if sys.platform == 'win32': self.skipTest('no')"
        ),
    )
    assert (
        judged(sandbox, "import unittest\ndef f(x): raise unittest.SkipTest('mine')", text).verdict
        == "WA"
    )
    assert judged(sandbox, "def f(x): return 5", text).verdict == "AC"


def test_an_expected_failure_is_handled(sandbox: Sandbox) -> None:
    text = case(
        "self.assertEqual(f(1), 1)",
        more="@unittest.expectedFailure\ndef test_not(self):\n    self.assertEqual(f(1), 2)",
    )
    assert judged(sandbox, "def f(x): return x", text).verdict == "AC"
    assert judged(sandbox, "def f(x): return 2", text).verdict == "WA"


def test_guessable_methods_count_only_with_an_unguessable_one(sandbox: Sandbox) -> None:
    text = case(
        "self.assertEqual(f(4), 44)",
        more="def test_error(self):\n    with self.assertRaises(ValueError):\n        f(None)",
    )
    right = "def f(x):\n    if x is None: raise ValueError\n    return 11 * x"
    assert judged(sandbox, right, text).passed == 2
    assert judged(sandbox, "def f(x): raise ValueError", text).passed == 0


def test_a_hidden_expected_value_needs_no_decoy() -> None:
    (method,) = methods(case("self.assertEqual(f(1), 7001)"), "f")
    assert method["hides"] and method["decoys"] == []


def test_what_a_decorator_reads_stays_in_the_program_part(sandbox: Sandbox) -> None:
    text = (
        "import unittest, os\nfrom unittest.mock import patch\n"
        "class Cases(unittest.TestCase):\n    answers = [70, 1]\n"
        "    def answer(*_):\n        return 7000\n"
        "    @patch('os.getuid', side_effect=answer)\n"
        "    @patch('os.getgid', side_effect=answers)\n"
        "    def test_it(self, *_):\n        self.assertEqual(f(1), 7070)\n"
    )
    source = "import os\ndef f(x): return os.getuid() + os.getgid()"
    assert judged(sandbox, source, text).verdict == "AC"


def test_an_imported_name_is_not_the_builtin_of_that_name(sandbox: Sandbox) -> None:
    text = case(
        "with self.assertRaises(KeyError):\n    f(1)",
        before="from shutil import SameFileError as KeyError",
    )
    raising = "import shutil\ndef f(x): raise {}"
    verdicts = [
        judged(sandbox, raising.format(error), text).verdict
        for error in ("shutil.SameFileError", "LookupError")
    ]
    assert verdicts == ["AC", "WA"]


def test_a_method_refused_for_an_inexact_answer_has_decoys_that_expect_a_value() -> None:
    text = case("got = f(1)\nself.assertIsInstance(got, dict)\nself.assertEqual(got, 7001)")
    (method,) = methods(text, "f", inexact=True)
    assert method["decoys"] and all("7001" not in decoy for decoy in method["decoys"])
