"""What verl reads: the prompt and a ground truth without the solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from problems.columns import ProblemError
from problems.dataset.rl_parquet import ground_truth, problem_from_ground_truth, write_verl
from problems.prompt import prompt_text
from problems.schema import Problem
from problems.sources.registry import load

CALL = Problem(
    "toy/1",
    "toy",
    "Add one to each.",
    "call",
    (
        {"args": [(1, 2)], "kwargs": {"by": 1}, "expected": {2, 3}},
        {"args": [()], "expected": set()},
    ),
    "grow",
    solutions=("def grow(x, by=1): return {n + by for n in x}",),
    visible_tests=1,
    tags=("sets",),
    extra={"demonstration": "secret"},
)


def test_verl_columns_have_the_expected_order(tmp_path: Path) -> None:
    write_verl([CALL, CALL], tmp_path / "train.parquet")
    first, second = pq.read_table(tmp_path / "train.parquet").to_pylist()
    assert list(first) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    assert first["prompt"] == [{"role": "user", "content": prompt_text(CALL)}]
    assert first["reward_model"]["style"] == "rule"
    assert second["extra_info"] == {
        "index": 1,
        "problem_id": "toy/1",
        "split": "train",
        "tags": ["sets"],
    }


def test_ground_truth_gives_the_same_job_without_solutions() -> None:
    text = ground_truth(CALL)
    assert problem_from_ground_truth(text).job("x", "j") == CALL.job("x", "j")
    assert "by=1" not in text
    assert "secret" not in text


def test_a_broken_ground_truth_names_the_column() -> None:
    with pytest.raises(ProblemError, match=r"ground_truth: .*tests"):
        problem_from_ground_truth(ground_truth(CALL).replace("$tuple", "$tupel"))


def test_the_prompt_shows_visible_tests_and_no_hidden_one() -> None:
    assert (
        prompt_text(CALL)
        == "Add one to each.\n\nYour code should pass:\nassert grow((1, 2), by=1) == {2, 3}"
    )


def test_the_prompt_names_the_function_only_when_needed() -> None:
    hidden = Problem("toy/1", "toy", "Add one.", "call", CALL.tests, "grow")
    assert prompt_text(hidden).endswith("\n\nName the function `grow`.")
    assert (
        prompt_text(Problem("toy/1", "toy", "Write grow(x).", "call", CALL.tests, "grow"))
        == "Write grow(x)."
    )


def test_a_stdio_prompt_shows_input_and_output() -> None:
    stdio = Problem(
        "toy/2", "toy", "Echo.", "stdio", ({"stdin": "1", "stdout": "1"},), visible_tests=1
    )
    shown = "Your code should pass:\nInput:\n1\nOutput:\n1"
    streams = "Read the input from standard input and print the output."
    assert prompt_text(stdio) == f"Echo.\n\n{streams}\n\n{shown}"
    told = replace(stdio, statement="Echo the standard input.")
    assert prompt_text(told) == f"Echo the standard input.\n\n{shown}"


@pytest.mark.slow
def test_a_prompt_of_mbpp_matches_upstream(data: Callable[[str], Path]) -> None:
    problem = next(p for p in load("mbpp", data("mbpp")).problems if p.problem_id == "mbpp/604")
    assert prompt_text(problem) == (
        "Write a function to reverse words in a given string.\n\nYour code should pass:\n"
        "assert reverse_words('python program') == 'program python'"
    )


def test_the_starter_code_replaces_a_repeated_statement(
    data: Callable[[str], Path],
) -> None:
    problem = load("humaneval", data("humaneval")).problems[0]
    assert prompt_text(problem).startswith(
        "Complete this Python function. Reply with code only.\n```python\nfrom typing import List"
    )


def test_the_prompt_marks_unordered_comparison() -> None:
    problem = Problem(
        "toy/1",
        "toy",
        "Factors of x.",
        "call",
        ({"args": [6], "expected": [2, 3]},),
        "f",
        compare="unordered",
        visible_tests=1,
    )
    assert prompt_text(problem).endswith("assert f(6) == [2, 3]  # in any order")
    assert prompt_text(replace(problem, compare="exact")).endswith("assert f(6) == [2, 3]")
