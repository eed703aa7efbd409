"""Python source as a tree, and as a text in which only what it means is left."""

from __future__ import annotations

import ast
import warnings


def parse(source: str) -> ast.Module:
    """The tree. Raises SyntaxError, ValueError (a null byte) or RecursionError (nested too deep). Old escapes like "\\d" bring no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def normal_form(source: str) -> str:
    """The same for two sources that differ in comments, layout, quotes and docstrings alone. Of what is no Python, the spaces are squeezed."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
