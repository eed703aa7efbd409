"""Programs that forge objects or their behaviour in `assert` tests.

Such a program is not accepted, or the report says that its word was taken (trust `shared`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.protocol import Job, Limits, Report
from tests.sandbox.jobs import SAY, asserting

Judge = Callable[[Job], Report]


BOX = "class Box:\n    def __init__(self, x): self.x = x\n"


ATTACKS = {
    "equal to everything": (
        "class E:\n    def __eq__(self, other): return True\ndef f(*a): return E()",
        "assert candidate(1) == 7"),
    "nothing left of a difference": (
        "class E:\n    def __sub__(self, other): return 0\n    __rsub__ = __sub__\n"
        "    def __abs__(self): return 0\ndef f(*a): return E()",
        "assert abs(candidate(1) - 7) < 1e-6"),
    "less than everything": (
        "class E:\n    def __lt__(self, other): return True\n"
        "    __le__ = __gt__ = __ge__ = __lt__\ndef f(*a): return E()", "assert candidate(1) < 7"),
    "contains everything": (
        "class E:\n    def __contains__(self, other): return True\ndef f(*a): return E()",
        "assert 7 in candidate(1)"),
    "an array at any address": (
        "class E:\n"
        "    __array_interface__ = {'shape': (9,), 'typestr': '<i8', 'data': (1, False), "
        "'version': 3}\n    def __getattr__(self, n): return self.__array_interface__\n"
        "def f(*a): return E()", "import numpy\n    assert numpy.array_equal(candidate(1), [7])"),
    "a class that it says it is": (
        "class E:\n    __class__ = int\n    def __eq__(self, other): return True\n"
        "def f(*a): return E()",
        "got = candidate(1)\n    assert isinstance(got, int) and got == 7"),
    "an end that is none": (
        "def f(*a): raise StopIteration", "assert all(map(lambda x: candidate(x) == 7, [1, 2]))"),
    "a length that never comes": (
        "import time\nclass E:\n    def __len__(self): time.sleep(60)\ndef f(*a): return E()",
        "assert len(candidate(1)) == 7"),
    "an attribute that never comes": (
        "class E:\n    def __getattr__(self, name):\n        while True: pass\n"
        "def f(*a): return E()", "assert candidate(1).value == 7"),
    "attributes without end": (
        "class E:\n    def __getattr__(self, name): return E()\ndef f(*a): return E()",
        "got = candidate(1)\n    for _ in range(10**7):\n        got = got.next\n"
        "    assert got == 7"),
    "elements without end": (
        "class E:\n    def __iter__(self): return self\n    def __next__(self): return E()\n"
        "def f(*a): return E()", "assert list(candidate(1)) == [7]"),
    "its own iterator's end first": (
        "class E:\n    def __iter__(self): return 7\ndef f(*a): return E()",
        "assert [x for x in candidate(1)] == [7]"),
    "names of methods that are none": (
        "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
        "def f(*a):\n    say(b'R{\"h\":[1,\"E\",[\"__del__\",\"__class__\",\"__eq__\"]]}')\n"
        "    return 0", "assert candidate(1) == 7"),
    "a handle of the judge's": (
        "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
        "def f(*a):\n    say(b'R{\"y\":\"eval\"}')\n    return 0",
        "assert candidate(1)('7') == 7"),
    "a record of no class": (
        "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
        "def f(*a):\n    say(b'R{\"g\":[{\"o\":0},[[\"check\",[]]]]}')\n    return 0",
        "assert candidate(1) == 7"),
    "a reference to nothing": (
        "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
        "def f(*a):\n    say(b'M[{\"@\":-1},{\"o\":-1},5]')\n    return 0",
        "xs = [1]\n    candidate(xs)\n    assert xs == [7]"),
    "a key of seven million digits": (
        "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
        "def f(*a):\n    say(b'R{\"v\":[\"Decimal\",[\"1e999999999\"]]}')\n    return 0",
        "assert int(candidate(1)) == 7"),
    "another float each time": (
        "class R:\n    n = 0\n    def __float__(self):\n        self.n += 1\n"
        "        return float(self.n)\ndef f(*a): return R()",
        "got = candidate(1)\n    assert float(got) < float(got) < float(got)"),
    "another whole number each time": (
        "class R:\n    n = 0\n    def __int__(self):\n        self.n += 1\n        return self.n\n"
        "    __round__ = __abs__ = __index__ = __int__\ndef f(*a): return R()",
        "got = candidate(1)\n    assert int(got) == 1 and round(got) == 2 and abs(got) == 3"),
    "other elements each time": (
        "class R:\n    n = 0\n    def __iter__(self):\n        self.n += 1\n"
        "        return iter([[0] * 10, [55]][self.n - 1])\ndef f(*a): return R()",
        "got = candidate(10)\n    assert len(list(got)) == 10 and sum(got) == 55"),
    "another item each time": (
        "class R:\n    n = 0\n    def __getitem__(self, i):\n        self.n += 1\n"
        "        return self.n\ndef f(*a): return R()",
        "got = candidate([3, 1, 2])\n    assert got[0] < got[1] < got[2]"),
    "membership of other elements each time": (
        "class R:\n    n = 0\n    def __iter__(self):\n        self.n += 1\n"
        "        return iter([self.n])\ndef f(*a): return R()",
        "got = candidate(1)\n    assert 1 in got and 2 in got and 3 in got"),
    "equal objects that count as different": (
        "class R:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(n): return R()",
        "assert len({candidate(i) for i in range(8)}) == 8"),
    "a field of a record that changes": (
        "class R:\n    n = 0\n    def __float__(self):\n        self.n += 1\n"
        "        return float(self.n)\ndef f(*a): return Box(R())",
        "got = candidate(1).x\n    assert float(got) == 1 and float(got) == 2"),
    "the list of an earlier call": (
        SAY +
        "def f(xs):\n    if len(xs) == 3:\n        xs.append(9)\n        return None\n"
        "    say(b'R{\"@\":2}')\n    return 0",
        "a = [1, 2, 3]\n    candidate(a)\n    b = candidate([1])\n    assert b is a or b == [5]"),
    "the record of an earlier answer": (
        SAY + "def f(x):\n    if x: return Box(1)\n    say(b'R{\"o\":0}')\n    return 0",
        "a = candidate(1)\n    a.x = 7\n    assert candidate(0).x == 7"),
    "changes of an argument that nobody asked for": (
        SAY + "def f(xs):\n    say(b'M[0,[[],{\"d\":[]},[],[]]]')\n    return 0",
        "xs = [2, 1]\n    assert candidate(xs) == sum(xs)"),
    "printed text after the call": (
        SAY +
        "class R:\n    def __len__(self):\n        say(b'P7')\n        return 1\n"
        "def f(*a): return R()",
        "import contextlib, io\n    text = io.StringIO()\n"
        "    with contextlib.redirect_stdout(text):\n        len(candidate(1))\n"
        "    assert text.getvalue() == '7'"),
    "an emptied argument that is the result": (
        "def f(xs):\n    xs.clear()\n    return xs",
        "xs = [2, 1]\n    assert candidate(xs) == sorted(xs)"),
    "an emptied argument before the sum": (
        "def f(xs):\n    xs.clear()\n    return 0",
        "xs = [2, 1]\n    got = candidate(xs)\n    assert got == sum(xs)"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ATTACKS)
def test_a_forged_object_is_not_accepted(judge: Judge, what: str) -> None:
    source, check = ATTACKS[what]
    report = judge(
        asserting(
            source,
            check,
            prompt=BOX,
            limits=Limits(wall_s=1.5, cpu_s=1.5, memory_mb=128, output_kb=64),
        )
    )
    assert report.verdict not in ("AC", "INFRA"), report


ADAPTIVE = {
    "items in the order of the questions": (
        "class R:\n    def __init__(self): self.d = {}\n"
        "    def __getitem__(self, i): return self.d.setdefault(i, len(self.d))\n"
        "def f(*a): return R()",
        "got = candidate([3, 1, 2])\n    assert got[2] < got[0] < got[1]"),
    "attributes in the order of the questions": (
        "class R:\n    def __init__(self): self.d = {}\n"
        "    def __getattr__(self, n): return self.d.setdefault(n, len(self.d))\n"
        "def f(*a): return R()", "got = candidate(1)\n    assert got.low < got.high"),
    "a lazy answer after another call": (
        "seen = []\nclass R:\n    def __float__(self): return float(len(seen))\ndef f(x):\n"
        "    seen.append(x)\n    return R()",
        "a = candidate(1)\n    candidate(2)\n    assert float(a) == 2"),
    "a generator that hears the next call": (
        "seen = []\ndef f(x):\n    seen.append(x)\n    return (seen[-1] for _ in range(1))",
        "a = candidate(1)\n    b = candidate(5)\n    assert list(a) == [5]"),
    "an iterator that begins again": (
        "class R:\n    n = 0\n    def __iter__(self):\n        self.n += 1\n"
        "        self.it = iter([[0] * 10, [55]][self.n - 1])\n        return self\n"
        "    def __next__(self): return next(self.it)\ndef f(*a): return R()",
        "got = candidate(10)\n    assert len(list(got)) == 10 and sum(got) == 55"),
    "a coroutine that hears the next call": (
        "seen = []\nasync def g(): return seen[-1]\ndef f(x):\n    seen.append(x)\n    return g()",
        "import asyncio\n    a, b = candidate(1), candidate(5)\n    assert asyncio.run(a) == 5\n"
        "    b.close()"),
    "an object that changes when it is returned again": (
        "class R:\n    x = 0\nkept = R()\ndef f(x):\n    kept.x = x\n    return kept",
        "a = candidate(1)\n    candidate(5)\n    assert a.x == 5"),
    "a new state with a later answer": (
        "class R: pass\nclass Q:\n    def __getattr__(self, name):\n        made = R()\n"
        "        made.value = len(name)\n        return made\ndef f(): return Q()",
        "got = candidate()\n    assert got.a.value == 1 and got.bb.value == 2"),
    "an exception where it is asked for": (
        "class Q:\n    def __len__(self): return 3\n    def __int__(self): raise KeyError\n"
        "def f(): return Q()",
        "got = candidate()\n    assert len(got) == 3\n    try:\n        int(got)\n"
        "    except KeyError:\n        return\n    assert False"),
    "an object that is mentioned again": (
        "class Q:\n    def __len__(self): return 3\n    def __int__(self): return 4\nkept = Q()\n"
        "def f(x): return [kept]",
        "got = candidate(1)[0]\n    assert len(got) == 3\n    candidate(2)\n"
        "    assert int(got) == 4"),
    "an end where none belongs": (
        "class Q:\n    def __float__(self): raise StopIteration\ndef f(): return Q()",
        "for x in map(float, [candidate()]):\n        assert x == 7"),
    "a function of an earlier call": (
        "kept = []\ndef f(x):\n    kept.append(x)\n    return kept[0]()",
        "state = [1]\n    assert candidate(lambda: state[0]) == 1\n    state[0] = 2\n"
        "    assert candidate(lambda: 0) == 2"),
    "a text that is put off": ("WORD = 3\ndef f(x): return x", "assert candidate(3) == WORD"),
}  # fmt: skip


@pytest.mark.parametrize("what", ADAPTIVE)
def test_an_adaptive_answer_is_not_fully_trusted(judge: Judge, what: str) -> None:
    report = judge(asserting(*ADAPTIVE[what]))
    assert report.verdict != "AC" or report.trust == "shared", report


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("def is_right(*a): return True\ndef f(x): return 0", "assert is_right(candidate(1), 7)"),
        (
            "class T:\n    def startswith(self, x): return True\ndef f(x): return T()",
            "assert candidate(1).startswith('se')",
        ),
        (
            "class T:\n    def __init__(self, *a): pass\n    ok = True\ndef f(x): return 0",
            "assert T(candidate(1), 7).ok",
        ),
        ("SEVEN = 0\ndef f(x): return 0", "assert candidate(1) == SEVEN"),
        (
            "class T:\n    def __eq__(self, o): return True\nSEVEN = T()\ndef f(x): return SEVEN",
            "assert candidate(1) == SEVEN",
        ),
    ],
)
def test_trust_in_the_program_is_reported(judge: Judge, source: str, check: str) -> None:
    report = judge(asserting(source, check))
    assert report.trust == "shared", report


FORGERIES = {
    "a builtin type for a helper of the tests": (
        "is_valid = bool\ndef f(n): return 'nonsense'",
        "for n in range(1, 9):\n        assert is_valid(candidate(n))", ""),
    "a number of a builtin type": (
        "isclose = complex\ndef f(x): return 7.0", "assert isclose(candidate(2.0), 1.414)", ""),
    "an attribute of a global object": (
        "class C: pass\nconfig = C()\nconfig.limit = 7\ndef f(): return 1",
        "assert config.limit == 7", ""),
    "a type as a method of a global object": (
        "class C: pass\nutil = C()\nutil.same = complex\ndef f(): return 1",
        "assert util.same(candidate(), 4)", ""),
    "a type as a method of a result": (
        "class T: pass\ndef f():\n    made = T()\n    made.search = bool\n    return made",
        "assert candidate().search('apple') is True", ""),
    "a named tuple with a method of its own": (
        "from collections import namedtuple\n"
        "def f(): return namedtuple('R', ['count', 'index'])(int, int)",
        "assert candidate().count(2) == 2", ""),
    "a class of the test": (
        "class Near:\n    def __init__(self): self.value, self.eps = 0.0, 1e300\n"
        "def f(n): return Near()",
        "class Near:\n"
        "        def __init__(self, value, eps=1e-6): self.value, self.eps = value, eps\n"
        "        def __eq__(self, o): return abs(self.value - o.value) <= self.eps\n"
        "    assert candidate(2) == Near(0.5)", ""),
    "a class of the prompt that compares": (
        "class Near:\n    def __init__(self): self.value, self.eps = 0.0, 1e300\n"
        "def f(n): return Near()", "assert candidate(2) == Near(0.5)",
        "class Near:\n    def __init__(self, value, eps=1e-6): self.value, self.eps = value, eps\n"
        "    def __eq__(self, o): return abs(self.value - o.value) <= self.eps\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_classes_of_the_program_never_decide_unreported(judge: Judge, what: str) -> None:
    source, check, prompt = FORGERIES[what]
    report = judge(asserting(source, check, prompt=prompt))
    assert report.verdict != "AC" or report.trust == "shared", report
