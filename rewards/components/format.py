"""Check the form of a completion: its program compiles and defines the required function."""

from __future__ import annotations

import ast

from artifacts.parsing import parse
from problems.schema import Problem
from rewards.components.component import Component
from sandbox.languages import PYTHON
from sandbox.protocol import Report, Verdict
from sandbox.worker.literal import does_nothing

LONGEST = 100_000  # characters; no task here needs more, and a longer text is not parsed


def well_formed(problem: Problem, program: str, report: Report) -> float | None:
    """Return 1 or -1, or None when judging failed.

    Only source that the sandbox has compiled is parsed here: source that overflows a compiler's
    stack has failed there, not in the trainer.
    """
    if report.verdict is Verdict.INFRA:
        return None
    if report.verdict in (Verdict.CE, Verdict.MLE) or not program.strip() or len(program) > LONGEST:
        return -1.0
    if problem.language != PYTHON:
        return 1.0  # it compiles
    try:
        body = parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return -1.0
    if problem.entry_point is None:
        return 1.0 if any(not does_nothing(node) for node in body) else -1.0
    return 1.0 if any(problem.entry_point in _names(node) for node in body) else -1.0


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {target.id for target in targets if isinstance(target, ast.Name)}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    return set()


COMPONENT = Component(
    "Whether there is a program that defines the required function. A model learns this first.",
    lambda program: well_formed(program.task, program.code, program.report),
    weight=0.1,
    order=2,
    always=True,
)
