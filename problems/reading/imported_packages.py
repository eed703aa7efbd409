"""Which packages outside the standard library a problem cannot do without.

A problem is not measured where one of them is missing: neither its tests nor its solutions are at
fault, and it is tried again after the installation.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace

from problems.schema import Problem
from problems.syntax import tree_of

ABSENCE = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def with_packages(problem: Problem) -> Problem:
    """Return the problem with its packages in `extra`, unless the row names them.

    They are those that tests, checker or starter code import, and those that every solution does.
    """
    if "packages" in problem.extra:
        return problem
    sources = [test.get("source") for test in problem.tests]
    needed = {
        name
        for source in (*sources, problem.checker, problem.starter_code)
        if isinstance(source, str)
        for name in imported(source)
    }
    if problem.solutions:
        needed |= set.intersection(*(imported(solution) for solution in problem.solutions))
    return (
        replace(problem, extra=problem.extra | {"packages": sorted(needed)}) if needed else problem
    )


def imported(source: str) -> set[str]:
    """Return the packages that a source imports, without imports that may fail."""
    if "import" not in source or (tree := tree_of(source)) is None:
        return set()
    return {name for name in _imports(tree) if name not in sys.stdlib_module_names}


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]
    elif not (isinstance(node, ast.Try) and any(map(_catches_absence, node.handlers))):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                yield from _imports(child)


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    names = (
        {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
        if (handler.type)
        else ABSENCE
    )
    return not names.isdisjoint(ABSENCE)
