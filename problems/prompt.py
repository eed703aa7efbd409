"""The prompt of a problem, and its tests as people read them.

Training and evaluation use the same prompt.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from problems.encoding import literal
from problems.schema import Problem
from problems.syntax import parse

ORDERS = {"unordered": "  # in any order", "set": "  # in any order, however often each"}


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
        case _:
            return str(test.get("source", test))


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
