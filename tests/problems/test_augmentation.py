"""Augmentation keeps the references right: what is made passes its own tests in the real sandbox, and is not what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.augmentation import composed, constant, inverted, renamed, reworded
from problems.augmentation.augment import Augmentation, Kind, augment
from problems.augmentation.composed import covered
from problems.augmentation.draft import Draft
from problems.cleaning.curation import curate
from problems.schema import Problem
from problems.verification.verification import verify
from sandbox.protocol import Limits, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

ALL = Augmentation(kinds=get_args(Kind))
QUICK = Limits(wall_s=20.0, cpu_s=1.0, memory_mb=128)
LISTS: list[Any] = [[], [1], [7, 3, 9, 3], [5, 4, 3, 2, 1], [2, 2, 8], [6, 11, -4]]
NUMBERS: list[Any] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, -3]
ABOVE = "Write {f}({x}), where {x} is a list of integers. It returns the list of those greater than {k}, in the order in which they came."
LOOP = (
    "kept = []\n    for n in {x}:\n        if n > {k}:\n            kept.append(n)\n    return kept"
)
TOTAL = "total = {k}\n    for n in {x}:\n        total += n\n    return total"
ORDER = "Write {f}({x}), which returns the integers of a list in ascending order. For an empty list it returns an empty list."
FAMILIES: list[
    tuple[str, list[str], list[Any], Any]
] = [  # statement, solutions, inputs, what is right
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


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(workers=2)) as opened:
        yield opened


@pytest.mark.slow
@settings(max_examples=4)
@given(problems=SETS, seed=st.integers(0, 99))
def test_every_made_problem_passes_verification_with_all_its_references(
    sandbox: Sandbox, problems: list[Problem], seed: int
) -> None:
    augmented = augment(problems, ALL, seed, sandbox)
    with TemporaryDirectory() as folder:
        removed = verify(augmented.made, sandbox, Path(folder) / "journal.jsonl").removed
    assert {row.reason for row in removed} <= {"tests too weak"}
    assert augmented.stage.came_in == len(problems) * len(get_args(Kind))


@settings(max_examples=6)
@given(problems=SETS)
def test_a_right_answer_to_the_parent_is_wrong_for_what_was_changed_or_inverted(
    sandbox: Sandbox, problems: list[Problem]
) -> None:
    by_id = {problem.problem_id: problem for problem in problems}
    made = augment(problems, Augmentation(kinds=("constant", "inverted")), 1, sandbox).made
    jobs = [
        problem.job(source, problem.problem_id)
        for problem in made
        for source in by_id[problem.parents[0]].solutions
    ]
    assert [
        report.job_id for report in run_all(sandbox, jobs) if report.verdict is not Verdict.WA
    ] == []


@given(problems=SETS, data=st.data())
@settings(max_examples=4)
def test_the_order_of_the_problems_changes_nothing(
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
    made = Problem(
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
    return replace(made, **changes)


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
def test_what_judges_and_what_was_made_is_no_parent(
    sandbox: Sandbox, changes: dict[str, Any]
) -> None:
    augmented = augment([toy(**changes)], ALL, 1, sandbox)
    assert not augmented.made and not augmented.refused and sum(augmented.not_parents.values()) == 1


def test_what_is_made_says_of_whom_and_how_and_keeps_part_and_licence(sandbox: Sandbox) -> None:
    for problem in (made := augment([toy()], ALL, 1, sandbox).made):
        assert (
            problem.parents == ("toy/1",)
            and problem.extra["made_by"] == f"augmentation/{problem.problem_id.split('/')[1]}"
        )
        assert (problem.split, problem.licence, problem.source) == ("train", "MIT", "augmented")
    assert made


def draft(mutate: Any, problem: Problem, *others: Problem) -> Draft:
    made = mutate(problem, [problem, *others], Random(1))
    assert isinstance(made, Draft), made
    return made


def test_a_name_is_changed_in_statement_starter_code_solutions_and_arguments_by_name() -> None:
    problem = toy(
        starter_code="def f(x): ...", tests=({"args": [], "kwargs": {"x": 1}, "expected": 6},)
    )
    made = draft(renamed.mutate, problem)
    new = made.entry_point
    (parameter,) = made.tests[0]["kwargs"]
    assert (
        f"{new}({parameter})" in made.statement
        and made.starter_code == f"def {new}({parameter}): ..."
    )
    assert made.solutions == (
        f"def {new}({parameter}):\n    return {parameter} + 5\n",
        f"def {new}({parameter}):\n    return 5 + {parameter}\n",
    )


def test_a_name_that_is_a_word_of_the_statement_stays() -> None:
    problem = toy(
        "Write f(rolls). Who puts rolls on trays, gets rolls + 5.",
        solutions=("def f(rolls):\n    return rolls + 5\n",),
    )
    assert (
        "f → " in draft(renamed.mutate, problem).change
        and "rolls →" not in draft(renamed.mutate, problem).change
    )


def test_builtins_imports_and_names_of_others_stay() -> None:
    source = "from math import floor\ndef f(x):\n    total = sum([x, 5], start=0)\n    return floor(total)\n"
    (made,) = draft(renamed.mutate, toy(solutions=(source,))).solutions
    assert "sum(" in made and "start=0" in made and "floor(" in made and "total" not in made


def test_code_and_quotes_are_never_reworded() -> None:
    said = 'Write f(largest), which returns the largest of the integers in `largest integers`; for each it prints "the sum of largest".'
    made = draft(reworded.mutate, toy(said))
    assert (
        "f(largest)" in made.statement
        and "`largest integers`" in made.statement
        and '"the sum of largest"' in made.statement
    )
    assert "of the integers in" not in made.statement


def test_a_number_changes_where_it_is_said_and_where_two_solutions_use_it() -> None:
    made = draft(constant.mutate, toy())
    _, new = made.change.split(" → ")
    assert f"and {new}." in made.statement and made.solutions == (
        f"def f(x):\n    return x + {new}\n",
        f"def f(x):\n    return {new} + x\n",
    )


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (toy("Write f(x): x and 5, for instance f(1) == 6."), "examples"),
        (toy("Write f(x), which returns 5 more than x; f([1]) is 6."), "examples"),
        (toy(solutions=toy().solutions[:1]), "two solutions"),
        (toy("Write f(x): x, 5 and 5 again."), "once"),
        (toy("Write f(x), modulo 10^5 and 5.5."), "once"),
        (toy(style="stdio"), "no function"),
        (toy(entry_point="S().f"), "method"),
    ],
)
def test_a_number_is_left_alone_where_something_would_be_wrong(problem: Problem, why: str) -> None:
    said = constant.mutate(problem, [problem], Random(1))
    assert isinstance(said, str) and why in said


def test_a_number_that_changes_nothing_on_the_inputs_is_dropped(sandbox: Sandbox) -> None:
    solutions = ("def f(x):\n    return x + (x > 50)\n", "def f(x):\n    return x + int(x > 50)\n")
    problem = toy("Write f(x), which returns x, and one more above 50.", solutions=solutions)
    problem = replace(
        problem, tests=tuple({"args": [value], "expected": value} for value in range(4))
    )
    augmented = augment([problem], Augmentation(kinds=("constant",)), 1, sandbox)
    assert [row.reason for row in augmented.refused] == ["nothing changes on its inputs"]


def test_references_whose_answers_may_come_in_any_order_agree_and_the_order_kept_is_no_programs(
    sandbox: Sandbox,
) -> None:
    said = "Write f(words), which returns the words of at least 3 letters, each once, in any order."
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
    problem = toy(said, solutions=sources, tests=tests, compare="unordered")
    (made,) = augment([problem], Augmentation(kinds=("constant",), variants=1), 5, sandbox).made
    assert all(test["expected"] == sorted(test["expected"]) for test in made.tests)


def test_answers_that_are_named_change_places() -> None:
    problem = toy(
        "Return True if x is above 5, and False otherwise.",
        "return x > 5",
        tests=({"args": [9], "expected": True},),
    )
    made = draft(
        inverted.mutate,
        replace(
            problem,
            solutions=("def f(x):\n    if x == 5:\n        return False\n    return x > 5\n",),
        ),
    )
    assert made.statement == "Return False if x is above 5, and True otherwise."
    assert made.solutions == (
        "def f(x):\n    if x == 5:\n        return True\n    return not x > 5\n",
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x < 1 or f(x - 2)\n",
        "def f(x):\n    for n in [x]:\n        return n > 3\n",
    ],
)
def test_what_calls_itself_or_may_end_without_a_word_is_not_negated(source: str) -> None:
    problem = toy(
        "Tell whether x is odd.", tests=({"args": [9], "expected": True},), solutions=(source,)
    )
    assert isinstance(inverted.mutate(problem, [], Random(1)), str)


def test_an_order_is_reversed_in_words_and_programs_where_two_of_them_show_it() -> None:
    solutions = (
        "def f(x):\n    return sorted(x)\n",
        "def f(x):\n    x = list(x)\n    x.sort(reverse=True)\n    return x\n",
    )
    problem = toy(
        "Write f(x), which gives x in ascending order.",
        tests=({"args": [[2, 1]], "expected": [1, 2]},),
        solutions=solutions,
    )
    made = draft(inverted.mutate, problem)
    assert "descending" in made.statement
    assert made.solutions == (
        "def f(x):\n    return sorted(x, reverse=True)\n",
        "def f(x):\n    x = list(x)\n    x.sort()\n    return x\n",
    )
    assert "too few" in str(
        inverted.mutate(replace(problem, solutions=solutions[:1]), [], Random(1))
    )


def test_two_programs_with_the_same_names_become_one(sandbox: Sandbox) -> None:
    one = toy(solutions=("STEP = 5\ndef f(x):\n    return x + STEP\n",))
    two = toy(
        problem_id="toy/2",
        statement="Write f(x), which doubles x.",
        solutions=("STEP = 2\ndef f(x):\n    return STEP * x\n",),
    )
    two = replace(
        two, tests=tuple({"args": [value], "expected": 2 * value} for value in (0, 9, 20))
    )
    made = augment([one, two], Augmentation(kinds=("composed",)), 1, sandbox).made
    assert [
        (problem.parents, [test["expected"] for test in problem.tests]) for problem in made
    ] == [(("toy/1", "toy/2"), [10, 12, 14, 16])]


def test_problems_of_two_licences_are_not_composed() -> None:
    other = toy(problem_id="toy/2", licence="CC-BY-4.0")
    assert composed.mutate(toy(), [other], Random(1)) == "no other problem takes what it gives"


@pytest.mark.parametrize(
    ("value", "seen", "fits"),
    [
        (3, [1, 5], True), (6, [1, 5], False), (3.0, [1, 5], False), (True, [0, 1], False), (None, [None], True), ("", ["a"], False),
        ("b", ["a", ""], True),
        ([], [[1]], False), ([2], [[1, 3], []], True), ([9], [[1, 3], []], False), ([1, 2, 3], [[1, 2], [1, 3], [2, 3]], False), ((1,), [[1]], False),
        ({"a": 1}, [{"b": 2, "c": 0}, {}], True), ({1: 1}, [{"b": 2}], False),
    ],
)  # fmt: skip
def test_a_value_fits_where_one_like_it_was_seen(value: Any, seen: list[Any], fits: bool) -> None:
    assert covered(value, seen) is fits


def test_what_is_made_stays_beside_its_parent_and_goes_where_another_problem_is_the_same(
    sandbox: Sandbox,
) -> None:
    parent = toy("Write f(x), which returns the sum of x and 5 for each of the integers x.")
    made = augment(
        [parent], Augmentation(kinds=("renamed", "reworded", "constant")), 1, sandbox
    ).made
    assert len(made) == 3 and not curate([parent, *made], []).removed
    copy = replace(made[0], problem_id="other/1", source="other", extra={})
    assert [row.reason for row in curate([parent, *made, copy], []).removed] == ["duplicate"]


def test_what_is_made_of_a_leak_goes_with_it(sandbox: Sandbox) -> None:
    parent = toy("Write f(x), which returns the sum of x and 5 for each of the integers x.")
    made = augment([parent], Augmentation(kinds=("renamed", "constant")), 1, sandbox).made
    gated = replace(parent, problem_id="bench/1", source="bench", gated=True)
    assert {row.reason for row in curate([parent, *made], [gated]).removed} == {
        "overlaps a gated problem"
    } and not curate([parent, *made], [gated]).kept


def test_a_statement_that_names_nothing_is_not_renamed() -> None:
    parent = replace(toy("Return the sum of five and each of the integers."), visible_tests=1)
    assert (
        renamed.mutate(parent, [], Random(1))
        == "its statement names nothing that changes: it would be a copy"
    )
