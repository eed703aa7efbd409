"""Assertions evaluated as data agree with Python, or are left to a judge process."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.protocol import Verdict
from sandbox.wire import NotPlain, encode
from sandbox.worker.literal import Claim, claims
from tests.sandbox.conftest import Judge
from tests.sandbox.jobs import asserting

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, -2.0, float("nan"), float("inf"), 10**400, 1j, "", "a", "1", b"a"])
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from([1, True, "a", 1.0]), inner)
    ),
    max_leaves=6,
) | st.sets(st.sampled_from([0, 1, 1.0, "a", False]))


@given(VALUES, VALUES)
def test_equality_agrees_with_python_or_is_undecided(got: object, want: object) -> None:
    assert Claim("", "equal", encode(want)).holds(encode(got).encode()) in (got == want, None)


@given(VALUES)
def test_a_value_equals_its_copy_except_nan(value: object) -> None:
    if "nan" not in encode(value):
        assert Claim("", "equal", encode(value)).holds(encode(value).encode()) is True


@given(VALUES)
def test_truth_agrees_with_python_or_is_undecided(value: object) -> None:
    assert Claim("", "truthy").holds(encode(value).encode()) in (bool(value), None)
    assert Claim("", "falsy").holds(encode(value).encode()) in (not value, None)


@pytest.mark.parametrize(
    "got",
    [
        b"{}",
        b'{"t":1}',
        b'{"t":[],"s":[]}',
        b'{"q":[1]}',
        b'{"i":5}',
        b'{"d":1}',
        b"{",
        b"1 2",
        b'{"c":[1]}',
        b"[" * 5000,
    ],
)
@pytest.mark.parametrize("how", ["equal", "truthy", "falsy", "is"])
def test_a_forged_message_never_satisfies_a_claim(got: bytes, how: str) -> None:
    claim = Claim("", how, "[1]")  # type: ignore[arg-type]
    with contextlib.suppress(NotPlain):
        assert claim.holds(got) in (False, None)


@pytest.mark.parametrize(
    "body",
    [
        "assert candidate(1) == other(1)",
        "assert abs(candidate(1) - 2) < 1e-6",
        "for i in range(3):\n        assert candidate(i) == i",
        "x = candidate(1)\n    assert x == 2",
        "assert candidate(1) == 2 == 2",
        "assert candidate(1) != 2",
        "assert candidate(*[1]) == 2",
        "assert candidate(**{'a': 1}) == 2",
        "assert candidate(1).real == 2",
        "assert candidate(candidate(1)) == 2",
        "assert not_candidate(1) == 2",
        "assert False",
        "assert 'a' * 10**9 == candidate(1)",
        "return",
        "assert (candidate := print) == 2",
        "assert candidate([" * 60 + "])" * 60,
        "assert candidate(" + "-" * 90_000 + "1) == 1",
        "assert " + "not " * 20_000 + "candidate(1)",
        "assert candidate(1) == " + "1+" * 40_000 + "1",
        "assert candidate(1) == " + "9" * 90_000,
        "assert " + "lambda:" * 10_000 + "candidate(1)",
        "assert candidate(1)" + ".real" * 15_000,
        "if 1: pass\n    elif 1: pass" * 1_000,
    ],
)
def test_more_than_a_comparison_is_left_to_a_judge_process(body: str) -> None:
    assert claims(f"def check(candidate):\n    {body}\n", "f") is None


@pytest.mark.parametrize(
    "source",
    [
        "def check(candidate): assert f(1) == 1\nf = print",
        "check = 1",
        "def check(candidate, more=1): assert candidate(1)",
        "def check(*candidate): assert candidate(1)",
        "@print\ndef check(candidate): assert candidate(1)",
        "def check(candidate): pass\ndef check(candidate): pass",
        "import os\ndef check(candidate): assert candidate(1)",
        "def check(candidate): assert candidate(1)\nassert True",
        "METADATA = f(1)\ndef check(candidate): pass",
    ],
)
def test_active_code_around_the_check_is_left_to_a_judge_process(source: str) -> None:
    assert claims(source, "f") is None


def test_a_long_answer_is_not_parsed() -> None:
    long = b"[" + b"1," * 50_000 + b"1]"
    assert Claim("", "equal", "[1]").holds(long) is False
    assert Claim("", "truthy").holds(long) is None


def test_claims_of_a_plain_test_are_read_in_order() -> None:
    read_claims = claims(
        (
            "METADATA = {}\ndef check(c):\n    assert True\n"
            "    assert c(1, k='a') == 2 + 1, 'no'\n    assert [4] == f(-5)\n"
            "    assert not c()\n"
        ),
        "f",
    )
    assert read_claims == (
        Claim('[[1],{"d":[["k","a"]]}]', "equal", "3"),
        Claim('[[-5],{"d":[]}]', "equal", "[4]"),
        Claim('[[],{"d":[]}]', "falsy"),
    )


CHECKS = (
    "assert candidate(2) == 4",
    "assert candidate([1]) == (1, 1)\n    assert candidate('a') == 'aa'",
    "assert candidate(0) is not True",
)
PROGRAMS = (
    "f = lambda x: x * 2",
    "f = lambda x: (1, 1) if x == [1] else x * 2",
    "f = lambda x: [1, 1] if x == [1] else x * 2.0",
    "f = lambda x: 1 / 0",
    "import os\ndef f(x):\n    os._exit(0)",
    "def f(x):\n    return object()",
    "def f(x):\n    return {}['x'] if x == [1] else 4",
    "x = (",
    "g = 1",
    "raise SystemExit",
    "def f(x):\n    return float('nan')",
    "f = lambda x: True if x == 2 else x",
)


@pytest.mark.parametrize("source", PROGRAMS)
def test_literal_verdicts_equal_those_of_the_judge_process(judge: Judge, source: str) -> None:
    quick = judge(asserting(source, *CHECKS[:2]))
    # an assignment, so the judge process runs it
    slow = judge(asserting(source, *[f"_ = 0\n    {check}" for check in CHECKS[:2]]))
    assert [test.verdict for test in quick.tests] == [test.verdict for test in slow.tests]
    assert quick.verdict is not Verdict.INFRA
