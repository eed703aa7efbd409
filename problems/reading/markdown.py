"""Read a problem from a Markdown file with a statement and a section of examples.

All of its tests are visible.

    # Second largest
    Write `second(numbers)`, which returns the second largest number.

    ## Examples
    ```python
    assert second([3, 1, 2]) == 2
    ```

For a program that reads and prints, the examples are pairs of blocks, each after a line that says
Input or Output.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import Any, Literal

from artifacts.parsing import parse
from problems.columns import ProblemError
from problems.reading.asserts import check
from problems.reading.source import python
from problems.schema import Problem
from sandbox.protocol import Limits

SOURCE = "file"
LIMITS = Limits.of_work(10.0, memory_mb=512)
FIX = (
    "write `assert name(...) == ...` lines in a ```python block, or Input and Output blocks, "
    "under a heading `## Examples`"
)
_HEADING = re.compile(r"^#{1,6}[ \t]*examples?\b.*$", re.IGNORECASE | re.MULTILINE)
_NEXT = re.compile(r"^#{1,6}[ \t]+\S.*$", re.MULTILINE)
_BLOCK = re.compile(r"^```[ \t]*(\w*)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"(input|output)\W*$", re.IGNORECASE)


def read_markdown(path: Path) -> Problem:
    """Read a file. Raises FileNotFoundError, or ProblemError that names the file and the fix."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: no such file: give a Markdown file with a statement and a section `## "
            "Examples`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(
            f"cannot be read ({error})", "give a Markdown file in UTF-8", str(path)
        ) from error
    statement, examples = _sections(text, str(path))
    style, tests, entry_point = _tests(examples, str(path))
    return Problem(
        problem_id=f"{SOURCE}/{path.stem}",
        source=SOURCE,
        statement=statement,
        style=style,
        tests=tests,
        entry_point=entry_point,
        visible_tests=len(tests),
        limits=LIMITS,
    )


def _sections(text: str, where: str) -> tuple[str, str]:
    """Return the statement, and the content under the heading of the examples."""
    heading = _HEADING.search(text)
    if heading is None:
        raise ProblemError("it has no examples", FIX, where)
    after = text[heading.end() :]
    end = next(
        (match.start() for match in _NEXT.finditer(after) if not _inside(after, match.start())),
        len(after),
    )
    statement = "\n\n".join(
        part for part in (text[: heading.start()].strip(), after[end:].strip()) if part
    )
    if not statement:
        raise ProblemError(
            "it has no statement before the examples",
            "describe there what the program must do",
            where,
        )
    return statement, after[:end]


def _inside(text: str, at: int) -> bool:
    """Return whether a position is in a code block, where a `#` starts a comment."""
    return any(block.start() < at < block.end() for block in _BLOCK.finditer(text))


def _tests(
    examples: str, where: str
) -> tuple[Literal["call", "assert", "stdio"], tuple[dict[str, Any], ...], str | None]:
    blocks = [(_label(examples[: block.start()]), block[2]) for block in _BLOCK.finditer(examples)]
    if any(label for label, _ in blocks):
        pairs = [(blocks[at][1], blocks[at + 1][1]) for at in range(0, len(blocks) - 1, 2)]
        if [label for label, _ in blocks] != ["input", "output"] * len(pairs):
            raise ProblemError("its Input and Output blocks do not alternate", FIX, where)
        return "stdio", tuple({"stdin": stdin, "stdout": stdout} for stdin, stdout in pairs), None
    lines = [
        ast.unparse(node)
        for _, block in blocks
        for node in python(block, "an example", where, FIX).body
        if isinstance(node, ast.Assert)
    ]
    if not lines:
        raise ProblemError("it has no examples", FIX, where)
    name = _function_name(lines)
    if name is None:
        raise ProblemError("its examples do not all call the same function", FIX, where)
    calls = [_call(line, name) for line in lines]
    if all(calls):
        return "call", tuple(call for call in calls if call), name
    return "assert", tuple(check(line, name) for line in lines), name


def _label(before: str) -> str:
    last = before.rstrip().rsplit("\n", 1)[-1]
    match = _LABEL.search(last)
    return match[1].lower() if match else ""


def _function_name(lines: list[str]) -> str | None:
    """Return the first function, except builtins, that every example calls."""
    called = [
        [
            node.func.id
            for node in ast.walk(parse(line))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        for line in lines
    ]
    return next(
        (
            name
            for name in called[0]
            if not hasattr(builtins, name) and all(name in names for names in called)
        ),
        None,
    )


def _call(line: str, name: str) -> dict[str, Any] | None:
    """Convert `assert name(literals) == literal` to a call test; None for anything else."""
    [statement] = parse(line).body
    match statement:
        case ast.Assert(
            test=ast.Compare(
                left=ast.Call(func=ast.Name(id=called), args=args, keywords=keywords),
                ops=[ast.Eq()],
                comparators=[value],
            )
        ):
            if called != name or any(keyword.arg is None for keyword in keywords):
                return None
            try:
                literals = [ast.literal_eval(one) for one in args]
                return {
                    "args": literals,
                    "kwargs": {
                        str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords
                    },
                    "expected": ast.literal_eval(value),
                }
            except ValueError:
                return None
    return None
