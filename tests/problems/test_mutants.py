"""Mutants are distinct valid programs, few, named and reproducible."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import normal_form
from problems.verification.mutants import mutants

FAMILY = generate(FamilyConfig(demonstrations=40, train=40, validation=5))
EXPRESSIONS = st.recursive(
    st.sampled_from(
        [
            "x",
            "y",
            "0",
            "1",
            "'a'",
            "''",
            "True",
            "2.5",
            "[x, 1]",
            "x[1:y]",
            "f(x)",
            "max(x, y)",
            "f'{x}'",
        ]
    ),
    lambda inner: (
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["+", "-", "*", "//", "%", "**", "<", ">=", "==", "in", "and", "or"]),
            inner,
        )
        | st.builds("(not {})".format, inner)
        | st.builds("({} if {} else {})".format, inner, inner, inner)
    ),
    max_leaves=8,
)
STATEMENTS = st.one_of(
    st.builds("x = {}".format, EXPRESSIONS),
    st.builds("x += {}".format, EXPRESSIONS),
    st.builds("if {}: y = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("while {}: break".format, EXPRESSIONS),
    st.builds("for i in range({}): continue".format, EXPRESSIONS),
    st.builds("return {}".format, EXPRESSIONS),
    st.builds("x = [y for y in {} if {}]".format, EXPRESSIONS, EXPRESSIONS),
    st.just('"""a text"""'),
)
PROGRAMS = st.lists(STATEMENTS, min_size=1, max_size=8).map(
    lambda lines: "def f(x, y=1):\n" + "\n".join(f"    {line}" for line in lines)
)


@settings(max_examples=20)
@given(source=PROGRAMS, most=st.integers(0, 12))
def test_mutants_are_distinct_valid_programs(source: str, most: int) -> None:
    mutated = mutants(source, most, "f")
    trees = [ast.dump(ast.parse(mutant.source)) for mutant in mutated]
    assert (
        len({normal_form(source), *map(normal_form, (mutant.source for mutant in mutated))})
        == len(mutated) + 1
        == len({*trees}) + 1
    )
    assert len(mutated) <= most
    assert mutated == mutants(source, most, "f")
    assert all(
        mutant.kind and 1 <= mutant.line <= source.count("\n") + 1 and "becomes" in mutant.name
        for mutant in mutated
    )


@pytest.mark.parametrize("problem", FAMILY[::9], ids=lambda problem: problem.extra["composition"])
def test_every_problem_of_the_family_has_mutants(problem: Problem) -> None:
    assert mutants(problem.solutions[0], 4, problem.entry_point)


def test_a_few_mutants_cover_all_kinds() -> None:
    source = (
        "def f(x):\n    if x < 0 and x != 7:\n        return -x\n    total = 0\n"
        "    for i in range(1, x):\n        total += i * 2\n    return total"
    )
    mutated = mutants(source, 5, "f")
    assert sorted(mutant.kind for mutant in mutated) == [
        "boolean",
        "comparison",
        "constant",
        "operator",
        "return",
    ]


@pytest.mark.parametrize(
    "source",
    [
        'def f(x: int = None) -> "list[int]":\n    """Adds 1."""\n    return x',
        "def f(x):\n    raise ValueError('x' + str(1))",
        "def f(x):\n    return x\ndef unused(x):\n    return x + 1",
        "def f(x):\n    return x\ndef same(a, b):\n    return a == b or same(a + 1, b)\n"
        "class C:\n    def __init__(self):\n        self.x = 1",
        "def f(x):\n    return x\nif __name__ == '__main__':\n    print(f(1) + 1)",
        "MOD = 1000000007\ndef f(x):\n    return x",
        "def f(x):\n    print(x)\n    return x",
        "def f(x",
        "",
        "x = 1\0",
        "(" * 5000,
    ],
)
def test_code_without_observable_effect_is_not_mutated(source: str) -> None:
    assert mutants(source, 8, "f") == []


def test_data_that_the_entry_point_never_reads_is_not_mutated() -> None:
    source = "UNUSED = [3, 4]\nTABLE = {1: 5}\ndef f(x):\n    return TABLE[x]"
    lines = {mutant.line for mutant in mutants(source, 20, "f")}
    assert 2 in lines
    assert 1 not in lines


def test_the_choice_of_mutants_depends_on_the_program() -> None:
    names = {
        tuple(
            mutant.name
            for mutant in mutants(f"def f(x):\n    return x * {k} + x // {k} - x % {k}", 1, "f")
        )
        for k in range(2, 12)
    }
    assert len(names) > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mbpp", "humaneval"])
def test_real_solutions_have_mutants(data: Callable[[str], Path], name: str) -> None:
    problems = random.Random(1).sample(load(name, data(name)).problems, 60)
    mutated = [mutants(problem.solutions[0], 4, problem.entry_point) for problem in problems]
    assert sum(bool(some) for some in mutated) >= 50
