"""Outputs of programs in the real sandbox are complete, and faults are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.schema import Problem
from problems.verification.outputs import TOO_LONG, Output, OutputRequest, outputs
from sandbox.protocol import Limits
from sandbox.sandbox import Sandbox

AMPLE = Limits(wall_s=30.0, cpu_s=10.0, memory_mb=128)
QUICK = Limits(wall_s=30.0, cpu_s=0.5, memory_mb=128)  # for programs that hang
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


def question_of(
    source: str,
    *inputs: dict[str, Any],
    style: Any = "call",
    entry: str | None = "f",
    limits: Limits = AMPLE,
) -> OutputRequest:
    test = (
        {"stdin": "", "stdout": ""}
        if style == "stdio"
        else {"source": "def check(f): pass"}
        if style == "assert"
        else {"expected": None}
    )
    return OutputRequest(
        Problem("toy/1", "toy", "Do it.", style, (test,), entry, limits=limits), source, inputs
    )


def outputs_of(sandbox: Sandbox, *questions: OutputRequest) -> list[list[Output]]:
    return outputs(questions, sandbox)


@settings(max_examples=5)
@given(values=st.lists(PLAIN, min_size=1, max_size=12))
def test_returned_values_keep_their_types(sandbox: Sandbox, values: list[Any]) -> None:
    (results,) = outputs_of(
        sandbox, question_of("f = lambda x: x", *({"args": [value]} for value in values))
    )
    assert [output.same for output in results] == [Output(value).same for value in values]


@pytest.mark.parametrize("size", [60, 66, 67, 5_000, 80_000])
def test_a_long_output_is_complete(sandbox: Sandbox, size: int) -> None:
    printed = question_of(
        "print('ä\\n' * int(input()), end='')", {"stdin": f"{size}\n"}, style="stdio", entry=None
    )
    returned = question_of(
        "class S:\n    def f(self, n): return [i % 9 for i in range(n)]",
        {"args": [size]},
        entry="S().f",
    )
    assert outputs_of(sandbox, printed, returned) == [
        [Output("ä\n" * size)],
        [Output([i % 9 for i in range(size)])],
    ]


def test_a_too_long_output_is_a_fault(sandbox: Sandbox) -> None:
    noise = "import random\ndef f(n): return random.Random(1).randbytes(n)"
    (results,) = outputs_of(sandbox, question_of(noise, {"args": [1_000_000]}, {"args": [3]}))
    assert results[0].fault == TOO_LONG
    assert len(results[1].value) == 3


def test_a_whole_number_that_python_does_not_write_is_a_fault(sandbox: Sandbox) -> None:
    request = question_of("def f(n): return {n: [10 ** n]}", {"args": [2]}, {"args": [5000]})
    [[short, long]] = outputs_of(sandbox, request)
    assert (short.value, long.fault) == ({2: [100]}, TOO_LONG)


@pytest.mark.slow
def test_an_input_that_hangs_does_not_affect_other_outputs(
    sandbox: Sandbox,
) -> None:
    source = "def f(n):\n    while n == 3: pass\n    return 1 // n"
    (results,) = outputs_of(
        sandbox, question_of(source, *({"args": [n]} for n in (1, 3, 0, 3, 2)), limits=QUICK)
    )
    assert [output.value for output in results] == [1, None, None, None, 0]
    assert [output.fault.split(" ")[0] for output in results] == ["", "TLE", "RE", "TLE", ""]


def test_an_output_that_is_not_plain_data_is_a_fault(sandbox: Sandbox) -> None:
    (results,) = outputs_of(sandbox, question_of("def f(x): return object()", {"args": [1]}))
    assert "not plain data" in results[0].fault


def test_a_function_of_style_assert_is_called(sandbox: Sandbox) -> None:
    assert outputs_of(
        sandbox,
        question_of(
            "def f(a, *, b=1): return a - b", {"args": [5], "kwargs": {"b": 2}}, style="assert"
        ),
    ) == [[Output(3)]]


@pytest.mark.slow
def test_outputs_of_a_unittest_problem_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="unittest"):
        outputs_of(sandbox, question_of("f = 1", {"args": []}, style="unittest"))
