"""Values that are not plain data in `assert` tests.

These are objects of the program, records of the tests, and arguments changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.protocol import AssertTest, Job, Limits, Report
from tests.sandbox.jobs import QUICK, asserting

Judge = Callable[[Job], Report]
NODE = (
    "class Node:\n    def __init__(self, value, next=None):\n"
    "        self.value, self.next = value, next\n"
)
CHAIN = NODE + (
    "def chain(values):\n    made = None\n    for value in reversed(values):\n"
    "        made = Node(value, made)\n    return made\n"
)
PAIR = (
    "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"
    "    def __eq__(self, other):\n        return (self.a, self.b) == (other.a, other.b)\n"
)
STACK = (
    "class Stack:\n    def __init__(self): self.held = []\n"
    "    def push(self, x): self.held.append(x)\n    def pop(self): return self.held.pop()\n"
)


@pytest.mark.parametrize(
    ("source", "check", "verdict", "trust"),
    [
        # objects that stay in the program's process
        ("def f(n):\n    yield from range(n)", "assert list(candidate(4)) == [0, 1, 2, 3]", "AC",
         "apart"),
        ("def f(n):\n    yield from range(n)",
         "assert next(candidate(4)) == 0 and sum(candidate(4)) == 6", "AC", "apart"),
        ("import itertools\ndef f():\n    return itertools.count()",
         "got = candidate()\n    assert [next(got), next(got)] == [0, 1]", "AC", "apart"),
        ("import re\ndef f(text):\n    return re.search('b+', text)",
         "assert candidate('abbc') is not None and candidate('ac') is None", "AC", "apart"),
        ("import re\ndef f(text):\n    return re.search('b+', text)",
         "assert candidate('abbc').span() == (1, 3)", "AC", "apart"),
        (PAIR + "def f(pairs):\n    return max(pair.b for pair in pairs)",
         "assert candidate([Pair(5, 24), Pair(15, 39)]) == 39", "AC", "apart"),
        (PAIR + "def f(pair):\n    return Pair(pair.b, pair.a)",
         "got = candidate(Pair(1, 2))\n    assert got.a == 2", "AC", "shared"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert candidate().b == 2", "AC", "apart"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert candidate() == Pair(1, 2)", "AC",
         "shared"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert isinstance(candidate(), Pair)", "AC",
         "shared"),
        (STACK + "def f(): pass", "held = Stack()\n    held.push(3)\n    assert held.pop() == 3",
         "AC", "shared"),
        ("def f(n):\n    return lambda x: x + n", "assert candidate(5)(3) == 8", "AC", "shared"),
        ("class E(ValueError): pass\ndef f(x):\n    raise E(x)",
         "try:\n        candidate(1)\n    except E:\n        return\n    assert False", "AC",
         "apart"),
        ("class Box:\n    def __len__(self): return 3\ndef f():\n    return Box()",
         "assert len(candidate()) == 3", "AC", "apart"),
        ("def f():\n    return object()", "assert candidate()", "AC", "apart"),
        ("def f():\n    class Yes:\n        def __bool__(self): return True\n"
         "    return Yes(), Yes()", "got = candidate()\n    assert got[0] and got[1]", "AC",
         "shared"),
        ("import re\ndef f(text):\n    return re.search('b+', text)",
         "got = candidate('abbc')\n    assert got.start() == 1 and got.end() == 3", "AC",
         "shared"),
        (PAIR + "def f(a):\n    return Pair(a, a)",
         "got, other = candidate(1), candidate(2)\n    assert (got.a, got.b, other.a) == (1, 1, 2)",
         "AC", "apart"),
        ("def f(n):\n    yield from range(n)",
         "assert list(zip(candidate(2), candidate(2))) == [(0, 0), (1, 1)]", "AC", "shared"),
        ("def f(x):\n    return x\nLIMIT = 3", "assert candidate(3) == LIMIT", "AC", "shared"),
        # small types of the standard library are passed by value, builtin types and functions by
        # name
        ("from fractions import Fraction\ndef f(a, b):\n    return Fraction(a, b)",
         "from fractions import Fraction\n    assert candidate(2, 4) == Fraction(1, 2)", "AC",
         "apart"),
        ("from collections import deque\ndef f(x):\n    return deque([x])",
         "from collections import deque\n    assert candidate(2) == deque([2])", "AC", "apart"),
        ("from datetime import date\ndef f(y):\n    return date(y, 1, 2)",
         "from datetime import date\n    assert candidate(2020) == date(2020, 1, 2)", "AC",
         "apart"),
        ("def f(xs, kind):\n    return [x for x in xs if not isinstance(x, kind)]",
         "assert candidate((4, 'a', 1.5), int) == ['a', 1.5]", "AC", "apart"),
        ("def f(xs, key):\n    return key(xs)", "assert candidate([4, 7], max) == 7", "AC",
         "apart"),
        # arguments changed in place
        ("def f(xs):\n    xs.sort()",
         "xs = [3, 1, 2]\n    candidate(xs)\n    assert xs == [1, 2, 3]", "AC", "apart"),
        ("def f(x):\n    x['a'].append(2)\n    x['b'] = {1}\n    del x['c']",
         "inner = []\n    x = {'a': inner, 'c': 0}\n    assert candidate(x) is None\n"
         "    assert x == {'a': [2], 'b': {1}} and x['a'] is inner", "AC", "apart"),
        ("def f(m):\n    m.reverse()",
         "a, b = [1], [2]\n    m = [a, b]\n    candidate(m)\n"
         "    assert m[0] is b and m[1] is a and a == [1]", "AC", "apart"),
        ("def f(s):\n    s.add(3)", "s = {1}\n    candidate(s)\n    assert s == {1, 3}", "AC",
         "apart"),
        ("def f(xs):\n    return xs.pop()",
         "xs = [1, 2]\n    assert candidate(xs) == 2 and xs == [1, 2]", "WA", "apart"),
        ("def f(xs):\n    pass", "xs = [3, 1]\n    candidate(xs)\n    assert xs == [1, 3]", "WA",
         "apart"),
    ],
)  # fmt: skip
def test_objects_of_the_program(
    judge: Judge, source: str, check: str, verdict: str, trust: str
) -> None:
    report = judge(asserting(source, check))
    assert (report.verdict, report.trust) == (verdict, trust), report


@pytest.mark.parametrize(
    ("source", "check"),
    [
        (CHAIN +
         "def f(node):\n    total = 0\n    while node:\n"
         "        total, node = total + node.value, node.next\n    return total",
         "assert candidate(chain([1, 2, 3])) == 6"),
        # needs no class of its own
        ("def f(node):\n    return node.value + node.next.value",
         "assert candidate(chain([1, 2])) == 3"),
        (CHAIN + "def f(n):\n    return chain(range(n))",
         "got = candidate(3000)\n    assert type(got) is Node and got.next.next.value == 2"),
        (CHAIN + "def f(node):\n    return Node(0, node)",
         "assert candidate(chain([5])).next.value == 5"),
        (CHAIN + "def f(node):\n    node.next, node.value = None, 9",
         "node = chain([1, 2])\n    candidate(node)\n"
         "    assert (node.value, node.next) == (9, None)"),
        (CHAIN + "def f():\n    node = Node(1)\n    node.next = node\n    return node",
         "got = candidate()\n    assert got.next is got"),
    ],
)  # fmt: skip
def test_records_of_the_tests_cross_by_value(judge: Judge, source: str, check: str) -> None:
    report = judge(asserting(source, check, prompt=CHAIN))
    assert (report.verdict, report.trust) == ("AC", "apart"), report


def test_a_text_that_needs_the_program_before_it_is_loaded_is_run_when_it_is(judge: Judge) -> None:
    text = "root = Pair(1, 2)\ndef check(candidate):\n    assert candidate(root) == 2\n"
    report = judge(
        Job(
            "job",
            PAIR + "def f(pair):\n    return pair.b",
            "assert",
            (AssertTest(text),),
            "f",
            limits=QUICK,
        )
    )
    assert report.verdict == "AC", report


def test_an_entry_point_may_be_a_method(judge: Judge) -> None:
    job = Job(
        "job",
        "class Solution:\n    def twice(self, x):\n        return 2 * x",
        "assert",
        (AssertTest("def check(f):\n    assert f(x=3) == 6"),),
        "Solution().twice",
        limits=QUICK,
    )
    assert judge(job).verdict == "AC"


SAY = "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"
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


@pytest.mark.parametrize("what", ATTACKS)
def test_a_program_that_answers_for_itself_is_not_paid(judge: Judge, what: str) -> None:
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
def test_an_answer_that_could_be_fitted_to_the_test_is_the_programs_word(
    judge: Judge, what: str
) -> None:
    report = judge(asserting(*ADAPTIVE[what]))
    assert report.verdict != "AC" or report.trust == "shared", report


@pytest.mark.parametrize(
    ("source", "check", "verdict"),
    [
        ("def f(xs):\n    xs[:] = sorted(set(xs))\n    return len(xs)",
         "nums = [1, 1, 2]\n    k = candidate(nums)\n    assert k == 2\n"
         "    assert nums[:k] == [1, 2]", "AC"),
        ("def f(xs):\n    xs.sort()\n    return xs",
         "nums = [2, 1]\n    candidate(nums)\n    assert nums == [1, 2]", "AC"),
        ("def f(xs):\n    xs.clear()\n    return 0",
         "xs = [2, 1]\n    k = candidate(xs)\n    assert k == len(xs)", "WA"),
        ("def f(xs):\n    xs.clear()\n    return []",
         "xs = [2, 1]\n    ys = xs\n    assert candidate(xs) == sorted(ys)", "WA"),
        ("def f(xs):\n    xs.clear()\n    return 0",
         "xs = [2, 1]\n    k = candidate(xs)\n    for x in xs:\n        assert x == 7", "WA"),
        ("def f(xs):\n    xs.clear()\n    return 0",
         "xs = [2, 1]\n    total = sum(xs)\n    assert candidate(xs) == total", "WA"),
    ],
)  # fmt: skip
def test_a_changed_argument_is_seen_where_the_test_compares_it_with_literals(
    judge: Judge, source: str, check: str, verdict: str
) -> None:
    assert judge(asserting(source, check)).verdict == verdict


@pytest.mark.parametrize(
    ("source", "check", "verdict"),
    [
        ("def f(xs):\n    xs.sort()\n    return xs",
         "xs = [2, 1]\n    before = list(xs)\n    assert candidate(xs) == [1, 2]\n"
         "    assert xs == before", "WA"),
        ("def f(xs):\n    return sorted(xs)",
         "xs = [2, 1]\n    before = list(xs)\n    assert candidate(xs) == [1, 2]\n"
         "    assert xs == before", "AC"),
        ("def f(xs):\n    xs.sort()\n    return xs[0]",
         "for xs in ([2, 1], [4, 3]):\n        assert candidate(xs) == min(xs)", "AC"),
        ("def f(xs):\n    return xs", "xs = [1]\n    assert candidate(xs) is not xs", "WA"),
        ("def f(xs):\n    return xs", "xs = [1]\n    assert candidate(xs) is xs", "AC"),
        ("def f(xs):\n    xs.append(2)\n    return xs",
         "xs = [1]\n    got = candidate(xs)\n    assert got == [1, 2] and got is not before(xs)",
         "AC"),
        ("def f(n):\n    return [[0] * n] * n",
         "got = candidate(2)\n    got[0][0] = 1\n    assert got[1][0] == 0", "WA"),
        ("def f(n):\n    row = [0] * n\n    return [row, row]",
         "got = candidate(2)\n    assert got[0] is got[1]", "AC"),
        ("def f():\n    ring = [1]\n    ring.append(ring)\n    return ring",
         "got = candidate()\n    assert got[1] is got", "AC"),
        ("def f(a, b):\n    a.append(1)\n    return len(b)",
         "a = []\n    assert candidate(a, a) == 1", "AC"),
    ],
)  # fmt: skip
def test_what_is_one_list_in_the_program_is_one_in_the_tests(
    judge: Judge, source: str, check: str, verdict: str
) -> None:
    report = judge(asserting(source, check, prompt="def before(xs): return None\n"))
    assert (report.verdict, report.trust) == (verdict, "apart"), report


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("f = abs",
         "import threading\n    try:\n        candidate(threading.Lock())\n    except Exception:\n"
         "        pass"),
        ("import os\ndef f(): os.write(4, bytes([0, 0, 0, 3]) + b'R{}')",
         "try:\n        candidate()\n    except ValueError:\n        pass"),
    ],
)  # fmt: skip
def test_no_test_takes_what_cannot_cross_for_an_answer(
    judge: Judge, source: str, check: str
) -> None:
    assert judge(asserting(source, check)).verdict in ("WA", "RE")


@pytest.mark.parametrize(
    ("source", "check", "verdict"),
    [
        ("import numpy as np\ndef f(x): return np.bool_(x)", "assert candidate(1) is True", "WA"),
        ("import numpy as np\ndef f(x): return np.array(x)", "assert candidate([1, 2]) == [1, 2]",
         "WA"),
        ("import numpy as np\ndef f(x): return np.float64(x)",
         "assert candidate(2**53) == 2**53 + 1", "AC"),
        ("import numpy as np\ndef f(x): return np.int64(x)",
         "assert candidate(3) == 3 and type(candidate(3)).__name__ == 'int64'", "AC"),
        ("from collections import defaultdict\ndef f(): return defaultdict(list)",
         "assert candidate()['new'] == []", "AC"),
        ("class A(Exception): pass\nclass B(A): pass\ndef f(kind):\n    if kind: raise B('b')\n"
         "    return A",
         "try:\n        candidate(1)\n    except candidate(0):\n        return\n    assert False",
         "AC"),
        ("def f(x): return x * x",
         "from concurrent.futures import ThreadPoolExecutor\n"
         "    with ThreadPoolExecutor(8) as pool:\n"
         "        assert list(pool.map(candidate, range(200))) == [x * x for x in range(200)]",
         "AC"),
    ],
)  # fmt: skip
def test_the_verdict_is_pythons(judge: Judge, source: str, check: str, verdict: str) -> None:
    report = judge(asserting(source, check))
    assert (report.verdict, report.trust) == (verdict, "apart"), report


def test_a_problem_may_declare_that_it_looks_at_changed_arguments(judge: Judge) -> None:
    source = "def f(xs):\n    xs.sort()\n    return len(xs)"
    check = "xs = [2, 1]\n    k = candidate(xs)\n    assert xs[:k] == sorted([2, 1])"
    assert [
        judge(replace(asserting(source, check), in_place=declared)).verdict
        for declared in (False, True)
    ] == ["WA", "AC"]


def test_a_method_of_the_tests_own_class_is_not_for_the_program_to_say(judge: Judge) -> None:
    prompt = (
        "class Box:\n    def __init__(self, x): self.x = x\n    def total(self): return self.x\n"
    )
    source = prompt + "def f():\n    box = Box(1)\n    box.total = lambda: 7\n    return box"
    assert (
        judge(asserting(source, "assert candidate().total() == 7", prompt=prompt)).verdict == "WA"
    )


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
def test_where_the_tests_take_the_programs_word_the_report_says_so(
    judge: Judge, source: str, check: str
) -> None:
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
def test_what_the_program_brings_does_not_decide_unnoticed(judge: Judge, what: str) -> None:
    source, check, prompt = FORGERIES[what]
    report = judge(asserting(source, check, prompt=prompt))
    assert report.verdict != "AC" or report.trust == "shared", report


@pytest.mark.parametrize(
    ("source", "check", "prompt"),
    [
        ("def f(p): return is_valid(p)\ndef is_valid(p): return False",
         "assert is_valid('a') and candidate('a') is False",
         "def is_valid(p):\n    return True\ndef f(p):\n"),
        ("class S:\n    pass\ndef f(): return 1", "assert g(1) == 2 and candidate() == 1",
         "def g(x): return x + 1\nclass S:\n    def m(self):\n"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
         "def f(): return P(1)", "assert candidate() == P(1)",
         "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"),
        ("def f(xs):\n    xs.sort()\n    return xs",
         "x = [3, 1, 2]\n    r = candidate(x)\n    assert r == [1, 2, 3]\n    assert r is x", ""),
    ],
)  # fmt: skip
def test_what_the_prompt_defines_is_the_tests_own(
    judge: Judge, source: str, check: str, prompt: str
) -> None:
    report = judge(asserting(source, check, prompt=prompt))
    assert (report.verdict, report.trust) == ("AC", "apart"), report
