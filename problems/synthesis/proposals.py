"""The prompts of proposer and solver, and how their replies are parsed.

The result is a proposal, a program, or the reason why there is none.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from problems.encoding import loads
from problems.syntax import definitions

MIN_INPUTS, MAX_INPUTS = 3, 40
FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
SECTION = re.compile(r"^\s*#+\s*(problem|solution|inputs)\b[^\n]*$", re.IGNORECASE | re.MULTILINE)
PROPOSE = """Here is a piece of Python:
```python
{snippet}
```
Let it inspire a new programming problem, another one than it solves. Answer in three sections:
## Problem
What a function shall do, in English, with its name and its arguments as in f(x), without its code.
## Solution
The function, in a Python block. It returns its result, and neither reads nor prints.
## Inputs
A JSON list of at least {inputs} lists of arguments to call it with, ordinary ones and edges, as in [[1], [-2]]."""  # noqa: E501
SOLVE = """{statement}

Write the Python function {entry}, in a Python block. It returns its result, and neither reads nor prints."""  # noqa: E501


@dataclass(frozen=True)
class Proposal:
    """A problem as its proposer wrote it."""

    statement: str
    entry_point: str
    solution: str
    inputs: tuple[dict[str, Any], ...]


def proposal_of(text: str) -> Proposal | str:
    """Return the proposal in a reply, or a short description of what is wrong with it."""
    parts = SECTION.split(text)
    sections = {
        name.lower(): content.strip()
        for name, content in zip(parts[1::2], parts[2::2], strict=True)
    }
    if missing := [name for name in ("problem", "solution", "inputs") if not sections.get(name)]:
        return f"no section {missing[0]}"
    solution = code_of(sections["solution"])
    if not (names := _functions(solution)):
        return "its solution defines no function"
    statement = sections["problem"]
    if not (
        mentioned := [name for name in names if re.search(rf"\b{re.escape(name)}\b", statement)]
    ):
        return "its statement does not name the function"
    inputs = _inputs(sections["inputs"])
    return (
        inputs if isinstance(inputs, str) else Proposal(statement, mentioned[-1], solution, inputs)
    )


def program_of(text: str, entry_point: str) -> str | None:
    """Return the program in a solver's reply, if it defines the function."""
    programs: list[str] = [
        block for block in [text, *FENCE.findall(text)] if entry_point in _functions(block)
    ]
    return programs[-1].strip("\n") + "\n" if programs else None


def code_of(section: str) -> str:
    """Return the content of the last code block, or everything if there is none."""
    blocks: list[str] = FENCE.findall(section) or [section]
    return blocks[-1].strip("\n") + "\n"


def _functions(source: str) -> list[str]:
    return [name for name, node in definitions(source).items() if isinstance(node, ast.FunctionDef)]


def _inputs(section: str) -> tuple[dict[str, Any], ...] | str:
    try:
        read = loads(code_of(section).strip())
    except (ValueError, TypeError, RecursionError):
        return "its inputs are no JSON"
    if not isinstance(read, list) or not all(isinstance(row, list) for row in read):
        return "its inputs are no list of lists of arguments"
    distinct = {json.dumps(row, default=repr, sort_keys=True): row for row in read}
    if len(distinct) < MIN_INPUTS:
        return f"fewer than {MIN_INPUTS} inputs"
    return tuple({"args": row} for row in [*distinct.values()][:MAX_INPUTS])
