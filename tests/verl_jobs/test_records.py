"""Records from which a reviewer learns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from problems.columns import ProblemError
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from sandbox.sandbox import Sandbox
from verl_jobs.agents.conversation import MEND, REVIEW
from verl_jobs.agents.corrections import corrections
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.records import (
    Review,
    difference,
    human_reviews,
    read_reviews,
    reviews,
    write_reviews,
)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    family = generate(FamilyConfig(demonstrations=12, train=4, validation=2))
    return [replace(problem, visible_tests=3) for problem in family]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Sandbox() as sandbox:
        yield Executor(sandbox)


@pytest.fixture(scope="module")
def records(problems: list[Problem], executor: Executor) -> list[Review]:
    return reviews(problems, executor)


def test_each_record_pairs_a_failing_program_with_a_fixing_comment(
    problems: list[Problem], records: list[Review]
) -> None:
    solutions = {problem.problem_id: problem.solutions[0] for problem in problems}
    assert len(records) >= 10
    for review in records:
        assert "fails" in review.report or "examples pass" in review.report
        assert review.comment == difference(review.program, solutions[review.problem_id])
        assert [m["role"] for m in review.messages] == ["user", "assistant"]
        assert review.messages[1]["content"] == review.comment
        assert review.messages[0]["content"].endswith(REVIEW)
        assert review.program.strip() in review.messages[0]["content"]


def test_held_out_gated_and_blind_problems_give_no_records(
    problems: list[Problem], executor: Executor
) -> None:
    excluded = [
        replace(problems[0], split="heldout"),
        replace(problems[0], gated=True),
        replace(problems[0], visible_tests=0),
    ]
    assert reviews(excluded, executor) == []
    assert {problem.split for problem in problems} > {"validation"}


def test_no_record_contains_a_hidden_test(problems: list[Problem], records: list[Review]) -> None:
    """Search reports and prompts for hidden tests written like visible ones."""
    from problems.prompt import shown_test

    by_id = {problem.problem_id: problem for problem in problems}
    for review in records:
        problem = by_id[review.problem_id]
        visible = {shown_test(problem, test) for test in problem.tests[: problem.visible_tests]}
        hidden = {
            shown_test(problem, test) for test in problem.tests[problem.visible_tests :]
        } - visible
        assert not [
            test for test in hidden if test in review.report + review.messages[0]["content"]
        ]


@pytest.mark.parametrize(
    ("program", "comment"),
    [
        ("def f(x):\n    return x + 2", "`return x + 2` should be `return x + 1`."),
        ("def f(x):\n    x = 0\n    return x + 1", "`x = 0` should not be there."),
        ("def f(x):\n  return   x+1", None),
        ("def f(x:", None),
    ],
)
def test_a_comment_names_the_first_line_that_differs(program: str, comment: str | None) -> None:
    assert difference(program, "def f(x):\n    return x + 1") == comment


def test_records_survive_a_round_trip_through_parquet(
    records: list[Review], tmp_path: Path
) -> None:
    write_reviews(records, tmp_path / "reviews.parquet")
    assert read_reviews(tmp_path / "reviews.parquet") == records
    assert "messages" in pq.read_schema(tmp_path / "reviews.parquet").names
    pq.write_table(
        pq.read_table(tmp_path / "reviews.parquet").drop_columns(["comment"]),
        tmp_path / "other.parquet",
    )
    with pytest.raises(ValueError, match=r"other\.parquet.*comment"):
        read_reviews(tmp_path / "other.parquet")


def test_fix_examples_pair_a_report_with_a_correct_program(
    problems: list[Problem], executor: Executor
) -> None:
    fallible = [problem for problem in problems if problem.split == "demonstrations"]
    examples = corrections(fallible, executor)
    right = {problem.solutions[0] for problem in fallible}
    assert 0 < len(examples) < len(fallible)
    assert {completion for _, completion in examples} <= right
    assert all(
        [m["role"] for m in talk] == ["user", "assistant", "user"]
        and talk[-1]["content"].endswith(MEND)
        for talk, _ in examples
    )


def written(folder: Path, *rows: dict[str, str]) -> Path:
    path = folder / "human.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_persons_review_becomes_a_record_as_a_generated_one(
    problems: list[Problem], records: list[Review], executor: Executor, tmp_path: Path
) -> None:
    first = records[0]
    row = {
        "problem_id": first.problem_id,
        "program": first.program,
        "comment": "Off by\none. ```py",
    }
    [review], left_out = human_reviews(written(tmp_path, row), problems, executor)
    assert review.comment == "Off by one."
    assert review.messages == [first.messages[0], {"role": "assistant", "content": "Off by one."}]
    assert not left_out


def test_a_review_that_teaches_nothing_is_left_out_with_the_reason(
    problems: list[Problem], executor: Executor, tmp_path: Path
) -> None:
    held_out = next(problem for problem in problems if problem.split == "validation")
    row = {"problem_id": problems[0].problem_id, "program": problems[0].solutions[0]}
    path = written(
        tmp_path,
        row | {"comment": "It is right."},
        row | {"comment": "```python\nx = 1\n```"},
        row | {"problem_id": held_out.problem_id, "comment": "No."},
    )
    found, left_out = human_reviews(path, problems, executor)
    assert found == []
    assert sorted(left_out.values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem_id": "embedded/trian/x"}, r"human\.jsonl: line 1: no problem .*did you mean"),
        ({"coment": "x"}, r"human\.jsonl: line 1: coment: "),
    ],
)
def test_a_wrong_row_is_refused_by_name(
    problems: list[Problem],
    executor: Executor,
    tmp_path: Path,
    change: dict[str, str],
    message: str,
) -> None:
    row = {"problem_id": problems[0].problem_id, "program": "x", "comment": "y"}
    with pytest.raises(ProblemError, match=message):
        human_reviews(written(tmp_path, row | change), problems, executor)
