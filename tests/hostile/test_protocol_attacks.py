"""Attacks on the protocol: forged handles, records and arguments, answers that fool checkers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.protocol import CallTest, Job, Limits
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox import jobs
from tests.sandbox.jobs import SAY

LIMITS = Limits(wall_s=1.5, cpu_s=1.5, memory_mb=128, output_kb=64)
BOX = (
    "class Box:\n    def __init__(self, x): self.x = x\n"
    "    def __eq__(self, o): return self.x == o.x\n"
)


def asserting(source: str, check: str, prompt: str = "") -> Job:
    return jobs.asserting(source, check, prompt=prompt, limits=LIMITS)


def returning(source: str, **changes: object) -> Job:
    return replace(
        Job("", source, "call", (CallTest((), {}, [1]),), "f", limits=LIMITS),
        **changes,  # type: ignore[arg-type]
    )


def says(message: str) -> str:
    return SAY + f"def f(*a):\n    say({message})\n    return 0"


SAME = "def check(args, got, expected):\n    return got == expected"
ATTACKS = {
    "more objects than can be held": asserting(
        "class E: pass\ndef f(n): return [E() for _ in range(200000)]",
        "assert len(candidate(1)) == 7",
    ),
    "a million records": asserting(
        says("b'R{\"g\":[{\"o\":0},[' + b','.join([b'[\"Box\",[]]'] * 10**6) + b']]}'"),
        "assert candidate(1) == Box(7)",
        BOX,
    ),
    "a record that is of another class": asserting(
        says('b\'R{"g":[{"o":0},[["Box",[["__class__",1]]]]]}\''),
        "assert candidate(1) == Box(7)",
        BOX,
    ),
    "a record with an equality of its own": asserting(
        BOX.replace("self.x == o.x", "True") + "def f(n): return Box(0)",
        "assert candidate(1) == Box(7)",
        BOX,
    ),
    "a record of things equal to everything": asserting(
        (
            "class V:\n    def __eq__(self, o): return True\nclass Box:\n    x = None\n"
            "def f(n):\n    box = Box()\n    box.x = V()\n    return box"
        ),
        "assert candidate(1) == Box(7)",
        BOX,
    ),
    "arguments that become the result": asserting(
        says("b'M[[[7]],[],[7]]'"), "xs = [1]\n    got = candidate(xs)\n    assert got == 7"
    ),
    "an exception class to leave by": asserting(
        says('b\'R{"e":["X","SystemExit"]}\''), "raise candidate(1)"
    ),
    "a handle whose methods are no names": asserting(
        says('b\'R{"h":[1,"a",[[1]]]}\''), "x = candidate(1).y\n    assert x == 7"
    ),
    "a key equal to the expected one": asserting(
        (
            "class E:\n    def __eq__(self, o): return True\n"
            "    def __hash__(self): return hash(7)\ndef f(x): return E()"
        ),
        "assert {7: 1}.get(candidate(1)) == 1",
    ),
    "one of the expected values": asserting(
        "class E:\n    def __eq__(self, o): return True\ndef f(x): return E()",
        "assert candidate(1) in [7, 8]",
    ),
    "a word for the checker": returning(
        says("b'V[0,\"AC\",\"\",false]')\n    say(b'B no'"), checker=SAME
    ),
    "an answer that a checker chokes on": returning(
        "def f():\n    x = []\n    for _ in range(60): x = [x]\n    return [x] * 100000",
        checker="def check(args, got, expected):\n    return str(got) == 'x'",
    ),
    "an end before the checker's turn": returning(
        (
            "import os\nseen = []\ndef f():\n    seen.append(1)\n"
            "    if len(seen) > 1: os._exit(0)\n    return [1]"
        ),
        tests=(CallTest((), {}, [1]),) * 2,
        checker="def check(*a): return True",
    ),
    "elements that are none": returning(
        says('b\'R[{"d":[1]},{"s":1},{},{"i":"zz"}]\''), compare="unordered"
    ),
    "elements a thousand levels deep": returning(
        says("b'R[' + b'[' * 900 + b']' * 900 + b']'"), compare="unordered"
    ),
}


@pytest.mark.slow
def test_no_protocol_attack_is_accepted_or_a_sandbox_failure(sandbox: Sandbox) -> None:
    reports = run_all(sandbox, ATTACKS.values())
    paid = {
        what: report
        for what, report in zip(ATTACKS, reports, strict=True)
        if report.verdict in ("AC", "INFRA")
    }
    assert not paid
