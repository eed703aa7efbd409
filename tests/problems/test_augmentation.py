"""Augmented problems pass their own tests and differ from their parents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.augmentation.augment import augment
from problems.augmentation.settings import Augmentation, Kind
from problems.cleaning.curation import curate
from problems.schema import Problem
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.protocol import Limits, Verdict
from sandbox.sandbox import Sandbox, run_all

RULES = Verification(mutants=4, repeats=1)
ALL = Augmentation(kinds=get_args(Kind))
QUICK = Limits(wall_s=20.0, cpu_s=1.0, memory_mb=128)
LISTS: list[Any] = [[], [1], [7, 3, 9, 3], [5, 4, 3, 2, 1], [2, 2, 8], [6, 11, -4]]
NUMBERS: list[Any] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, -3]
ABOVE = (
    "Write {f}({x}), where {x} is a list of integers. It returns the list of those greater "
    "than {k}, in the order in which they came."
)
LOOP = (
    "kept = []\n    for n in {x}:\n        if n > {k}:\n            kept.append(n)\n    return kept"
)
TOTAL = "total = {k}\n    for n in {x}:\n        total += n\n    return total"
ORDER = (
    "Write {f}({x}), which returns the integers of a list in ascending order. For an empty "
    "list it returns an empty list."
)
FAMILIES: list[
    tuple[str, list[str], list[Any], Any]
] = [  # statement, solutions, inputs, correct function
    (
        ABOVE,
        ["return [n for n in {x} if n > {k}]", "return list(filter(lambda n: n > {k}, {x}))", LOOP],
        LISTS,
        lambda x, k: [n for n in x if n > k],
    ),
    (
        "Write {f}({x}), which tells whether the integer {x} is at least {k}.",
        ["return {x} >= {k}", "if {x} < {k}:\n        return False\n    return True"],
        NUMBERS,
        lambda x, k: x >= k,
    ),
    (
        ORDER,
        ["return sorted({x})", "result = list({x})\n    result.sort()\n    return result"],
        LISTS,
        lambda x, k: sorted(x),
    ),
    (
        "Write {f}({x}), which returns the sum of the list {x} and {k}.",
        ["return sum({x}) + {k}", TOTAL],
        LISTS,
        lambda x, k: sum(x) + k,
    ),
]


@st.composite
def toys(draw: st.DrawFn) -> Problem:
    statement, bodies, inputs, right = draw(st.sampled_from(FAMILIES))
    name = draw(st.sampled_from(["work", "above_it", "tidyUp", "f"]))
    names = {
        "f": name,
        "x": draw(st.sampled_from(["xs", "values", "n1", "given"])),
        "k": draw(st.integers(2, 9)),
    }
    return Problem(
        problem_id=f"toy/{draw(st.integers(0, 10**9))}",
        source="toy",
        statement=statement.format(**names),
        style="call",
        tests=tuple({"args": [value], "expected": right(value, names["k"])} for value in inputs),
        entry_point=name,
        starter_code=f"def {name}({names['x']}):\n    ...\n",
        solutions=tuple(
            f"def {name}({names['x']}):\n    {body.format(**names)}\n" for body in bodies
        ),
        limits=QUICK,
        licence="MIT",
    )


SETS = st.lists(toys(), min_size=3, max_size=6, unique_by=lambda problem: problem.problem_id)


@pytest.mark.slow
@settings(max_examples=2)
@given(problems=SETS, seed=st.integers(0, 99))
def test_every_augmented_problem_passes_verification(
    sandbox: Sandbox, problems: list[Problem], seed: int
) -> None:
    augmented = augment(problems, ALL, seed, sandbox)
    with TemporaryDirectory() as folder:
        removed = verify(augmented.problems, sandbox, Path(folder) / "journal.jsonl", RULES).removed
    assert {row.reason for row in removed} <= {"tests too weak"}
    assert augmented.stage.came_in == len(problems) * len(get_args(Kind))


@settings(max_examples=3)
@given(problems=SETS)
def test_solutions_of_the_parent_fail_changed_and_inverted_problems(
    sandbox: Sandbox, problems: list[Problem]
) -> None:
    by_id = {problem.problem_id: problem for problem in problems}
    derived = augment(problems, Augmentation(kinds=("constant", "inverted")), 1, sandbox).problems
    jobs = [
        problem.job(source, problem.problem_id)
        for problem in derived
        for source in by_id[problem.parents[0]].solutions
    ]
    assert [
        report.job_id for report in run_all(sandbox, jobs) if report.verdict is not Verdict.WA
    ] == []


@given(problems=SETS, data=st.data())
@settings(max_examples=2)
def test_augmentation_does_not_depend_on_the_order_of_problems(
    sandbox: Sandbox, problems: list[Problem], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(problems))
    assert augment(problems, ALL, 1, sandbox) == augment(shuffled, ALL, 1, sandbox)


def toy(
    statement: str = "Write f(x), which returns the sum of x and 5.",
    body: str = "return x + 5",
    **changes: Any,
) -> Problem:
    tests = tuple({"args": [value], "expected": value + 5} for value in range(4))
    solutions = (f"def f(x):\n    {body}\n", "def f(x):\n    return 5 + x\n")
    derived = Problem(
        "toy/1",
        "toy",
        statement,
        "call",
        tests,
        "f",
        solutions=solutions,
        limits=QUICK,
        licence="MIT",
        visible_tests=1,
    )
    return replace(derived, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"gated": True},
        {"split": "validation"},
        {"split": "heldout"},
        {"extra": {"composition": "sum"}},
        {"extra": {"parents": ["toy/0"]}},
    ],
)
def test_gated_held_out_and_derived_problems_are_no_parents(
    sandbox: Sandbox, changes: dict[str, Any]
) -> None:
    augmented = augment([toy(**changes)], ALL, 1, sandbox)
    assert not augmented.problems
    assert not augmented.refused
    assert sum(augmented.not_parents.values()) == 1


def test_an_augmented_problem_names_its_parent_and_keeps_its_licence(sandbox: Sandbox) -> None:
    for problem in (derived := augment([toy()], ALL, 1, sandbox).problems):
        assert problem.parents == ("toy/1",)
        assert problem.extra["made_by"] == f"augmentation/{problem.problem_id.split('/')[1]}"
        assert (problem.split, problem.licence, problem.source) == ("train", "MIT", "augmented")
    assert derived


def test_a_constant_without_effect_on_the_inputs_is_rejected(sandbox: Sandbox) -> None:
    solutions = ("def f(x):\n    return x + (x > 50)\n", "def f(x):\n    return x + int(x > 50)\n")
    problem = toy("Write f(x), which returns x, and one more above 50.", solutions=solutions)
    problem = replace(
        problem, tests=tuple({"args": [value], "expected": value} for value in range(4))
    )
    augmented = augment([problem], Augmentation(kinds=("constant",)), 1, sandbox)
    assert [row.reason for row in augmented.refused] == ["nothing changes on its inputs"]


def test_unordered_expected_values_are_stored_sorted(
    sandbox: Sandbox,
) -> None:
    statement = (
        "Write f(words), which returns the words of at least 3 letters, each once, in any order."
    )
    sources = (
        "def f(words):\n    return list({w for w in words if len(w) >= 3})\n",
        "def f(words):\n    return [*dict.fromkeys(w for w in words if len(w) >= 3)]\n",
    )
    inputs = (
        ["tea", "sun", "tea", "river"],
        ["moon", "to", "a", "mist"],
        ["of", "ray", "stone", "light"],
    )
    tests = tuple(
        {"args": [words], "expected": sorted({w for w in words if len(w) >= 3})} for words in inputs
    )
    problem = toy(statement, solutions=sources, tests=tests, compare="unordered")
    (derived,) = augment(
        [problem], Augmentation(kinds=("constant",), variants=1), 5, sandbox
    ).problems
    assert all(test["expected"] == sorted(test["expected"]) for test in derived.tests)


def test_programs_with_equal_names_are_composed(sandbox: Sandbox) -> None:
    one = toy(solutions=("STEP = 5\ndef f(x):\n    return x + STEP\n",))
    two = toy(
        problem_id="toy/2",
        statement="Write f(x), which doubles x.",
        solutions=("STEP = 2\ndef f(x):\n    return STEP * x\n",),
    )
    two = replace(
        two, tests=tuple({"args": [value], "expected": 2 * value} for value in (0, 9, 20))
    )
    derived = augment([one, two], Augmentation(kinds=("composed",)), 1, sandbox).problems
    assert [
        (problem.parents, [test["expected"] for test in problem.tests]) for problem in derived
    ] == [(("toy/1", "toy/2"), [10, 12, 14, 16])]


def test_augmented_problems_are_no_duplicates_of_their_parent(
    sandbox: Sandbox,
) -> None:
    parent = toy("Write f(x), which returns the sum of x and 5 for each of the integers x.")
    derived = augment([parent], Augmentation(kinds=("constant",)), 1, sandbox).problems
    assert len(derived) == 1
    assert not curate([parent, *derived], []).removed
    copy = replace(derived[0], problem_id="other/1", source="other", extra={})
    assert [row.reason for row in curate([parent, *derived, copy], []).removed] == ["duplicate"]


def test_derivatives_of_a_leaked_problem_are_removed_with_it(sandbox: Sandbox) -> None:
    parent = toy("Write f(x), which returns the sum of x and 5 for each of the integers x.")
    derived = augment([parent], Augmentation(kinds=("constant",)), 1, sandbox).problems
    gated = replace(parent, problem_id="bench/1", source="bench", gated=True)
    assert {row.reason for row in curate([parent, *derived], [gated]).removed} == {
        "overlaps a gated problem"
    }
    assert not curate([parent, *derived], [gated]).problems
