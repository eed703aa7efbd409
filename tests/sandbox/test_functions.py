"""Functions of the tests that a program receives: they run with the tests, never in its process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.protocol import AssertTest, Job, Limits, Report
from tests.sandbox.jobs import QUICK, SAY, asserting

Judge = Callable[[Job], Report]
TWICE = "def f(g):\n    def both(x):\n        return g(g(x))\n    return both"

HONEST = {
    "a key": (
        "def f(xs, key):\n    return sorted(xs, key=key)",
        "assert candidate([3, 1, 2], key=lambda x: -x) == [3, 2, 1]",
        "apart",
    ),
    "a bound method": (
        "def f(xs, tell):\n    for x in xs: tell(x)",
        "seen = []\n    candidate([1, 2], seen.append)\n    assert seen == [1, 2]",
        "apart",
    ),
    "among other arguments": (
        "def f(steps, x):\n    for step in steps['all']: x = step(x)\n    return x",
        "assert candidate({'all': [abs, lambda x: x + 1]}, -4) == 5",
        "apart",
    ),
    "the same one back": (
        "def f(g, h):\n    return h if g is h else None",
        "g = lambda: 1\n    assert candidate(g, g) is g",
        "apart",
    ),
    "an exception of it": (
        (
            "def f(g):\n    try:\n        return g(0)\n    except ZeroDivisionError:\n"
            "        return 'none'"
        ),
        "assert candidate(lambda x: 1 / x) == 'none'",
        "apart",
    ),
    "the end of what it gives": (
        (
            "def f(g):\n    got = []\n    while True:\n        try:\n"
            "            got.append(g())\n        except StopIteration:\n            return got"
        ),
        "assert candidate(iter([1, 2]).__next__) == [1, 2]",
        "apart",
    ),
    "from a lazy answer": (
        "def f(g, xs):\n    return map(g, xs)",
        "assert list(candidate(lambda x: x * x, [1, 2])) == [1, 4]",
        "apart",
    ),
    "that asks the program again": (
        "def f(g, n):\n    return g(n) if n else 0",
        "down = lambda n: candidate(down, n - 1) + 1\n    assert candidate(down, 20) == 20",
        "apart",
    ),
    "in threads": (
        (
            "from concurrent.futures import ThreadPoolExecutor\ndef f(g, xs):\n"
            "    with ThreadPoolExecutor(4) as pool:\n        return list(pool.map(g, xs))"
        ),
        "assert candidate(lambda x: x + 1, list(range(40))) == list(range(1, 41))",
        "apart",
    ),
    "inside an object": (TWICE, "assert candidate(lambda x: x + 1)(3) == 5", "shared"),
    "by its type": (
        "import types\ndef f(g):\n    return callable(g) and isinstance(g, types.FunctionType)",
        "assert candidate(lambda: 0)",
        "apart",
    ),
}


@pytest.mark.parametrize("what", HONEST)
def test_a_program_can_receive_a_function(judge: Judge, what: str) -> None:
    source, check, trust = HONEST[what]
    report = judge(asserting(source, check))
    assert (report.verdict, report.trust) == ("AC", trust), report


EVERYWHERE = (
    "import gc, sys\ndef f(g):\n    g(1)\n"
    "    held = [gc.get_objects(), [c.cell_contents for c in g.__closure__ or () if c], "
    "vars(sys.modules['program'])]\n"
    "    return 's3cret' in repr(g.__code__.co_consts) + repr(held[1]) + str([o "
    "for o in held[0] if type(o) is str])"
)
ATTACKS = {
    "an assertion swallowed": (
        "def f(g):\n    try:\n        g(0)\n    except BaseException:\n        pass",
        "def g(x):\n        assert x == 7\n    candidate(g)",
    ),
    "an assertion swallowed, then the right value": (
        (
            "def f(g):\n    for x in (0, 7):\n        try: g(x)\n"
            "        except Exception: pass\n    return 7"
        ),
        "def g(x):\n        assert x == 7\n    assert candidate(g) == 7",
    ),
    "what it holds": (
        EVERYWHERE,
        "word = 's3' + 'cret'\n    assert candidate(lambda x: x if x == word else 0)",
    ),
    "an object equal to everything": (
        "class E:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(g): g(E())",
        "seen = []\n    candidate(seen.append)\n    assert seen == [7]",
    ),
    "a number that was never given": (
        SAY + "def f(g):\n    say(b'K[99,[],{\"d\":[]}]')\n    os.read(4, 999)\n    return g()",
        "assert candidate(lambda: 1) == 7",
    ),
    "no number": (
        SAY + "def f(g):\n    say(b'K[[1],[],{\"d\":[]}]')\n    os.read(4, 999)\n    return 0",
        "assert candidate(lambda: 1) == 7",
    ),
    "no call": (
        SAY + "def f(g):\n    say(b'K7')\n    os.read(4, 999)\n    return 0",
        "assert candidate(lambda: 1) == 7",
    ),
    "half a call": (
        SAY + "def f(g):\n    os.write(4, b'\\0\\0\\1\\0K[1')\n    os._exit(0)",
        "assert candidate(lambda: 1) == 7",
    ),
    "a return of its own": (
        SAY + "def f(g):\n    say(b'R7')\n    return 0",
        "assert candidate(lambda: 1) == 8",
    ),
    "calls without end": ("def f(g):\n    while True: g()", "assert candidate(lambda: 1) == 7"),
    "calls inside each other": (
        "def f(g, n=0):\n    return g(n)",
        "def g(n):\n        return candidate(g, n + 1)\n    assert candidate(g) == 7",
    ),
    "its own end": ("import os\ndef f(g):\n    g()\n    os._exit(0)", "candidate(lambda: 1)"),
    "an argument that never ends": (
        (
            "class E:\n    def __iter__(self): return self\n    def __next__(self): return 1\n"
            "def f(g): g(E())"
        ),
        "candidate(list)\n    candidate(lambda x: sum(x))\n    assert False",
    ),
    "a huge argument": (
        "def f(g):\n    while True: g('x' * 10**7)",
        "seen = []\n    candidate(seen.append)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ATTACKS)
def test_a_program_that_misuses_a_function_is_not_accepted(judge: Judge, what: str) -> None:
    source, check = ATTACKS[what]
    report = judge(
        asserting(source, check, limits=Limits(wall_s=2.0, cpu_s=1.5, memory_mb=128, output_kb=64))
    )
    assert report.verdict not in ("AC", "INFRA"), report


def test_a_function_of_an_earlier_test_cannot_be_called_later(judge: Judge) -> None:
    source = "kept = []\ndef f(g):\n    kept.append(g)\n    return kept[0](1)"
    report = judge(
        asserting(
            source, "assert candidate(lambda x: 7) == 7", "assert candidate(lambda x: 0) == 7"
        )
    )
    assert [test.verdict for test in report.tests] == ["AC", "RE"]


def test_values_passed_back_through_an_object_are_not_trusted(judge: Judge) -> None:
    source = (
        "class T:\n    def take(self, x): self.x = x\n    def give(self, g): g(self.x)\n"
        "def f(): return T()"
    )
    check = (
        "seen, got = [], candidate()\n    got.take(7)\n    got.give(seen.append)\n"
        "    assert seen == [7]"
    )
    assert judge(asserting(source, check)).trust == "shared"


def test_a_class_of_the_tests_cannot_be_passed(judge: Judge) -> None:
    text = "class Own:\n    pass\ndef check(candidate):\n    candidate(Own)\n"
    assert (
        judge(
            Job("job", "def f(x):\n    return 1", "assert", (AssertTest(text),), "f", limits=QUICK)
        ).verdict
        == "WA"
    )
