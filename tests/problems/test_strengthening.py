"""Weak tests gain tests on which several references agree; disagreement is a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from problems.schema import Problem, read_parquet, write_parquet
from problems.verification.settings import Verification
from problems.verification.strength import Strength, doubtful
from problems.verification.verification import VerifiedProblems, verify
from sandbox.protocol import Limits
from sandbox.sandbox import Sandbox

RULES = Verification(mutants=8, repeats=1, threshold=0.9)
FAR = "def f(x):\n    if x > 10:\n        return x\n    if x < -4:\n        return -x\n    return 0"
OTHER = "def f(x):\n    return 0 if -4 <= x <= 10 else abs(x)"
ODD = "def f(x):\n    return abs(x) if x < -4 or x > 10 and x != 12 else 0"


def right(x: int) -> int:
    return 0 if -4 <= x <= 10 else abs(x)


def far(*solutions: str, **changes: Any) -> Problem:
    """Return a problem whose tests miss its edge cases."""
    tests = tuple({"args": [x], "expected": right(x)} for x in (30, -30, 5, 0))
    limits = Limits(wall_s=20.0, cpu_s=1.0, memory_mb=128)
    values: dict[str, Any] = {
        "style": "call",
        "tests": tests,
        "entry_point": "f",
        "solutions": solutions,
        "limits": limits,
        "visible_tests": 1,
    }
    return Problem(
        "toy/far",
        "toy",
        "The size of x where it is below -4 or above 10, else 0.",
        **values | changes,
    )


def verified(
    problem: Problem, sandbox: Sandbox, folder: Path, rules: Verification = RULES
) -> VerifiedProblems:
    return verify([problem], sandbox, folder / "journal", rules)


def test_weak_tests_are_strengthened_to_kill_mutants(sandbox: Sandbox, tmp_path: Path) -> None:
    weak = far(FAR, OTHER)
    before = verified(
        far(FAR), sandbox, tmp_path, RULES.model_copy(update={"threshold": 0})
    ).strength[0]
    outcome = verified(weak, sandbox, tmp_path)
    [problem], [row] = outcome.problems, outcome.strength
    added = problem.tests[len(weak.tests) :]
    assert before.killed < row.killed
    assert row.added_tests == len(added) == problem.extra["added_tests"] > 0
    assert problem.problem_id == weak.problem_id
    assert problem.visible_tests == 1
    assert problem.tests[: len(weak.tests)] == weak.tests
    assert all(test["expected"] == right(test["args"][0]) for test in added)


def test_strengthening_is_reproducible_and_idempotent(sandbox: Sandbox, tmp_path: Path) -> None:
    first = verified(far(FAR, OTHER), sandbox, tmp_path)
    again = verified(far(FAR, OTHER), sandbox, tmp_path)  # from the journal
    elsewhere = verify([far(FAR, OTHER)], sandbox, tmp_path / "another", RULES)
    write_parquet(first.problems, tmp_path / "problems.parquet")
    assert first == again == elsewhere
    assert read_parquet(tmp_path / "problems.parquet") == first.problems
    [row] = verify(first.problems, sandbox, tmp_path / "journal", RULES).strength
    assert row.killed == first.strength[0].killed
    assert row.added_tests == 0


@pytest.mark.parametrize("solutions", [(FAR,), (FAR, FAR + "  # the same\n")])
def test_a_single_reference_adds_no_tests(
    sandbox: Sandbox, tmp_path: Path, solutions: tuple[str, ...]
) -> None:
    outcome = verified(far(*solutions), sandbox, tmp_path)
    [removed], [row] = outcome.removed, outcome.strength
    assert row.references == 1
    assert row.added_tests == 0
    assert not row.kept
    assert removed.reason == "tests too weak"
    assert "one reference" in removed.detail


def test_a_gated_problem_is_never_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    weak = far(FAR, OTHER, gated=True)
    assert verified(weak, sandbox, tmp_path).problems == [weak]


def test_references_that_disagree_make_a_problem_ambiguous(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    tests = tuple({"args": [x], "expected": right(x)} for x in (11, 13, -30, 5, 0))
    [removed] = verified(far(OTHER, ODD, tests=tests), sandbox, tmp_path).removed
    assert removed.reason == "references disagree"
    assert "'args': [12]" in removed.detail
    assert "12" in removed.detail


@pytest.mark.parametrize(
    ("style", "tests", "solutions"),
    [
        (
            "assert",
            tuple(
                {"source": f"def check(f):\n    assert f({x}) == {right(x)}\n"}
                for x in (30, -30, 5, 0)
            ),
            (FAR, OTHER),
        ),
        (
            "stdio",
            tuple({"stdin": f"{x}\n", "stdout": f"{right(x)}\n"} for x in (30, -30, 5, 0)),
            tuple(f"{source}\nprint(f(int(input())))\n" for source in (FAR, OTHER)),
        ),
    ],
)
def test_every_style_is_strengthened(
    sandbox: Sandbox, tmp_path: Path, style: Any, tests: Any, solutions: tuple[str, ...]
) -> None:
    outcome = verified(
        far(*solutions, style=style, tests=tests, entry_point=None if style == "stdio" else "f"),
        sandbox,
        tmp_path,
    )
    assert outcome.strength[0].added_tests > 0
    assert set(outcome.problems[0].tests[-1]) == set(tests[0])


def strength_of(problem: Problem, sandbox: Sandbox, folder: Path, mutants: int = 0) -> Strength:
    rules = Verification(mutants=mutants, threshold=0)
    [row] = verified(problem, sandbox, folder, rules).strength
    return row


def test_samples_of_a_model_are_mutants_unless_they_act_like_the_solution(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    rejected = "def f(x):\n    return x"
    problem = far(FAR, extra={"samples": [OTHER, ODD.replace("12", "11"), rejected]})
    row = strength_of(problem, sandbox, tmp_path)
    assert (row.mutants, row.killed, row.equivalent) == (2, 1, 1)
    assert row.survivors == ("sample 2",)


@pytest.mark.parametrize(("others", "expected"), [(1, ("sample 1",)), (3, ())])
def test_a_sample_is_doubtful_where_half_of_the_programs_agree_with_the_solution(
    sandbox: Sandbox, tmp_path: Path, others: int, expected: tuple[str, ...]
) -> None:
    tests = tuple({"args": [x], "expected": 2 * x} for x in (1, 3, 8, 20))
    samples = [f"def f(x):\n    return 2 * x if x > 0 else {at}" for at in range(1, others + 1)]
    problem = far("def f(x):\n    return 2 * x", tests=tests, extra={"samples": samples})
    assert strength_of(problem, sandbox, tmp_path).doubtful == expected


def test_problems_with_doubtful_samples_are_named_those_with_most_first() -> None:
    rows = [
        Strength(
            f"toy/{name}", "toy", trainable=True, kept=True, references=1, mutants=9, killed=5,
            survivors=survivors,
        )
        for name, survivors in (
            ("a", ("line 2: x becomes y",)),
            ("b", ("line 2: x becomes y", "sample 3")),
            ("c", ("sample 1", "sample 2")),
        )
    ]  # fmt: skip
    assert doubtful(rows) == [("toy/c", 2, "sample 1, sample 2"), ("toy/b", 1, "sample 3")]


def test_mutants_that_no_input_reveals_are_not_counted(sandbox: Sandbox, tmp_path: Path) -> None:
    # `>` and `>=` of the first comparison do the same
    same = "def f(x):\n    big = x if x > 0 else 0\n    return big if big > 10 or x > -5 else -x"
    tests = tuple({"args": [x], "expected": max(x, 0) if x > -5 else -x} for x in range(-9, 30, 2))
    row = strength_of(far(same, tests=tests), sandbox, tmp_path, mutants=16)
    assert row.equivalent > 0
    assert not any("x > 0 becomes x >= 0" in name for name in row.survivors)
