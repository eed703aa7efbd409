"""Whether a program runs a text as a program, in which a linter finds nothing."""

from __future__ import annotations

import ast

from problems.syntax import tree_of

RUNNERS = {
    "exec",
    "compile",
    "__import__",
    "__builtins__",
}  # eval: only of a text that is a program
MODULES = {"builtins", "runpy", "code", "codeop", "imp", "marshal", "timeit"}
METHODS = {"exec", "exec_module", "load_module", "module_from_spec"}
BRANCHES = (ast.FunctionDef, ast.Lambda, ast.If, ast.For, ast.While)
LINES = 3  # a shorter text may be what a task asks for


def runs_text(program: str) -> bool:
    """Return whether a program names a way to run a text, or holds a text of LINES lines that is a
    program. A docstring is no such text. False for a program that is not Python.
    """
    if (tree := tree_of(program)) is None:
        return False
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    own = {
        name
        for node in ast.walk(tree)
        for name in (_bound(node) if isinstance(node, ast.stmt) else ())
    }
    evaluates = False
    texts = list[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()) if name not in own:
                if name in RUNNERS:
                    return True
                evaluates |= name == "eval"
            case ast.Attribute(attr=name) if name in METHODS:
                return True
            case ast.Import(names) if any(each.name.split(".")[0] in MODULES for each in names):
                return True
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                return True
            case ast.Constant(str(text)) if id(node) not in docstrings:
                if text in RUNNERS:
                    return True
                texts.append(text)
    return any(_is_program(text, 1 if evaluates else LINES) for text in texts)


def _is_program(text: str, lines: int) -> bool:
    """Return whether a text of at least so many lines is Python that defines or decides."""
    if text.count("\n") + 1 < lines or not (tree := tree_of(text)):
        return False
    return any(isinstance(node, BRANCHES) for node in ast.walk(tree))


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.ImportFrom(names=names):
            return [each.asname or each.name for each in names]
    return []
