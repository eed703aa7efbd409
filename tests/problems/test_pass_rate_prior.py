"""The pass rate expected before training, from the ranking and from tags."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from problems.difficulty.difficulty import rank
from problems.difficulty.pass_rate_prior import (
    ExpectedPassRate,
    expect,
    read_expected,
    write_expected,
)
from problems.schema import Problem

TESTS = ({"args": [1], "expected": 2},)


def problem(name: str, *tags: str) -> Problem:
    return Problem(f"toy/{name}", "toy", "Add.", "call", TESTS, "f", tags=tags)


def test_the_prior_of_an_unranked_problem_follows_its_tags() -> None:
    problems = [
        problem("a", "easy"),
        problem("b", "hard"),
        problem("c", "easy"),
        problem("d", "hard"),
        problem("e", "easy", "hard"),
        problem("f"),
    ]
    ranks = rank({"toy/a": [True] * 8, "toy/b": [False] * 8})
    a, b, c, d, e, f = expect(problems, ranks, {"toy/b": 2.5})
    assert c.rate == a.rate > 0.8 > 0.5 == e.rate == f.rate > 0.2 > b.rate == d.rate
    assert (a.passed, a.n, b.passed, b.n, c.n) == (8, 8, 0, 8, 0)
    assert (b.weight, a.weight) == (2.5, 1.0)


@given(
    st.dictionaries(st.integers(0, 9), st.lists(st.booleans(), min_size=1, max_size=6)),
    st.sets(st.sampled_from("xyz")),
)
def test_every_prior_is_strictly_between_zero_and_one(
    outcomes: dict[int, list[bool]], tags: set[str]
) -> None:
    problems = [problem(str(number), *sorted(tags)) for number in range(10)]
    priors = expect(
        problems, rank({f"toy/{number}": passed for number, passed in outcomes.items()}), {}
    )
    assert [row.problem_id for row in priors] == [each.problem_id for each in problems]
    assert all(0 < row.rate < 1 for row in priors)


def test_priors_survive_a_round_trip(tmp_path: Path) -> None:
    rows = [ExpectedPassRate("toy/a", 0.25, 1, 4, 1.5), ExpectedPassRate("toy/b", 0.5, 0, 0, 1.0)]
    write_expected(rows, tmp_path / "expected.parquet")
    assert read_expected(tmp_path / "expected.parquet") == rows
