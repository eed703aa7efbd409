"""Generated inputs are plain, new and reproducible, and resemble those of the tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.encoding import dumps
from problems.schema import Problem
from problems.sources.simple import generate
from problems.verification.inputs import generate_inputs, inputs_of_tests

VALUES = st.recursive(
    st.integers(-99, 99)
    | st.text("abC1 ", max_size=5)
    | st.booleans()
    | st.none()
    | st.floats(-9, 9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=6,
)


def problem(*arguments: list[Any], **changes: Any) -> Problem:
    tests = tuple({"args": args, "expected": 0} for args in arguments)
    return Problem(
        "toy/1", "toy", "Do.", **{"style": "call", "tests": tests, "entry_point": "f"} | changes
    )


@pytest.mark.slow
@given(st.lists(st.tuples(VALUES, VALUES).map(list), min_size=1, max_size=4))
def test_generated_inputs_are_new_plain_and_reproducible(arguments: list[list[Any]]) -> None:
    of = problem(*arguments)
    examples = generate_inputs(of, 10)
    texts = [dumps(example) for example in examples]
    assert len(set(texts)) == len(texts) <= 10
    assert not set(texts) & {dumps(one) for one in inputs_of_tests(of)}
    assert texts == [dumps(example) for example in generate_inputs(of, 10)]
    assert all(len(example["args"]) == 2 for example in examples)


def test_wide_inputs_leave_the_range_of_the_tests_and_stay_short() -> None:
    def wide(*arguments: list[Any]) -> list[Any]:
        return [one["args"][0] for one in generate_inputs(problem(*arguments), 48, wide=True)]

    numbers, lists = wide([3], [5]), wide([[3, 4]], [[5]])
    assert min(numbers) < 0
    assert 100 < max(numbers) < 10**5
    assert [] in lists
    assert max(map(len, lists)) > 4
    assert max(len(str(one)) for one in lists) <= 1000


def firsts(of: Problem) -> list[Any]:
    return [example["args"][0] for example in generate_inputs(of, 40)]


def test_generated_inputs_respect_properties_of_the_tests() -> None:
    lists = firsts(problem([[1, 4, 9]], [[2, 3, 5, 80]], [[7]]))
    assert len(lists) > 5
    assert all(
        some and some == sorted(set(some)) and min(some) > 0 and max(some) < 100 for some in lists
    )
    assert all(
        one < two
        for one, two in (
            example["args"] for example in generate_inputs(problem([1, 5], [2, 30]), 40)
        )
    )
    assert all(text.isalpha() and text.islower() for text in firsts(problem(["tea"], ["of"])))


def test_generated_inputs_include_edge_cases() -> None:
    lists = firsts(problem([[3, -1, 3]], [[]], [[0, 8]]))
    assert any(len(some) == 1 for some in lists)
    assert any(len(some) != len(set(some)) for some in lists)
    assert any(min(some, default=0) < 0 for some in lists)
    assert 0 in firsts(problem([5], [0], [-3])) or -1 in firsts(problem([5], [0], [-3]))


def test_inputs_are_read_from_assertions() -> None:
    source = (
        "import math\ndef check(candidate):\n    assert candidate([1, 2], k=3) == 4\n"
        "    assert abs(candidate(x) - candidate([2], k=1)) < 1"
    )
    of = problem(style="assert", tests=({"source": source}, {"source": "def check(candidate"}))
    assert inputs_of_tests(of) == [
        {"args": [[1, 2]], "kwargs": {"k": 3}},
        {"args": [[2]], "kwargs": {"k": 1}},
    ]


def test_generated_stdin_keeps_its_first_line_and_shape() -> None:
    of = problem(
        style="stdio", tests=({"stdin": "3 7\n1 5 9\nabc\n", "stdout": ""},), entry_point=None
    )
    examples = [example["stdin"] for example in generate_inputs(of, 20)]
    assert len(examples) > 3
    assert all(
        text.startswith("3 7\n")
        and [len(line.split()) for line in text.split("\n")] == [2, 3, 1, 0]
        for text in examples
    )


@pytest.mark.parametrize("of", generate()[:8], ids=lambda of: of.problem_id)
def test_inputs_are_generated_for_the_simple_problems(of: Problem) -> None:
    assert generate_inputs(of, 12)


def test_all_elements_cross_a_threshold_that_the_tests_have_among_the_arguments() -> None:
    threshold = problem([[1, 2, 4, 10], 100], [[1, 20, 4, 10], 5])
    inputs = [each["args"] for each in generate_inputs(threshold, 24)]
    assert any(min(values, default=0) > limit for values, limit in inputs)


def test_a_number_is_tried_at_the_bounds_of_the_list_beside_it() -> None:
    inputs = [each["args"] for each in generate_inputs(problem([[1, 5, 9], 20], [[2, 4], 1]), 24)]
    assert [[1, 5, 9], 4] in inputs  # the least difference
    assert [[1, 5, 9], 9] in inputs


def test_two_arguments_are_equal_in_a_wide_input() -> None:
    inputs = generate_inputs(problem([[1, 2, 3], [2]], [[4], [4, 5]]), 24, wide=True)
    assert [[1, 2, 3], [1, 2, 3]] in [each["args"] for each in inputs]
