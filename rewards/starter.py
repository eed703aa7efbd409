"""Programs of completions that continue a problem's starter code, or rely on its imports.

In: a problem and a completion. Out: the program to judge. Training, evaluation and agents use it.
"""

from __future__ import annotations

import ast
import textwrap

from problems.schema import Problem
from rewards.blocks import parsed
from rewards.extraction import extract_code
from sandbox.languages import PYTHON


def program_of(problem: Problem, completion: str) -> str:
    """Return the program in a completion, with the problem's starter code where it needs it."""
    program = extract_code(completion, problem.entry_point, problem.language)
    if problem.language != PYTHON:
        return program
    return with_starter(program, problem.starter_code, problem.entry_point)


def with_starter(program: str, starter_code: str, entry_point: str | None) -> str:
    """Return the program after the starter code, whose imports and functions stay; a body without
    its function's head continues it.

    A program that does not define the entry point stays alone, so that starter code which passes a
    part of the tests earns nothing; so does one that is no Python after the starter code.
    """
    name = (entry_point or "").partition("(")[0]
    starter = parsed(starter_code)
    if not name or not program.strip() or not starter or name not in _names(starter):
        return program
    head = starter_code.rstrip()
    if (tree := parsed(program)) and not _returns(tree):
        return f"{head}\n{program}" if name in _names(tree) and not _is_first(tree) else program
    last = starter.body[-1]
    if isinstance(last, ast.FunctionDef) and last.name == name and _is_open(last):
        indent = " " * last.body[0].col_offset
        for body in (program, textwrap.indent(textwrap.dedent(program), indent)):
            tree = parsed(whole := f"{head}\n{body}")
            if tree and len(tree.body) == len(starter.body):
                return whole
    return program


def _names(tree: ast.Module) -> set[str]:
    """Return the names that a module binds, also under conditions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    bound = {node.name for node in tree.body if isinstance(node, kinds)}
    return bound | {
        node.id
        for each in tree.body
        if not isinstance(each, kinds)
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _is_open(function: ast.FunctionDef) -> bool:
    """Return whether the function has nothing but a docstring."""
    return len(function.body) == 1 and ast.get_docstring(function) is not None


def _is_first(tree: ast.Module) -> bool:
    """Return whether a program must be at the beginning of its file."""
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )


def _returns(tree: ast.Module) -> bool:
    """Return whether a module has a `return` outside its functions, as the body of one has."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            pending += ast.iter_child_nodes(node)
    return False
