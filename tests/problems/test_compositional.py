"""The embedded family: correct solutions, discriminating tests, disjoint splits."""

from typing import Any

import pytest

from problems.embedded.behaviour import outputs
from problems.embedded.compositional import composition_of, generate
from problems.embedded.heldout import heldout_tasks
from problems.embedded.operations import OPERATIONS, Operation, compiled
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all

SMALL = FamilyConfig(demonstrations=60, train=40, validation=20)


def test_the_same_seed_makes_the_same_problems() -> None:
    assert [p.content_hash for p in generate(SMALL)] == [p.content_hash for p in generate(SMALL)]
    assert (
        generate(SMALL)[0].content_hash
        != generate(SMALL.model_copy(update={"seed": 2}))[0].content_hash
    )


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [*generate(SMALL), *heldout_tasks(SMALL, 0, 60)]


def test_no_problem_is_constant(problems: list[Problem]) -> None:
    for problem in problems:
        assert len({repr(test["expected"]) for test in problem.tests}) >= 4


def test_no_step_of_a_problem_is_idle(problems: list[Problem]) -> None:
    for problem in problems:
        operations = composition_of(problem)
        values = [test["args"][0] for test in problem.tests]
        expected = outputs(operations, values)
        for place, step in enumerate(operations):
            if step.takes == step.gives:
                assert outputs(operations[:place] + operations[place + 1 :], values) != expected


def test_tests_refuse_each_typical_mistake(problems: list[Problem]) -> None:
    for problem in problems:
        operations = composition_of(problem)
        values = [test["args"][0] for test in problem.tests]
        for place, step in enumerate(operations):
            if step.slip:
                assert outputs(operations, values, place) != outputs(operations, values)


def test_every_solution_passes_in_the_sandbox(problems: list[Problem], sandbox: Sandbox) -> None:
    jobs = [
        problem.job(solution, f"{problem.problem_id}/{number}")
        for problem in problems[::4]
        for number, solution in enumerate(problem.solutions)
    ]
    assert {report.verdict for report in run_all(sandbox, jobs)} == {Verdict.AC}


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
        "nums": [[], [3, 5, 3, 5, -3, 0], [7], [15, -9, 4, 4, 1, 2], [1, 2, 3, 4]],
        "num": [0, -7, 120, 4999, 8],
        "table": [{}, {"b": 2, "a": 1}, {3: 1, 1: 4}, {"tea": 3, "or": 1}],
    }
    inputs = values[operation.takes]
    expected = outputs((operation,), inputs)
    assert [compiled(operation.other)(x) for x in inputs] == expected
    if operation.slip:
        assert outputs((operation,), inputs, 0) != expected
