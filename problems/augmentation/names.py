"""Find the names of a program, and rename some.

The tree is rewritten, so comments and layout are lost.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from artifacts.parsing import parse

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Unclear(ValueError):
    """The names of this program cannot be changed safely; says why."""


def all_names(tree: ast.AST) -> set[str]:
    """Return every identifier that occurs, whatever it names."""
    return {
        value
        for node in ast.walk(tree)
        for field in ("id", "arg", "attr", "name", "asname")
        if isinstance(value := getattr(node, field, None), str)
    }


def top_names(tree: ast.Module) -> set[str]:
    """Return the names that the program binds at top level, except imports."""
    names = {node.name for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    for node in tree.body:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            names |= {
                name.id
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
    return names


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the parameters in order, including starred and keyword-only ones."""
    arguments = node.args
    listed = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *(star for star in (arguments.vararg, arguments.kwarg) if star),
    ]
    return [parameter.arg for parameter in listed]


def renamed(source: str, names: Mapping[str, str]) -> str:
    """Rename everywhere in the program. The new names must not occur in it.

    Raises Unclear if the changed program cannot be written as source.
    """
    tree = parse(source)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
    try:
        return ast.unparse(ast.fix_missing_locations(_Renamer(names, functions).visit(tree))) + "\n"
    except (ValueError, RecursionError) as error:
        raise Unclear(f"it cannot be written again: {error}") from error


def fresh(base: str, used_names: set[str]) -> str:
    """Return the name, with a number appended if it is in use, and add it to the used ones."""
    name, number = base, 1
    while name in used_names:
        number += 1
        name = f"{base}{number}"
    used_names.add(name)
    return name


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str], functions: set[str]) -> None:
        self.names, self.functions = names, functions

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in {"id", "arg", "name"} & set(node._fields):
            if not isinstance(node, (ast.keyword, ast.alias)) and isinstance(
                name := getattr(node, field), str
            ):
                setattr(node, field, self.names.get(name, name))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self.names.get(name, name) for name in node.names]
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in self.functions
        ):
            for keyword in node.keywords:
                keyword.arg = self.names.get(keyword.arg, keyword.arg) if keyword.arg else None
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and self.names
        ):
            pattern = rf"\b({'|'.join(map(re.escape, self.names))})\b"
            node.value = ast.Constant(
                re.sub(pattern, lambda match: self.names[match[1]], node.value.value)
            )
        return super().generic_visit(node)
