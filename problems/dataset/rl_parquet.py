"""Write problems as verl reads them: a parquet file with prompts.

`ground_truth` holds all that a reward needs to judge a completion.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from problems.encoding import dumps, literal
from problems.schema import Problem, from_row, to_row, write_table
from problems.syntax import parse

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("problem_id", pa.string()),
                    ("split", pa.string()),
                    ("tags", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)
ORDERS = {"unordered": "  # in any order", "set": "  # in any order, however often each"}
COST = "reference_cost"  # key in `extra`: the cost measured by rewards/efficiency.py
# columns that judging does not need
UNSEEN: dict[str, Any] = {
    "solutions": [],
    "extra": "{}",
    "statement": "(see the prompt)",
}


def write_verl(
    problems: Sequence[Problem], path: Path, prompts: Sequence[list[dict[str, str]]] | None = None
) -> None:
    """Write one row per problem, in the given order; `extra_info.index` is the position.

    prompts: used instead of the problems' own prompts.
    """
    chats = prompts or [[{"role": "user", "content": prompt_text(problem)}] for problem in problems]
    rows = [
        _row(problem, index, chat)
        for index, (problem, chat) in enumerate(zip(problems, chats, strict=True))
    ]
    write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)


def _row(problem: Problem, index: int, prompt: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "data_source": problem.source,
        "prompt": prompt,
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": ground_truth(problem)},
        "extra_info": {
            "index": index,
            "problem_id": problem.problem_id,
            "split": problem.split,
            "tags": list(problem.tags),
        },
    }


def ground_truth(problem: Problem) -> str:
    """Return the JSON that judging a completion needs.

    It is the problem without statement, solutions and extra, except for the references' cost.
    """
    extra = {COST: problem.extra[COST]} if COST in problem.extra else {}
    return json.dumps(to_row(problem) | UNSEEN | {"extra": dumps(extra)}, sort_keys=True)


def problem_from_ground_truth(text: str) -> Problem:
    """Inverse of `ground_truth`.

    Raises ProblemError naming the column, or ValueError if the text is not JSON.
    """
    return from_row(json.loads(text), "ground_truth")


def prompt_text(problem: Problem) -> str:
    """Return the prompt for a problem.

    It has the statement, the starter code, the visible tests, and the function's name if nothing
    else mentions it.
    """
    starter, shown = (
        problem.starter_code.strip("\n"),
        [shown_test(problem, test) for test in problem.tests[: problem.visible_tests]],
    )
    statement = problem.statement.strip()
    parts = (
        [] if starter and " ".join(statement.split()) in " ".join(starter.split()) else [statement]
    )
    if starter:
        parts.append(f"Start from this code:\n```python\n{starter}\n```")
    if shown:
        parts.append("Your code should pass:\n" + "\n".join(shown))
    text = "\n\n".join(parts)
    if problem.entry_point and not re.search(rf"\b{re.escape(problem.entry_point)}\b", text):
        text += f"\n\nName the function `{problem.entry_point}`."
    return text


def shown_test(problem: Problem, test: dict[str, Any]) -> str:
    """Format a test for people: asserts on the function's own name, or input and output."""
    match problem.style:
        case "call":
            arguments = [literal(value) for value in test.get("args", ())] + [
                f"{key}={literal(value)}" for key, value in (test.get("kwargs") or {}).items()
            ]
            return (
                f"assert {problem.entry_point}({', '.join(arguments)}) == "
                f"{literal(test['expected'])}{ORDERS.get(problem.compare, '')}"
            )
        case "stdio":
            return f"Input:\n{test['stdin']}\nOutput:\n{test['stdout']}"
        case "assert":
            return _assert_text(test["source"], problem.entry_point or "candidate")
        case "unittest":
            return str(test["source"])


def _assert_text(source: str, entry_point: str) -> str:
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "candidate":
            node.id = entry_point
    check = next(
        (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"),
        None,
    )
    return "\n".join(map(ast.unparse, check.body)) if check else source.strip()
