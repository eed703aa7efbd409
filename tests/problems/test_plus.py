"""HumanEval+ and MBPP+ decide as EvalPlus does, in the real sandbox."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from problems.schema import Problem
from problems.sources.registry import load
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all


def task(
    folder: Path, number: int, canonical: str, base: list[Any], plus: list[Any], atol: float = 0
) -> Problem:
    row = {
        "task_id": f"Mbpp/{number}",
        "prompt": '"""\nDo it.\nassert f(1) == 1\n"""\n',
        "entry_point": "f",
        "canonical_solution": canonical,
    }
    with gzip.open(folder / "MbppPlus.jsonl.gz", "wt") as file:
        file.write(json.dumps(row | {"base_input": base, "plus_input": plus, "atol": atol}))
    (problem,) = load("mbppplus", folder).problems
    assert problem.statement == "Do it."
    assert problem.gated
    return problem


def verdicts(sandbox: Sandbox, problem: Problem, *programs: str) -> list[tuple[bool, ...]]:
    """Return which of the tests (base, plus) each program passes."""
    reports = run_all(
        sandbox, [problem.job(program, str(number)) for number, program in enumerate(programs)]
    )
    return [tuple(test.verdict is Verdict.AC for test in report.tests) for report in reports]


def test_base_and_plus_tests_are_scored_separately(sandbox: Sandbox, tmp_path: Path) -> None:
    problem = task(tmp_path, 9, "def f(x):\n    return abs(x)", [[1], [2]], [[-1], [0]])
    assert verdicts(
        sandbox,
        problem,
        "def f(x): return max(x, -x)",
        "def f(x): return x",
        "def f(x): return None",
    ) == [
        (True, True),
        (True, False),
        (False, False),
    ]


def test_floats_have_a_tolerance_but_types_must_match(sandbox: Sandbox, tmp_path: Path) -> None:
    problem = task(tmp_path, 9, "def f(x):\n    return [x / 3]", [[1]], [[1e9]])
    close, far, other = (
        "def f(x): return [x / 3 + 1e-8]",
        "def f(x): return [x / 3 + 1e-3 * x]",
        "def f(x): return (x / 3 + 1e-8,)",
    )
    assert verdicts(sandbox, problem, close, far, other) == [
        (True, True),
        (False, False),
        (False, False),
    ]


def test_tuples_and_complex_numbers_are_restored_from_json(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    asks = "def f(*x): return [type(v).__name__ for v in x]"
    assert verdicts(
        sandbox,
        task(tmp_path, 2, "def f(a, b):\n    return ['tuple', 'tuple']", [[[1], [2]]], [[[], []]]),
        asks,
    ) == [(True, True)]
    assert (
        task(tmp_path, 252, "def f(x):\n    return x", [["1j"]], [["(1+2j)"]])
        .tests[1]["source"]
        .count("(1+2j)")
        == 1
    )
    assert (
        "INPUTS = [[(1,), (2,)]]"
        in task(tmp_path, 2, "def f(a, b):\n    return a", [[[1], [2]]], [[[], []]]).tests[0][
            "source"
        ]
    )


def test_a_task_of_sets_accepts_any_order(sandbox: Sandbox, tmp_path: Path) -> None:
    problem = task(
        tmp_path,
        2,
        "def f(a, b):\n    return tuple(set(a) & set(b))",
        [[[3, 1, 2], [1, 2]]],
        [[[5], [5]]],
    )
    assert verdicts(
        sandbox, problem, "def f(a, b): return tuple(x for x in a if x in b)[::-1]"
    ) == [(True, True)]


def test_expected_values_stay_in_the_judge_process(sandbox: Sandbox, tmp_path: Path) -> None:
    problem = task(tmp_path, 9, "def f(x):\n    return 12345", [[1]], [[2]])
    spy = (
        "import gc, sys\ndef f(x):\n    found = [o for o in gc.get_objects() if isinstance(o, "
        "dict) and o.get('__name__') == 'canonical']\n"
    )
    assert verdicts(sandbox, problem, spy + "    return found[0]['f'](x) if found else None") == [
        (False, False)
    ]


@pytest.mark.slow
def test_a_task_without_plus_inputs_has_only_its_base_test(data: Callable[[str], Path]) -> None:
    by_tests = {p.problem_id: p.extra["tests"] for p in load("mbppplus", data("mbppplus")).problems}
    assert [key for key, tests in by_tests.items() if tests != ["base", "plus"]] == ["mbppplus/793"]
    assert by_tests["mbppplus/793"] == ["base"]


@pytest.mark.slow
def test_any_root_of_the_polynomial_is_accepted(
    data: Callable[[str], Path], sandbox: Sandbox
) -> None:
    problem = next(
        p
        for p in load("humanevalplus", data("humanevalplus")).problems
        if p.entry_point == "find_zero"
    )
    newton = (
        "import numpy\ndef find_zero(xs):\n    return min((r.real for r in "
        "numpy.roots(xs[::-1]) if abs(r.imag) < 1e-6))"
    )
    base = verdicts(sandbox, problem, problem.solutions[0], newton)
    assert base[0] == (True, True)
    assert base[1][0]
