"""Unusual unittests with correct programs: each is accepted.

Their methods may be split, guarded by decoys, or skip themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.protocol import Job, Limits, UnittestTest
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

LIMITS = Limits(wall_s=20.0, cpu_s=4.0, memory_mb=256, output_kb=64)
# a program, and the methods of its test
ODD = [
    (
        "def f(x): return x",
        (
            "    def test_a(self):\n"
            "        if not hasattr(self,'zz'): raise unittest.SkipTest('x')\n"
            "        self.assertEqual(f(1),2)\n    def test_b(self):\n"
            "        self.assertEqual(f(5),5)\n"
        ),
    ),
    (
        "def f(x): return x",
        (
            "    @unittest.skipIf(False,'no')\n    def test_a(self):\n"
            "        self.assertEqual(f(12),12)\n    @unittest.skipUnless(False,'no')\n"
            "    def test_b(self):\n        self.assertEqual(f(5),6)\n"
        ),
    ),
    (
        "def f(x): return x",
        (
            "    def setUp(self):\n        import os\n"
            "        if not os.environ.get('NOSUCH'): self.skipTest('env')\n"
            "    def test_a(self):\n        self.assertEqual(f(12),13)\n"
            "class Other(unittest.TestCase):\n    def test_b(self):\n"
            "        self.assertEqual(f(5),5)\n"
        ),
    ),
    (
        "def f(x): return -float('inf')",
        (
            "    def test_a(self):\n        for x in range(f(0) < 0):\n"
            "            self.assertEqual(f([]), float('-inf'))\n"
        ),
    ),
    (
        "def f(x): return float('inf')",
        (
            "    def test_a(self):\n        want = max([float('inf'), 3])\n"
            "        self.assertEqual(f([]), want)\n        self.assertGreater(f(1), 10**300)\n"
        ),
    ),
    (
        "def f(x): return float('nan')",
        "    def test_a(self):\n        import math\n        self.assertTrue(math.isnan(f(1)))\n",
    ),
    (
        "def f(x): return 1e300*x",
        (
            "    def check(self, a, b):\n        while True:\n"
            "            self.assertEqual(a, b)\n            break\n    def test_a(self):\n"
            "        self.check(f(1), float('1e300'))\n"
            "        self.check(f(1), sum([1e300, 1.0]))\n"
        ),
    ),
    (
        "class E(IndexError): pass\ndef f(x): raise E('x')",
        (
            "    def test_a(self):\n        with self.assertRaises(E):\n            f(1)\n"
            "        with self.assertRaises(LookupError):\n            f(1)\n"
            "        with self.assertRaises((KeyError, IndexError)):\n            f(1)\n"
        ),
    ),
    (
        "class E(ValueError, KeyError): pass\ndef f(x): raise E('x')",
        (
            "    def test_a(self):\n        with self.assertRaises(ValueError):\n"
            "            f(1)\n        self.assertRaisesRegex(ValueError, 'x', f, 1)\n"
        ),
    ),
    (
        "class E(Exception): pass\ndef f(x): raise E(4)",
        (
            "    def test_a(self):\n        try:\n            f(1)\n        except E as e:\n"
            "            self.assertEqual(e.args, (4,))\n        else:\n"
            "            self.fail()\n"
        ),
    ),
    (
        "import collections\nP=collections.namedtuple('P','a b')\ndef f(x): return P(x,2)",
        (
            "    def test_a(self):\n        self.assertEqual(f(1).a, 1)\n"
            "        self.assertEqual(f(1), (1,2))\n        self.assertEqual(f(7), P(7,2))\n"
        ),
    ),
    (
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n"
            "def f(x): return P(x)"
        ),
        (
            "    def test_a(self):\n        self.assertEqual(f(1), P(1))\n"
            "        self.assertEqual(f(7).a, 7)\n        self.assertIsInstance(f(1), P)\n"
        ),
    ),
    (
        "import enum\nclass C(enum.Enum):\n    A=1\n    B=2\ndef f(x): return C(x)",
        (
            "    def test_a(self):\n        self.assertEqual(f(1), C.A)\n"
            "        self.assertIs(f(2), C.B)\n        self.assertEqual(f(2).name, 'B')\n"
        ),
    ),
    (
        "def f(x): return (i for i in range(x))",
        (
            "    def test_a(self):\n        g = f(3)\n        self.assertEqual(next(g), 0)\n"
            "        self.assertEqual(list(g), [1,2])\n"
        ),
    ),
    (
        "def f(d): d['x']=5; return d",
        (
            "    def test_a(self):\n        d = {}\n        r = f(d)\n"
            "        self.assertIs(r, d)\n        self.assertEqual(d, {'x': 5})\n"
            "        self.assertEqual(r, d)\n"
        ),
    ),
    (
        "def f(xs): xs.reverse(); return xs",
        (
            "    def test_a(self):\n        xs=[1,2,3]\n"
            "        self.assertEqual(f(xs), [3,2,1])\n        self.assertEqual(xs, [3,2,1])\n"
            "        self.assertEqual(len(xs), 3)\n        self.assertEqual(xs[0], 3)\n"
        ),
    ),
    (
        "from unittest import mock\ndef f(x): return [x]",
        (
            "    def test_a(self):\n        self.assertEqual(f(3), [mock.ANY])\n"
            "        self.assertEqual(f(3), [3])\n"
        ),
    ),
    (
        "async def f(x): return x+1",
        "    async def test_a(self):\n        self.assertEqual(await f(1), 2)\n",
    ),
    (
        "def f(x): return {1,2,x}",
        (
            "    def test_a(self):\n        self.assertSetEqual(f(3), {3,2,1})\n"
            "        self.assertCountEqual(f(4), [4,1,2])\n"
            "        self.assertEqual(f(3) | {9}, {1,2,3,9})\n"
        ),
    ),
    (
        (
            "from decimal import Decimal\nfrom fractions import Fraction\n"
            "def f(x): return Decimal(x)/8 if x<9 else Fraction(x,8)"
        ),
        (
            "    def test_a(self):\n        self.assertEqual(f(1), Decimal('0.125'))\n"
            "        self.assertAlmostEqual(f(1), Decimal('0.125'))\n"
            "        self.assertEqual(f(10), Fraction(5,4))\n"
            "        self.assertEqual(f(1), 0.125)\n"
        ),
    ),
    (
        "import os\ndef f(p):\n    open(p,'w').write('hi')",
        (
            "    def setUp(self):\n        import tempfile\n"
            "        self.d = tempfile.mkdtemp()\n    def test_a(self):\n        import os\n"
            "        p = os.path.join(self.d,'a')\n        f(p)\n"
            "        self.assertTrue(os.path.exists(p))\n        with open(p) as h:\n"
            "            self.assertEqual(h.read(), 'hi')\n"
        ),
    ),
    (
        (
            "class V:\n    def __init__(s,x): s.x=x\n"
            "    def __eq__(s,o): return s.x==getattr(o,'x',o)\n"
            "    def __add__(s,o): return V(s.x+o.x)\ndef f(x): return V(x)"
        ),
        (
            "    def test_a(self):\n        a = f(1)+f(2)\n        self.assertEqual(a.x, 3)\n"
            "        self.assertEqual(a, f(3))\n        self.assertNotEqual(a, f(4))\n"
        ),
    ),
    (
        "import logging\ndef f(x): logging.warning('w%s', x)",
        (
            "    def test_a(self):\n        with self.assertLogs() as cm:\n            f(3)\n"
            "        self.assertEqual(cm.output, ['WARNING:root:w3'])\n"
        ),
    ),
    (
        "import warnings\ndef f(x): warnings.warn('old', DeprecationWarning); return x",
        (
            "    def test_a(self):\n        with self.assertWarns(DeprecationWarning):\n"
            "            self.assertEqual(f(3), 3)\n"
        ),
    ),
    (
        "async def f(x): return x+1",
        (
            "    def test_b(self):\n        self.assertEqual(3,3)\n"
            "class B(unittest.IsolatedAsyncioTestCase):\n    async def test_a(self):\n"
            "        self.assertEqual(await f(41), 42)\n"
        ),
    ),
    (
        "def f(xs): return xs[::-1]",
        (
            "    def test_a(self):\n        xs=[1,2]\n        ys=xs\n"
            "        self.assertEqual(f(xs), [2,1])\n        self.assertEqual(ys, [1,2])\n"
            "        self.assertEqual(f(f(xs)), xs)\n"
        ),
    ),
    (
        "def f(x): return str(x)",
        (
            "    @classmethod\n    def setUpClass(cls):\n        cls.want='3'\n"
            "    def test_a(self):\n        self.assertEqual(f(3), self.want)\n"
            "        self.assertEqual(f(44), self.__class__.want + '1' if False else '44')\n"
        ),
    ),
    (
        "def f(x): return x*2",
        (
            "    cases=[(1,2),(3,6)]\n    def test_a(self):\n        for a,b in self.cases:\n"
            "            with self.subTest(a=a):\n                self.assertEqual(f(a), b)\n"
            "    def test_b(self):\n        for i, (a, b) in enumerate(self.cases):\n"
            "            self.assertEqual(f(a), b, msg=f'{i}')\n    def test_c(self):\n"
            "        total = 0\n        for a in range(5):\n            total += f(a)\n"
            "        self.assertEqual(total, 20)\n"
        ),
    ),
    (
        "import io, sys\ndef f():\n    return [int(l) for l in sys.stdin]",
        (
            "    def test_a(self):\n        from unittest.mock import patch\n        import io\n"
            "        with patch('sys.stdin', io.StringIO('1\\n2\\n')):\n"
            "            self.assertEqual(f(), [1,2])\n"
        ),
    ),
    (
        (
            "import random\ndef f(n, seed):\n    random.seed(seed)\n"
            "    return [random.randint(0,99) for _ in range(n)]"
        ),
        (
            "    def test_a(self):\n        import random\n        random.seed(5)\n"
            "        want=[random.randint(0,99) for _ in range(3)]\n"
            "        self.assertEqual(f(3,5), want)\n        self.assertEqual(len(f(4,1)), 4)\n"
        ),
    ),
    (
        "def f(x): return x",
        (
            "    def test_a(self):\n        xs=[3,1]\n        xs.sort()\n        want=xs[:]\n"
            "        want += [7]\n        self.assertEqual(f([1,3,7]), want)\n"
        ),
    ),
    (
        "def f(x): return x",
        (
            "    def test_a(self):\n        want = {}\n        for k in 'ab': want[k] = 1\n"
            "        self.assertEqual(f({'a':1,'b':1}), want)\n        if f(1) == 1:\n"
            "            y = 2\n        else:\n            y = 3\n"
            "        self.assertEqual(f(2), y)\n"
        ),
    ),
    (
        "def f(x):\n    class R: pass\n    r = R(); r.v = x; r.g = lambda: x\n    return r",
        (
            "    def test_a(self):\n        r = f(3)\n        self.assertEqual(r.v, 3)\n"
            "        self.assertEqual(r.g(), 3)\n        self.assertTrue(callable(r.g))\n"
            "        self.assertTrue(hasattr(r, 'v') and r.v == 3)\n"
            "        self.assertTrue(r.v == 4 or r.g() == 3)\n"
        ),
    ),
    (
        "def f(x): return x.upper()",
        (
            "    def test_a(self):\n        want = 'A' if True else None\n"
            "        def helper(s): return s.upper()\n        self.assertEqual(f('a'), want)\n"
            "        self.assertEqual(f('b'), helper('b'))\n        (p, q) = ('c', 'C')\n"
            "        self.assertEqual(f(p), q)\n        got = f(x := 'z')\n"
            "        self.assertEqual(got, 'Z')\n        del got\n"
        ),
    ),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


@pytest.mark.slow
def test_correct_programs_pass_unusual_unittests(sandbox: Sandbox) -> None:
    texts = [
        "import unittest\nclass TestCases(unittest.TestCase):\n" + methods for _, methods in ODD
    ]
    jobs = [
        Job(source, source, "unittest", (UnittestTest(text),), "f", limits=LIMITS)
        for (source, _), text in zip(ODD, texts, strict=True)
    ]
    assert [
        (report.job_id, report.detail)
        for report in run_all(sandbox, jobs)
        if report.verdict != "AC"
    ] == []
