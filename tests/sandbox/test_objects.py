"""Values that are not plain data in `assert` tests.

These are objects of the program, records of the tests, and arguments changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.protocol import AssertTest, Job, Report
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
def test_objects_of_the_program_work_in_tests(
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


def test_test_code_that_needs_the_program_runs_after_loading(judge: Judge) -> None:
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


def test_an_entry_point_can_be_a_method(judge: Judge) -> None:
    job = Job(
        "job",
        "class Solution:\n    def twice(self, x):\n        return 2 * x",
        "assert",
        (AssertTest("def check(f):\n    assert f(x=3) == 6"),),
        "Solution().twice",
        limits=QUICK,
    )
    assert judge(job).verdict == "AC"


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
def test_changed_arguments_are_visible_in_comparisons_with_literals(
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
def test_shared_lists_keep_their_identity(
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
def test_a_value_that_cannot_cross_is_never_an_answer(
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
def test_the_verdict_agrees_with_python(
    judge: Judge, source: str, check: str, verdict: str
) -> None:
    report = judge(asserting(source, check))
    assert (report.verdict, report.trust) == (verdict, "apart"), report


def test_a_problem_can_declare_changed_arguments(judge: Judge) -> None:
    source = "def f(xs):\n    xs.sort()\n    return len(xs)"
    check = "xs = [2, 1]\n    k = candidate(xs)\n    assert xs[:k] == sorted([2, 1])"
    assert [
        judge(replace(asserting(source, check), in_place=declared)).verdict
        for declared in (False, True)
    ] == ["WA", "AC"]


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        ("assert candidate(xs) == (max(xs) if xs else None)", "WA"),
        ("got = candidate(xs)\n    assert got == (max(xs) if xs else None)", "WA"),
        (
            "def verify(g):\n        assert g(xs) == (max(xs) if xs else None)\n"
            "    verify(candidate)",
            "WA",
        ),
        (
            "assert candidate([1]) is None\n    assert candidate(xs) == (max(xs) if xs else None)",
            "WA",
        ),
        ("candidate(xs)\n    assert xs == [x for x in [2, 1] if x > 2]", "AC"),
        ("g = candidate\n    g(xs)\n    assert xs == [x for x in [2, 1] if x > 2]", "AC"),
    ],
)
def test_an_effect_is_shown_where_the_test_uses_no_result(
    judge: Judge, check: str, verdict: str
) -> None:
    report = judge(asserting("def f(xs): xs.clear()", f"xs = [2, 1]\n    {check}"))
    assert report.verdict == verdict, report


def test_the_program_cannot_replace_a_method_of_the_tests(judge: Judge) -> None:
    prompt = (
        "class Box:\n    def __init__(self, x): self.x = x\n    def total(self): return self.x\n"
    )
    source = prompt + "def f():\n    box = Box(1)\n    box.total = lambda: 7\n    return box"
    assert (
        judge(asserting(source, "assert candidate().total() == 7", prompt=prompt)).verdict == "WA"
    )


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
def test_definitions_of_the_prompt_belong_to_the_tests(
    judge: Judge, source: str, check: str, prompt: str
) -> None:
    report = judge(asserting(source, check, prompt=prompt))
    assert (report.verdict, report.trust) == ("AC", "apart"), report
