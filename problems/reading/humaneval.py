"""What tasks in HumanEval's form have in common: a prompt that is a signature with a docstring."""

from __future__ import annotations

import ast
import inspect

from problems.columns import ProblemError
from problems.reading.source import Row, has, python


def docstring(prompt: str, entry_point: str, where: str) -> str:
    """Return the text of the prompt's docstring, which follows an import in task 115.

    Raises ProblemError if there is none.
    """
    functions = [
        node
        for node in python(prompt, "key 'prompt'", where).body
        if isinstance(node, ast.FunctionDef) and node.name == entry_point
    ]
    for node in functions[-1].body if functions else []:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return inspect.cleandoc(node.value.value)
    raise ProblemError(f"key 'prompt' has no docstring of {entry_point}", "fix the row", where)


def named(row: Row) -> bool:
    """Return whether a row is one of HumanEval's tasks, in any of its releases."""
    own = has(row, "prompt", "canonical_solution", "entry_point")
    return own and str(row.get("task_id")).startswith("HumanEval/")
