"""MultiPL-E's Python (Cassano et al. 2023, arXiv:2208.08227; MIT): HumanEval and MBPP rewritten.

`prompt` is a signature with a docstring, `tests` a `check(candidate)` and its call. There is no
solution. `name` (`HumanEval_0_...`, `mbpp_3_...`) decides whether a task is gated.
"""

from __future__ import annotations

import ast
import re

from problems.columns import ProblemError
from problems.reading.humaneval import docstring
from problems.reading.source import Record, Row, python, text
from problems.shapes.shape import RowShape

_NAME = re.compile(r"(HumanEval|mbpp)_(\d+)_", re.IGNORECASE)


def read(row: Row, where: str) -> Record:
    """Read a row of `humaneval-py` or `mbpp-py`."""
    if (language := text(row, "language", where)) not in ("py", "python"):
        raise ProblemError(f"the language is {language!r}", "only Python is judged", where)
    name, prompt = text(row, "name", where), text(row, "prompt", where)
    source, entry_point = _check(text(row, "tests", where), where)
    task = _NAME.match(name)
    return {
        "problem_id": name,
        "statement": docstring(prompt, entry_point, where),
        "style": "assert",
        "tests": [{"source": source}],
        "entry_point": entry_point,
        "starter_code": prompt,
        "extra": {"task_id": f"{task[1]}/{task[2]}"} if task else {},
    }


def _check(written: str, where: str) -> tuple[str, str]:
    """Return the definition of `check`, and the function that it is called with."""
    tree = python(written, "key 'tests'", where)
    called = [
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "check"
        and node.args
        and isinstance(node.args[0], ast.Name)
    ]
    body: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        or (isinstance(node, ast.FunctionDef) and node.name != "test_check")
    ]
    if not called:
        raise ProblemError("key 'tests' calls no check(function)", "fix the row", where)
    return ast.unparse(ast.Module(body, [])), called[0]


MULTIPL_E = RowShape(
    "multipl_e",
    "MultiPL-E's humaneval-py and mbpp-py",
    ("name", "language", "prompt", "tests", "stop_tokens"),
    read,
    ("prompt", "tests", "language"),
    "MIT",
)
