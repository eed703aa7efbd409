"""The embedded family: correct solutions, discriminating tests, disjoint splits."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts.hashing import hash_data
from problems.sources.compositional import VERSION, FamilyConfig, generate, part_of
from problems.sources.heldout import heldout_draw
from problems.sources.operations import OPERATIONS, Operation

SMALL = FamilyConfig(demonstrations=60, train=40, validation=20)


def test_the_same_seed_makes_the_same_problems() -> None:
    assert [p.content_hash for p in generate(SMALL)] == [p.content_hash for p in generate(SMALL)]
    assert (
        generate(SMALL)[0].content_hash
        != generate(SMALL.model_copy(update={"seed": 2}))[0].content_hash
    )


def test_the_version_names_what_is_generated() -> None:
    """If this fails, raise VERSION too: homes keep their stored problems until it changes."""
    generated = hash_data([problem.content_hash for problem in generate(SMALL)])[:16]
    assert (VERSION, generated) == (2, "2b071cb7fc309d06")


@pytest.mark.slow
def test_no_held_out_composition_is_trained_on() -> None:
    trained = {
        p.extra["composition"] for p in generate(FamilyConfig(demonstrations=800, train=400))
    }
    held_out = {
        p.extra["composition"] for number in (1, 2) for p in heldout_draw(SMALL, number, 300)
    }
    assert not trained & held_out


@given(first=st.integers(1, 6), second=st.integers(1, 6))
@settings(max_examples=15)
def test_two_draws_of_a_gate_share_no_composition(first: int, second: int) -> None:
    if first != second:
        a, b = (
            {p.extra["composition"] for p in heldout_draw(SMALL, number, 40)}
            for number in (first, second)
        )
        assert not a & b


def test_every_composition_belongs_to_one_part() -> None:
    parts = [part_of(p.extra["composition"]) for p in generate(SMALL)]
    assert set(parts) == {"training", "validation"}
    assert {part_of(p.extra["composition"]) for p in heldout_draw(SMALL, 1, 50)} == {"heldout"}


def test_each_problem_has_eight_tests_and_three_solutions() -> None:
    for problem in generate(SMALL):
        assert len(problem.tests) >= 8
        assert len(set(problem.solutions)) == 3


def test_no_mistake_equals_the_code_of_another_operation() -> None:
    assert not {operation.slip for operation in OPERATIONS if operation.slip} & {
        operation.code for operation in OPERATIONS
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_both_forms_of_an_operation_agree_and_its_mistake_differs(
    operation: Operation,
) -> None:
    values: dict[str, list[Any]] = {
        "text": ["", "  Tea  or tea", "Level noon", "a b C"],
        "words": [[], ["tree", "tea", "river", "tree"], ["level", "a"], ["stone", "bird", "of"]],
        "nums": [[], [3, 5, 3, 5, -3, 0], [7], [15, -9, 4, 4, 1, 2]],
        "num": [0, -7, 120, 4999],
        "table": [{}, {"b": 2, "a": 1}, {3: 1, 1: 4}, {"tea": 3, "or": 1}],
    }
    inputs = values[operation.takes]
    expected = [eval(operation.code, {"x": x}) for x in inputs]
    assert [eval(operation.other, {"x": x}) for x in inputs] == expected
    if operation.slip:

        def mistaken(x: Any) -> Any:
            try:
                return eval(operation.slip, {"x": x})
            except ValueError as error:
                return error

        assert [mistaken(x) for x in inputs] != expected
