# ruff: noqa: E501  # programs in a line each
"""What is not plain data, in `assert` tests: objects of the program, records of the tests, arguments changed in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.protocol import AssertTest, Job, Limits, Report
from tests.sandbox.jobs import QUICK, asserting

Judge = Callable[[Job], Report]
NODE = "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\n"
CHAIN = NODE + "def chain(values):\n    made = None\n    for value in reversed(values):\n        made = Node(value, made)\n    return made\n"
PAIR = "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n    def __eq__(self, other):\n        return (self.a, self.b) == (other.a, other.b)\n"
STACK = (
    "class Stack:\n    def __init__(self): self.held = []\n    def push(self, x): self.held.append(x)\n    def pop(self): return self.held.pop()\n"
)


@pytest.mark.parametrize(
    ("source", "check", "verdict", "trust"),
    [
        # objects that stay with the program
        ("def f(n):\n    yield from range(n)", "assert list(candidate(4)) == [0, 1, 2, 3]", "AC", "apart"),
        ("def f(n):\n    yield from range(n)", "assert next(candidate(4)) == 0 and sum(candidate(4)) == 6", "AC", "apart"),
        ("import itertools\ndef f():\n    return itertools.count()", "got = candidate()\n    assert [next(got), next(got)] == [0, 1]", "AC", "apart"),
        ("import re\ndef f(text):\n    return re.search('b+', text)", "assert candidate('abbc') is not None and candidate('ac') is None", "AC", "apart"),
        ("import re\ndef f(text):\n    return re.search('b+', text)", "assert candidate('abbc').span() == (1, 3)", "AC", "apart"),
        (PAIR + "def f(pairs):\n    return max(pair.b for pair in pairs)", "assert candidate([Pair(5, 24), Pair(15, 39)]) == 39", "AC", "apart"),
        (PAIR + "def f(pair):\n    return Pair(pair.b, pair.a)", "got = candidate(Pair(1, 2))\n    assert got.a == 2", "AC", "shared"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert candidate().b == 2", "AC", "apart"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert candidate() == Pair(1, 2)", "AC", "shared"),
        (PAIR + "def f():\n    return Pair(1, 2)", "assert isinstance(candidate(), Pair)", "AC", "shared"),
        (STACK + "def f(): pass", "held = Stack()\n    held.push(3)\n    assert held.pop() == 3", "AC", "shared"),
        ("def f(n):\n    return lambda x: x + n", "assert candidate(5)(3) == 8", "AC", "shared"),
        ("class E(ValueError): pass\ndef f(x):\n    raise E(x)", "try:\n        candidate(1)\n    except E:\n        return\n    assert False", "AC", "apart"),
        ("class Box:\n    def __len__(self): return 3\ndef f():\n    return Box()", "assert len(candidate()) == 3", "AC", "shared"),
        ("def f():\n    return object()", "assert candidate()", "AC", "shared"),
        ("def f(x):\n    return x\nLIMIT = 3", "assert candidate(3) == LIMIT", "AC", "shared"),
        # small types of the standard library cross by value, builtin types and functions by name
        ("from fractions import Fraction\ndef f(a, b):\n    return Fraction(a, b)", "from fractions import Fraction\n    assert candidate(2, 4) == Fraction(1, 2)", "AC", "apart"),
        ("from collections import deque\ndef f(x):\n    return deque([x])", "from collections import deque\n    assert candidate(2) == deque([2])", "AC", "apart"),
        ("from datetime import date\ndef f(y):\n    return date(y, 1, 2)", "from datetime import date\n    assert candidate(2020) == date(2020, 1, 2)", "AC", "apart"),
        ("def f(xs, kind):\n    return [x for x in xs if not isinstance(x, kind)]", "assert candidate((4, 'a', 1.5), int) == ['a', 1.5]", "AC", "apart"),
        ("def f(xs, key):\n    return key(xs)", "assert candidate([4, 7], max) == 7", "AC", "apart"),
        # arguments changed in place
        ("def f(xs):\n    xs.sort()", "xs = [3, 1, 2]\n    candidate(xs)\n    assert xs == [1, 2, 3]", "AC", "apart"),
        ("def f(x):\n    x['a'].append(2)\n    x['b'] = {1}\n    del x['c']", "inner = []\n    x = {'a': inner, 'c': 0}\n    assert candidate(x) is None\n    assert x == {'a': [2], 'b': {1}} and x['a'] is inner", "AC", "apart"),
        ("def f(m):\n    m.reverse()", "a, b = [1], [2]\n    m = [a, b]\n    candidate(m)\n    assert m[0] is b and m[1] is a and a == [1]", "AC", "apart"),
        ("def f(s):\n    s.add(3)", "s = {1}\n    candidate(s)\n    assert s == {1, 3}", "AC", "apart"),
        ("def f(xs):\n    return xs.pop()", "xs = [1, 2]\n    assert candidate(xs) == 2 and xs == [1, 2]", "AC", "apart"),
        ("def f(xs):\n    pass", "xs = [3, 1]\n    candidate(xs)\n    assert xs == [1, 3]", "WA", "apart"),
    ],
)  # fmt: skip
def test_objects_of_the_program(judge: Judge, source: str, check: str, verdict: str, trust: str) -> None:
    report = judge(asserting(source, check))
    assert (report.verdict, report.trust) == (verdict, trust), report


@pytest.mark.parametrize(
    ("source", "check"),
    [
        (CHAIN + "def f(node):\n    total = 0\n    while node:\n        total, node = total + node.value, node.next\n    return total", "assert candidate(chain([1, 2, 3])) == 6"),
        ("def f(node):\n    return node.value + node.next.value", "assert candidate(chain([1, 2])) == 3"),  # needs no class of its own
        (CHAIN + "def f(n):\n    return chain(range(n))", "got = candidate(3000)\n    assert type(got) is Node and got.next.next.value == 2"),
        (CHAIN + "def f(node):\n    return Node(0, node)", "assert candidate(chain([5])).next.value == 5"),
        (CHAIN + "def f(node):\n    node.next, node.value = None, 9", "node = chain([1, 2])\n    candidate(node)\n    assert (node.value, node.next) == (9, None)"),
        (CHAIN + "def f():\n    node = Node(1)\n    node.next = node\n    return node", "got = candidate()\n    assert got.next is got"),
    ],
)  # fmt: skip
def test_records_of_the_tests_cross_by_value(judge: Judge, source: str, check: str) -> None:
    report = judge(asserting(source, check, prompt=CHAIN))
    assert (report.verdict, report.trust) == ("AC", "apart"), report


def test_a_text_that_needs_the_program_before_it_is_loaded_is_run_when_it_is(judge: Judge) -> None:
    text = "root = Pair(1, 2)\ndef check(candidate):\n    assert candidate(root) == 2\n"
    report = judge(Job("job", PAIR + "def f(pair):\n    return pair.b", "assert", (AssertTest(text),), "f", limits=QUICK))
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


MUCH = "class O:\n    pass\n"
ATTACKS = {
    "equal to everything": ("class E:\n    def __eq__(self, other): return True\ndef f(*a): return E()", "assert candidate(1) == 7"),
    "nothing left of a difference": ("class E:\n    def __sub__(self, other): return 0\n    __rsub__ = __sub__\n    def __abs__(self): return 0\ndef f(*a): return E()", "assert abs(candidate(1) - 7) < 1e-6"),
    "less than everything": ("class E:\n    def __lt__(self, other): return True\n    __le__ = __gt__ = __ge__ = __lt__\ndef f(*a): return E()", "assert candidate(1) < 7"),
    "contains everything": ("class E:\n    def __contains__(self, other): return True\ndef f(*a): return E()", "assert 7 in candidate(1)"),
    "an array at any address": ("class E:\n    __array_interface__ = {'shape': (9,), 'typestr': '<i8', 'data': (1, False), 'version': 3}\n    def __getattr__(self, n): return self.__array_interface__\ndef f(*a): return E()", "import numpy\n    assert numpy.array_equal(candidate(1), [7])"),
    "a class that it says it is": ("class E:\n    __class__ = int\n    def __eq__(self, other): return True\ndef f(*a): return E()", "got = candidate(1)\n    assert isinstance(got, int) and got == 7"),
    "an end that is none": ("def f(*a): raise StopIteration", "assert all(map(lambda x: candidate(x) == 7, [1, 2]))"),
    "a length that never comes": ("import time\nclass E:\n    def __len__(self): time.sleep(60)\ndef f(*a): return E()", "assert len(candidate(1)) == 7"),
    "an attribute that never comes": ("class E:\n    def __getattr__(self, name):\n        while True: pass\ndef f(*a): return E()", "assert candidate(1).value == 7"),
    "attributes without end": ("class E:\n    def __getattr__(self, name): return E()\ndef f(*a): return E()", "got = candidate(1)\n    for _ in range(10**7):\n        got = got.next\n    assert got == 7"),
    "elements without end": ("class E:\n    def __iter__(self): return self\n    def __next__(self): return E()\ndef f(*a): return E()", "assert list(candidate(1)) == [7]"),
    "its own iterator's end first": ("class E:\n    def __iter__(self): return 7\ndef f(*a): return E()", "assert [x for x in candidate(1)] == [7]"),
    "names of methods that are none": ("import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\ndef f(*a):\n    say(b'R{\"h\":[1,\"E\",[\"__del__\",\"__class__\",\"__eq__\"]]}')\n    return 0", "assert candidate(1) == 7"),
    "a handle of the judge's": ("import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\ndef f(*a):\n    say(b'R{\"y\":\"eval\"}')\n    return 0", "assert candidate(1)('7') == 7"),
    "a record of no class": ("import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\ndef f(*a):\n    say(b'R{\"g\":[{\"o\":0},[[\"check\",[]]]]}')\n    return 0", "assert candidate(1) == 7"),
    "a reference to nothing": ("import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\ndef f(*a):\n    say(b'M[{\"@\":-1},{\"o\":-1},5]')\n    return 0", "xs = [1]\n    candidate(xs)\n    assert xs == [7]"),
    "a key of seven million digits": ("import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\ndef f(*a):\n    say(b'R{\"v\":[\"Decimal\",[\"1e999999999\"]]}')\n    return 0", "assert int(candidate(1)) == 7"),
    "an emptied argument that is the result": ("def f(xs):\n    xs.clear()\n    return xs", "xs = [2, 1]\n    assert candidate(xs) == sorted(xs)"),
    "an emptied argument before the sum": ("def f(xs):\n    xs.clear()\n    return 0", "xs = [2, 1]\n    got = candidate(xs)\n    assert got == sum(xs)"),
}  # fmt: skip


@pytest.mark.parametrize("what", ATTACKS)
def test_a_program_that_answers_for_itself_is_not_paid(judge: Judge, what: str) -> None:
    source, check = ATTACKS[what]
    report = judge(asserting(source, check, limits=Limits(wall_s=1.5, cpu_s=1.5, memory_mb=128, output_kb=64)))
    assert report.verdict not in ("AC", "INFRA"), report


def test_a_method_of_the_tests_own_class_is_not_for_the_program_to_say(judge: Judge) -> None:
    prompt = "class Box:\n    def __init__(self, x): self.x = x\n    def total(self): return self.x\n"
    source = prompt + "def f():\n    box = Box(1)\n    box.total = lambda: 7\n    return box"
    assert judge(asserting(source, "assert candidate().total() == 7", prompt=prompt)).verdict == "WA"


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("def is_right(*a): return True\ndef f(x): return 0", "assert is_right(candidate(1), 7)"),
        ("class T:\n    def startswith(self, x): return True\ndef f(x): return T()", "assert candidate(1).startswith('se')"),
        ("class T:\n    def __init__(self, *a): pass\n    ok = True\ndef f(x): return 0", "assert T(candidate(1), 7).ok"),
        ("SEVEN = 0\ndef f(x): return 0", "assert candidate(1) == SEVEN"),
        ("class T:\n    def __eq__(self, o): return True\nSEVEN = T()\ndef f(x): return SEVEN", "assert candidate(1) == SEVEN"),
    ],
)
def test_where_the_tests_take_the_programs_word_the_report_says_so(judge: Judge, source: str, check: str) -> None:
    report = judge(asserting(source, check))
    assert report.trust == "shared", report
