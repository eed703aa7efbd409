"""MultiPL-E (Cassano et al. 2023, arXiv:2208.08227; MIT): HumanEval and MBPP, rewritten in Python
and translated to JavaScript and C++.

`prompt` is a signature with a docstring or comment, `tests` what follows the function. There is no
solution. `name` (`HumanEval_0_...`, `mbpp_3_...`) decides whether a task is gated.
"""

from __future__ import annotations

import ast
import re

from problems.columns import ProblemError
from problems.reading.humaneval import docstring
from problems.reading.source import Record, Row, python, text
from problems.shapes.shape import RowShape
from sandbox.languages import LANGUAGES, PYTHON, language_of

_NAME = re.compile(r"(HumanEval|mbpp)_(\d+)_", re.IGNORECASE)
_COMMENT = re.compile(r"^// ?(.*)$", re.MULTILINE)
_CANDIDATE = re.compile(r"\bcandidate = (\w+);")
_END = "}\n"  # of a C++ function, which upstream's stop word cuts off and its tests begin with


def read(row: Row, where: str) -> Record:
    """Read a row of `humaneval-py`, `mbpp-js` and the like."""
    language = language_of(text(row, "language", where))
    name, prompt = text(row, "name", where), text(row, "prompt", where)
    written, task = text(row, "tests", where), _NAME.match(name)
    if language == PYTHON and row["language"] not in ("py", "python"):
        known = ", ".join((PYTHON, *LANGUAGES))
        reason = f"the language is {row['language']!r}"
        raise ProblemError(reason, f"programs are judged in {known}", where)
    if language == PYTHON:
        source, entry_point = _check(written, where)
        record: Record = {"statement": docstring(prompt, entry_point, where), "style": "assert"}
    elif called := _CANDIDATE.search(written):
        source, entry_point = written.removeprefix(_END), called[1]
        record = {"statement": "\n".join(_COMMENT.findall(prompt)).strip(), "style": "script"}
        record |= {"extra": {"language": language}}
    else:
        raise ProblemError("key 'tests' names no candidate", "fix the row", where)
    return record | {
        "problem_id": name,
        "tests": [{"source": source}],
        "entry_point": entry_point,
        "starter_code": prompt,
        "extra": record.get("extra", {}) | ({"task_id": f"{task[1]}/{task[2]}"} if task else {}),
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
    "MultiPL-E's humaneval and mbpp in Python, JavaScript and C++",
    ("name", "language", "prompt", "tests", "stop_tokens"),
    read,
    ("prompt", "tests", "language"),
    "MIT",
)
