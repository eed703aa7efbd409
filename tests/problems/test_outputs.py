"""Values out of the real sandbox: what a program returns or prints is what comes back, long or short, and a fault is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.schema import Problem
from problems.verification.outputs import TOO_LONG, Output, Question, outputs
from sandbox.protocol import Limits
from sandbox.sandbox import Sandbox, SandboxConfig

AMPLE = Limits(wall_s=30.0, cpu_s=10.0, memory_mb=128)
QUICK = Limits(wall_s=30.0, cpu_s=0.5, memory_mb=128)  # for what hangs
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.sets(st.integers() | st.text())
    ),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


def question(
    source: str,
    *inputs: dict[str, Any],
    style: Any = "call",
    entry: str | None = "f",
    limits: Limits = AMPLE,
) -> Question:
    test = (
        {"stdin": "", "stdout": ""}
        if style == "stdio"
        else {"source": "def check(f): pass"}
        if style == "assert"
        else {"expected": None}
    )
    return Question(
        Problem("toy/1", "toy", "Do it.", style, (test,), entry, limits=limits), source, inputs
    )


def asked(sandbox: Sandbox, *questions: Question) -> list[list[Output]]:
    return outputs(questions, sandbox)


@settings(max_examples=15)
@given(values=st.lists(PLAIN, min_size=1, max_size=12))
def test_what_a_program_returns_comes_back_with_its_types(
    sandbox: Sandbox, values: list[Any]
) -> None:
    (found,) = asked(sandbox, question("f = lambda x: x", *({"args": [value]} for value in values)))
    assert [output.same for output in found] == [Output(value).same for value in values]


@pytest.mark.parametrize("size", [60, 66, 67, 5_000, 80_000])
def test_a_long_output_comes_whole(sandbox: Sandbox, size: int) -> None:
    printed = question(
        "print('ä\\n' * int(input()), end='')", {"stdin": f"{size}\n"}, style="stdio", entry=None
    )
    returned = question(
        "class S:\n    def f(self, n): return [i % 9 for i in range(n)]",
        {"args": [size]},
        entry="S().f",
    )
    assert asked(sandbox, printed, returned) == [
        [Output("ä\n" * size)],
        [Output([i % 9 for i in range(size)])],
    ]


def test_an_output_beyond_all_bounds_is_a_fault(sandbox: Sandbox) -> None:
    noise = "import random\ndef f(n): return random.Random(1).randbytes(n)"
    (found,) = asked(sandbox, question(noise, {"args": [1_000_000]}, {"args": [3]}))
    assert found[0].fault == TOO_LONG and len(found[1].value) == 3


def test_an_input_on_which_the_program_hangs_leaves_the_others_their_outputs(
    sandbox: Sandbox,
) -> None:
    source = "def f(n):\n    while n == 3: pass\n    return 1 // n"
    (found,) = asked(
        sandbox, question(source, *({"args": [n]} for n in (1, 3, 0, 3, 2)), limits=QUICK)
    )
    assert [output.value for output in found] == [1, None, None, None, 0]
    assert [output.fault.split(" ")[0] for output in found] == ["", "TLE", "RE", "TLE", ""]


def test_what_is_no_plain_data_is_a_fault_that_says_so(sandbox: Sandbox) -> None:
    (found,) = asked(sandbox, question("def f(x): return object()", {"args": [1]}))
    assert "not plain data" in found[0].fault


def test_a_function_that_an_assertion_would_call_is_asked_too(sandbox: Sandbox) -> None:
    assert asked(
        sandbox,
        question(
            "def f(a, *, b=1): return a - b", {"args": [5], "kwargs": {"b": 2}}, style="assert"
        ),
    ) == [[Output(3)]]


def test_a_unittest_cannot_be_asked(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="unittest"):
        asked(sandbox, question("f = 1", {"args": []}, style="unittest"))
