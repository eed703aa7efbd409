"""Inlines the helper methods of its class into a test method, so that their assertions can be
extracted too (sandbox/decoys/split.py).
"""

from __future__ import annotations

import ast
import copy
from typing import Any

LEVELS = 3
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def written_out(kind: ast.ClassDef, method: ast.FunctionDef) -> ast.FunctionDef:
    """Return the method with each statement `self.helper(...)` replaced by the helper's own
    statements, if these are plain: no result, no default, no `*`.
    """
    helpers = {
        part.name: part
        for part in kind.body
        if isinstance(part, ast.FunctionDef) and part is not method and _is_plain(part)
    }
    other, count = method, [0]
    for _ in range(LEVELS if helpers else 0):
        body = _body(other.body, helpers, method.args.args[0].arg, count)
        if body is None:
            break
        other = copy.copy(other)
        other.body = body
    return other


def _body(
    body: list[ast.stmt], helpers: dict[str, ast.FunctionDef], itself: str, count: list[int]
) -> list[ast.stmt] | None:
    """Inline helpers in a body. Returns None if there is nothing to inline."""
    result: list[ast.stmt] = []
    changed = False
    for part in body:
        if statements := _helper(part, helpers, itself, count):
            result += statements
            changed = True
        elif isinstance(part, (ast.With, ast.For)) and (
            inner := _body(part.body, helpers, itself, count)
        ):
            part = copy.copy(part)
            part.body = inner
            result.append(part)
            changed = True
        else:
            result.append(part)
    return result if changed else None


def _helper(
    part: ast.stmt, helpers: dict[str, ast.FunctionDef], itself: str, count: list[int]
) -> list[ast.stmt]:
    call = part.value if isinstance(part, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or ast.unparse(call.func.value) != itself
    ):
        return []
    helper = helpers.get(call.func.attr)
    if helper is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    names = [arg.arg for arg in helper.args.args]
    arguments = dict(zip(names[1:], call.args, strict=False)) | {
        keyword.arg: keyword.value for keyword in call.keywords if keyword.arg
    }
    if set(arguments) != set(names[1:]) or len(call.args) + len(call.keywords) != len(arguments):
        return []
    count[0] += 1
    local = {
        node.id
        for node in ast.walk(helper)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    } | set(names[1:])
    renamed: Any = _Renamed(
        {name: f"{name}_{count[0]}" for name in local} | {names[0]: itself}
    ).visit(copy.deepcopy(helper))
    return [
        ast.Assign([ast.Name(f"{name}_{count[0]}", ast.Store())], value, lineno=0)
        for name, value in arguments.items()
    ] + list(renamed.body)


def _is_plain(helper: ast.FunctionDef) -> bool:
    args = helper.args
    if (
        helper.decorator_list
        or not args.args
        or args.defaults
        or args.vararg
        or args.kwarg
        or args.kwonlyargs
        or args.posonlyargs
    ):
        return False
    leaving = (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, *FUNCTIONS)
    return not any(isinstance(node, leaving) for part in helper.body for node in ast.walk(part))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self.names.get(node.name, node.name) if node.name else None
        return self.generic_visit(node)
