"""Turn `assert` lines about a function into tests of the schema."""

from __future__ import annotations

import ast

from artifacts.parsing import parse
from problems.columns import ProblemError
from problems.reading.source import python
from problems.syntax import IMPORTS


def called(code: str, asserts: list[str], where: str) -> str:
    """Return the function of `code` that the tests call.

    Raises ProblemError if the code or a test is not Python, or if none of its functions is called.
    """
    tree = python(code, "code", where)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for tree in [python(line, "test_list", where) for line in asserts]:
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in functions
            ):
                return node.func.id
    raise ProblemError(
        f"test_list calls none of the functions of code ({', '.join(sorted(functions))})",
        "fix the names",
        where,
    )


def check(line: str, entry_point: str, setup: str = "") -> dict[str, str]:
    """Return an `assert` test: `check(candidate)` with the assert on the renamed function."""
    tree = parse(line)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == entry_point:
            node.id = "candidate"
    body = "\n".join(f"    {part}" for part in ast.unparse(tree).splitlines())
    return {
        "source": "\n\n".join(part for part in (setup, f"def check(candidate):\n{body}\n") if part)
    }


def used(code: str, tests: list[str], kinds: tuple[type[ast.stmt], ...] = IMPORTS) -> str:
    """Return the classes or imports of the code that the tests use.

    The tests run separately from the code and could not run without them.
    """
    names = {
        node.id
        for source in tests
        for node in ast.walk(parse(source))
        if isinstance(node, ast.Name)
    }
    return "\n".join(
        ast.unparse(node)
        for node in parse(code).body
        if isinstance(node, kinds) and names & _bound(node)
    )


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return {node.name} if isinstance(node, ast.ClassDef) else set()
