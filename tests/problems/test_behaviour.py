"""Running the programs tells a renamed task from one that only sounds alike."""

from __future__ import annotations

from problems.cleaning.behaviour import called, compare, program_for
from problems.schema import Problem
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox
from tests.problems.test_curation import toy

ODD = "def odd_sum(xs):\n    return sum(x for x in xs if x % 2)\n"


def task(key: str, source: str, wanted: list[tuple[list[int], int]]) -> Problem:
    tests = tuple({"args": [args], "expected": value} for args, value in wanted)
    name = source.split("(")[0].removeprefix("def ")
    return toy(key, "Add some numbers.", source, tests=tests, entry_point=name)


GATED = task("gated", ODD, [([1, 2, 3], 4), ([5, 7, 20, 30], 12), ([8, 10, 14], 0)])


def test_another_program_under_another_name_behaves_the_same(sandbox: Sandbox) -> None:
    other = "def total(v):\n    t = 0\n    for n in v:\n        t += n * (n % 2)\n    return t\n"
    mine = task("mine", other, [([1, 20, 31], 32), ([4, 6, 11, 9], 20)])
    (behaviour,) = compare([(mine, GATED)], sandbox)
    assert behaviour.same
    assert behaviour.theirs is behaviour.mine is Verdict.AC
    assert behaviour.agreed > 5


def test_a_look_alike_behaves_differently(sandbox: Sandbox) -> None:
    even = "def even_sum(xs):\n    return sum(x for x in xs if x % 2 == 0)\n"
    mine = task("mine", even, [([1, 20, 31], 20), ([4, 6, 11, 9], 10)])
    (behaviour,) = compare([(mine, GATED)], sandbox)
    assert behaviour.different
    assert not behaviour.same


def test_generated_inputs_tell_apart_what_few_tests_do_not(sandbox: Sandbox) -> None:
    first = "def head(xs):\n    return sum(x for x in xs[:2] if x % 2)\n"
    mine = task("mine", first, [([1, 20, 31], 1), ([3, 6, 11, 9], 3)])
    weak = task("gated", ODD, [([1, 2, 4], 1), ([5, 7, 20, 30], 12)])
    (behaviour,) = compare([(mine, weak)], sandbox)
    assert behaviour.theirs is Verdict.AC
    assert not behaviour.same


def test_a_solution_that_fails_its_own_tests_proves_no_difference(sandbox: Sandbox) -> None:
    mine = task("mine", "def f(xs):\n    return None\n", [([1], 1), ([30, 2, 7], 7)])
    (behaviour,) = compare([(mine, GATED)], sandbox)
    assert not behaviour.different
    assert not behaviour.same


def test_a_method_is_called_for_a_function_and_in_return() -> None:
    method = toy(
        "method",
        "Add.",
        "class Solution:\n    def add(self, xs):\n        return sum(xs)\n",
        entry_point="Solution().add",
    )
    for solver, tested, call in ((method, GATED, "odd_sum"), (GATED, method, "Solution().add")):
        space: dict[str, object] = {}
        exec(program_for(solver, tested) or "", space)
        assert eval(f"{call}([1, 3])", space) == 4


def test_a_program_that_has_a_function_of_the_tested_name_still_calls_its_own() -> None:
    source = (
        "def odd_sum(xs):\n    return sum(xs)\n\n\ndef solve(xs):\n    return odd_sum(xs) + 1\n"
    )
    program = program_for(toy("mine", "Add.", source, entry_point="solve"), GATED)
    space: dict[str, object] = {}
    exec(program or "", space)
    assert eval("odd_sum([1, 2])", space) == 4


def test_without_an_entry_point_the_function_that_no_other_calls_is_meant() -> None:
    source = "def solve(xs):\n    return part(xs) + 1\n\n\ndef part(xs):\n    return sum(xs)\n"
    assert called(toy("mine", "Add.", source, entry_point=None)) == "solve"
    assert called(toy("mine", "Add.", source, entry_point="part")) == "part"
