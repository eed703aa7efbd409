"""Completions of HumanEval+ and MBPP+ get the verdicts of evalplus, in the real sandbox."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.completions import Completion
from evaluation.judging import evalplus, plus_program, plus_task
from evaluation.judging.evalplus import PlusHarness
from evaluation.judging.judge import CompletionResult, Verdicts, judge
from evaluation.judging.plus_task import PlusTask
from problems.verification.outputs import Output, OutputRequest, outputs
from sandbox.sandbox import Runs, Sandbox, SandboxConfig

DATA = Path(os.environ.get("RATCHET_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = {
    "HumanEval": DATA / "humanevalplus/HumanEvalPlus.jsonl.gz",
    "Mbpp": DATA / "mbppplus/MbppPlus.jsonl.gz",
}
MAKE = {"HumanEval": plus_task.humaneval_task, "Mbpp": plus_task.mbpp_task}
pytestmark = pytest.mark.skipif(
    not all(path.exists() for path in FILES.values()), reason=f"no benchmark files in {DATA}"
)


def tasks(*ids: str) -> dict[str, PlusTask]:
    by_id = {}
    for name, path in FILES.items():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row: dict[str, Any] = json.loads(line)
                if row["task_id"] in ids:
                    by_id[row["task_id"]] = MAKE[name](row, row["task_id"])
    return by_id


HARNESS = (
    "HumanEval/0",
    "HumanEval/2",
    "HumanEval/13",
    "HumanEval/20",
    "HumanEval/32",
    "HumanEval/35",
    "HumanEval/47",
    "Mbpp/2",
    "Mbpp/252",
    "Mbpp/737",
)


@pytest.fixture(scope="module")
def harness() -> PlusHarness:
    return PlusHarness(
        "plus",
        evalplus.VERSION,
        "evalplus 0.3.1",
        tasks(*HARNESS),
        "some",
        "humanevalplus",
        plus_task.SETS,
    )


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2, packages=("numpy",))) as opened:
        yield opened


def verdict(harness: PlusHarness, sandbox: Sandbox, task: str, program: str) -> CompletionResult:
    class Open:
        def __enter__(self) -> Sandbox:
            return sandbox

        def __exit__(self, *_: object) -> None: ...

    return judge(harness, [Completion(task, 0, program, whole=True)], Open, Verdicts(None))[0]


@pytest.mark.slow
def test_every_canonical_solution_passes(harness: PlusHarness, sandbox: Sandbox) -> None:
    for task in HARNESS:
        assert verdict(harness, sandbox, task, harness.tasks[task].canonical).row()["plus"] is (
            task != "HumanEval/32"
        ), task  # evalplus 0.3.1 fails every completion of HumanEval/32


@pytest.mark.slow
def test_a_slow_reference_sets_its_limit_by_the_least_of_three_times(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[float] = []

    def recorded(requests: Sequence[OutputRequest], runs: Runs) -> list[list[Output]]:
        found = outputs(requests, runs)
        measured.extend(output.value[2]["0"] for [output] in found)
        return found

    monkeypatch.setattr(evalplus, "outputs", recorded)
    [task] = tasks("HumanEval/2").values()
    busy = (
        "import os, time\ndef truncate_number(number):\n"
        "    until = time.process_time() + 0.3 + os.urandom(1)[0] / 512\n"
        "    while time.process_time() < until: pass\n    return 'a text'\n"
    )
    slow = replace(task, canonical=busy, atol=0, inputs={key: [[3.5]] for key in plus_task.SETS})
    expected = evalplus.expectations([slow], sandbox)[task.task_id]
    base, plus = (expected[which].slow["0"] for which in plus_task.SETS)
    assert len(measured) == 6
    assert len(set(measured)) > 1
    assert base == min(measured[0], *measured[2:4])
    assert plus == min(measured[1], *measured[4:])


GCD = "def greatest_common_divisor(a, b):\n    "
CLOSE = "def has_close_elements(numbers, threshold):\n    "
CASES = [
    ("HumanEval/13", f"{GCD}return a", "WA", False),
    ("HumanEval/13", f"{GCD}return ", "WA", False),
    ("HumanEval/13", f"{GCD}while True: pass", "TLE", False),
    ("HumanEval/13", f"{GCD}raise SystemExit(0)", "RE", False),
    (
        "HumanEval/13",
        "import math\ngreatest_common_divisor = math.gcd\nif __name__ == '__main__':\n    input()",
        "AC",
        True,
    ),
    (
        "HumanEval/13",
        f"{GCD}import math; return float(math.gcd(a, b))",
        "AC",
        True,
    ),  # equal by Python's ==
    (
        "HumanEval/13",
        f"{GCD}import math, numpy; print('x' * 9_000_000); return numpy.int64(math.gcd(a, b))",
        "AC",
        True,
    ),
    ("HumanEval/13", f"```python\n{GCD}pass\n```", "CE", False),
    (
        "HumanEval/0",
        (
            f"{CLOSE}return any(abs(a - b) < threshold "
            "for i, a in enumerate(numbers) for b in numbers[:i])"
        ),
        "AC",
        True,
    ),
    (
        "HumanEval/0",
        f"{CLOSE}return any(abs(a - b) < threshold for a, b in zip(numbers, numbers[1:]))",
        "WA",
        False,
    ),
    (
        "HumanEval/2",
        "def truncate_number(n):\n    return n - int(n) + 1e-9",
        "AC",
        True,
    ),  # within 1e-6
    (
        "HumanEval/2",
        "import numpy\ndef truncate_number(n):\n    return numpy.float64(n - int(n) + 1e-9)",
        "WA",
        False,
    ),  # within the tolerance, but of another type
    (
        "HumanEval/47",
        (
            "from statistics import median as m\ndef median(l):\n    x = m(l)\n"
            "    return type('F', (type(x),), {})(x)"
        ),
        "AC",
        True,
    ),
    (
        "HumanEval/35",
        "def max_element(l):\n    return max(l) * (1 + 1e-12)",
        "WA",
        False,
    ),  # the first inputs give ints: no tolerance applies yet
    (
        "Mbpp/2",
        "def similar_elements(a, b):\n    return [x for x in a if x in b] * 2",
        "AC",
        True,
    ),  # compared as a set
    (
        "HumanEval/20",
        (
            "import collections\nPair = collections.namedtuple('Pair', 'a b')\n"
            "def find_closest_elements(n):\n    n = sorted(n)\n"
            "    return Pair(*min(zip(n, n[1:]), key=lambda p: p[1] - p[0]))"
        ),
        "AC",
        True,
    ),
    (
        "Mbpp/737",
        "import re\ndef check_str(s):\n    return re.search(r'^[aeiouAEIOU][A-Za-z0-9_]*', s)",
        "AC",
        True,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "program", "expected", "passed"), CASES)
def test_a_completion_gets_the_verdict_of_evalplus(
    harness: PlusHarness, sandbox: Sandbox, task: str, program: str, expected: str, passed: bool
) -> None:
    result = verdict(harness, sandbox, task, program)
    assert (result.verdict, result.row()["plus"]) == (expected, passed), result.detail


HACKS = [
    (
        "class Same:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def greatest_common_divisor(a, b): return Same()"
    ),
    (
        "import builtins\ndef greatest_common_divisor(a, b): raise SystemExit\n"
        "import os\nos.write(4, b'\\x00\\x00\\x00\\x01R')"
    ),
    (
        "import sys\nsys._getframe(1).f_locals['given'].clear()\n"
        "def greatest_common_divisor(a, b): return 0"
    ),
    (
        "import sys\nsys.modules['program'].form = lambda *a: ''\n"
        "def greatest_common_divisor(a, b): return 0"
    ),
    "import hashlib\nhashlib.sha256 = lambda *a: 0\ndef greatest_common_divisor(a, b): return 0",
    (
        "import numpy\nnumpy.allclose = lambda *a, **k: True\n"
        "def greatest_common_divisor(a, b): return 0"
    ),
]


@pytest.mark.parametrize("program", HACKS)
def test_no_exploit_passes(harness: PlusHarness, sandbox: Sandbox, program: str) -> None:
    assert verdict(harness, sandbox, "HumanEval/13", program).passed["base"] is False


EQUAL: list[tuple[Any, Any]] = [
    (1, 1.0),
    (1, True),
    ([1, "a", None], [1.0, "a", None]),
    ({1: 2}, {True: 2.0}),
    ({1, 2}, frozenset({2, 1})),
    (10**400, 10**400),
    (0.0, -0.0),
]
APART: list[tuple[Any, Any]] = [
    ([1], (1,)),
    ("1", 1),
    (b"1", "1"),
    ("a, b", ["a", "b"]),
    (["a", "b"], ["a,'b"]),
    (None, "None"),
    (float("nan"), float("nan")),
    ({}, []),
    (0, None),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal_values_have_equal_canonical_forms(a: Any, b: Any) -> None:
    assert a == b
    assert plus_program.form(a, True) == plus_program.form(b, False)


@pytest.mark.parametrize(("a", "b"), APART)
def test_different_values_have_different_canonical_forms(a: Any, b: Any) -> None:
    assert a != b
    assert plus_program.form(a, True) != plus_program.form(b, False)
