"""Security: attempted calls decide; the text of a program is only a hint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewards.battery.cases import CODE, MEDIAN
from rewards.composite import CompositeReward
from rewards.security import HINT, MAX_HINTS
from sandbox.protocol import Report, TestResult, Verdict

REFERENCE = CODE["call"].reference
ACCEPTED = Report(
    "job",
    Verdict.AC,
    (TestResult(Verdict.AC),),
    tried={"call": 0, "exec": 0, "socket": 0, "file": 0},
)
REFUSED = Report("job", Verdict.WA, (TestResult(Verdict.WA),))
REWARD = CompositeReward()


@pytest.mark.parametrize("kind", ["call", "exec", "socket", "file"])
def test_an_attempted_call_bounds_the_whole_reward(kind: str) -> None:
    score = REWARD.score(MEDIAN, REFERENCE, replace(ACCEPTED, tried={kind: 1}))
    assert score.value == -1.0
    assert score.components["security"] == -1.0
    assert sum(score.gave.values()) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "program",
    [
        "import gc; gc.disable()",
        "HOST = '0.0.0.0'",
        "import inspect\ninspect.signature(len)",
        "eval('1')",
        "exec('x = 1')",
        "import importlib",
        "import pickle\npickle.loads(pickle.dumps(1))",
        "import uuid\nuuid.uuid1()",
        "import hashlib\nhashlib.md5(b'')",
        "import os.path, sys, heapq",
        "__import__('sys').setrecursionlimit(10_000)",
        "import tempfile, random",
        "open('a.txt', 'w').close()",
    ],
)
def test_harmless_program_text_costs_nothing(program: str) -> None:
    assert REWARD.score(MEDIAN, f"{program}\n{REFERENCE}", ACCEPTED).components["security"] == 1.0


def test_suspicious_text_alone_costs_little() -> None:
    hinting = (
        "import ctypes, socket, subprocess, pty\nfrom sys import _getframe\nimport os\nos.system\n"
        + REFERENCE
    )
    score = REWARD.score(MEDIAN, hinting, ACCEPTED)
    assert score.components["security"] == 1.0 - HINT * MAX_HINTS
    assert sum(score.gave.values()) == pytest.approx(score.value)
    assert (
        REWARD.score(MEDIAN, "import ctypes\n" + REFERENCE, ACCEPTED).components["security"]
        == 1.0 - HINT
    )


def test_unlintable_text_costs_as_much_as_all_hints() -> None:
    assert (
        REWARD.score(MEDIAN, REFERENCE + "#" * 200_000, ACCEPTED).components["security"]
        == 1.0 - HINT * MAX_HINTS
    )


def test_a_correct_program_with_hints_beats_a_wrong_one() -> None:
    hinting = "import ctypes, socket, subprocess, pty\nimport os, sys, re\n" + REFERENCE
    right, wrong = (
        REWARD.score(MEDIAN, hinting, ACCEPTED).value,
        REWARD.score(MEDIAN, "def median(xs):\n    return 0\n", REFUSED).value,
    )
    assert right is not None
    assert wrong is not None
    assert right > wrong


def test_where_attempts_cannot_be_counted_the_text_alone_decides() -> None:
    blind = replace(ACCEPTED, tried=None)
    assert REWARD.score(MEDIAN, REFERENCE, blind).components["security"] == 1.0
    assert (
        REWARD.score(MEDIAN, "import ctypes\n" + REFERENCE, blind).components["security"]
        == 1.0 - HINT
    )


def test_refused_calls_of_ordinary_libraries_are_no_attempt() -> None:
    report = replace(ACCEPTED, denied={"socket": 1, "setpriority": 1})
    assert REWARD.score(MEDIAN, REFERENCE, report).components["security"] == 1.0


def test_imports_of_the_task_are_neither_hints_nor_attempts() -> None:
    asking = replace(MEDIAN, starter_code="import os\nfrom subprocess import run\n")
    program = "import subprocess, os\n" + REFERENCE
    assert (
        REWARD.score(asking, program, replace(ACCEPTED, tried={"exec": 3})).components["security"]
        == 1.0
    )
    assert (
        REWARD.score(asking, program, replace(ACCEPTED, tried={"exec": 3, "socket": 1})).value
        == -1.0
    )
    assert (
        REWARD.score(asking, program + "os.system\n", ACCEPTED).components["security"] == 1.0 - HINT
    )
