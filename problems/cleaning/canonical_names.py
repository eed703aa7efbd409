"""Rewrite variables: unread ones are left out, and values that are read once take their place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable


def uses(node: ast.AST) -> Counter[str]:
    """Count how often each name is read, and as "=name", how often it is assigned."""
    return Counter(
        name.id if isinstance(name.ctx, ast.Load) else f"={name.id}"
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    )


def reads(nodes: Iterable[ast.AST], name: str) -> bool:
    """Return whether one of the nodes mentions the name."""
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for node in nodes
        for inner in ast.walk(node)
    )


def needed(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the body without unread variables, and with constants in the place of their names."""
    counts, changes = uses(function), Counter[str]()
    for node in ast.walk(function):  # reads in statements that only change the variable
        if name := _changed(node):
            changes[name] += uses(node)[name]
    arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    kept: list[ast.stmt] = []
    constants: dict[str, ast.expr] = {}
    for node in function.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant() as value) if (
                counts[f"={name}"] == 1 and name not in arguments
            ):
                constants[name] = value
                continue
        name = _changed(node)
        if not name or name in arguments or counts[name] > changes[name]:
            kept.append(node)
    for name, constant in constants.items():
        kept = [_Put(name, constant).visit(node) for node in kept]
    return kept or [ast.Pass()]


def _changed(node: ast.AST) -> str:
    """Return the variable that a statement changes, if it does nothing else."""
    match node:
        case ast.Assign([ast.Name(name)]) | ast.Expr(
            ast.Call(ast.Attribute(ast.Name(name), "append" | "add" | "extend"))
        ):
            return name
    return ""


def inlined(block: list[ast.stmt], counts: Counter[str]) -> list[ast.stmt]:
    """Put a value in the place of its name, if only the next statement reads it, and once.

    counts: the `uses` of the whole function.
    """
    result: list[ast.stmt] = []
    for node in block:
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
            node.body = inlined(node.body, counts)
            if not isinstance(node, ast.With):
                node.orelse = inlined(node.orelse, counts)
        match [*result[-1:], node]:
            case [ast.Assign([ast.Name(name)], value), ast.Return(ast.Name(returned))] if (
                name == returned
            ):
                result[-1] = ast.Return(value)
                continue
            case [ast.Assign([ast.Name(name)], value), _] if counts[name] == counts[
                f"={name}"
            ] == 1 and reads(_evaluated_once(node), name):
                result[-1] = _Put(name, value).visit(node)
                continue
        result.append(node)
    return result


def _evaluated_once(node: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement that run exactly once."""
    match node:
        case ast.If():
            return [node.test]
        case ast.For():
            return [node.iter]
        case ast.While() | ast.FunctionDef() | ast.ClassDef():
            return []
    return [node]


class _Put(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node


def applied(block: list[ast.stmt], counts: Counter[str]) -> list[ast.stmt]:
    """Put a function of one returned value in the place of its name, if that is read once.

    counts: the `uses` of the whole function.
    """
    functions = {
        node.name: ast.Lambda(node.args, node.body[0].value)
        for node in block
        if isinstance(node, ast.FunctionDef)
        and counts[node.name] == 1
        and isinstance(node.body[0], ast.Return)
        and node.body[0].value
        and not reads(node.body, node.name)
    }
    rest = [node for node in block if getattr(node, "name", "") not in functions]
    for name, function in functions.items():
        rest = [_Put(name, function).visit(node) for node in rest]
    return rest or [ast.Pass()]


def reduced(function: ast.Lambda, values: list[ast.expr]) -> ast.expr | None:
    """Return the value of a function that is called at once, with names in the place of others."""
    names = [argument.arg for argument in function.args.args]
    if len(names) != len(values) or not all(isinstance(one, ast.Name) for one in values):
        return None
    body = function.body
    for name, value in zip(names, values, strict=True):
        body = _Put(name, value).visit(body)
    return body


def without_wrappers(body: list[ast.stmt]) -> list[ast.stmt]:
    """Leave out functions that only pass their arguments on to another one."""
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}

    def wraps(node: ast.stmt) -> bool:
        match node:
            case ast.FunctionDef(
                name, ast.arguments(args=given), [ast.Return(ast.Call(ast.Name(called), passed))]
            ):
                own = [argument.arg for argument in given]
                return called in names - {name} and own == [
                    getattr(argument, "id", "") for argument in passed
                ]
        return False

    return [node for node in body if not wraps(node)]


def numbered(tree: ast.Module) -> None:
    """Number the program's own names, which may be those of builtins such as `max`."""
    nodes = list(ast.walk(tree))
    own: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.FunctionDef(name):
                own.setdefault(name, f"v{len(own)}")
    for node in nodes:
        match node:
            case ast.Name():
                node.id = own.get(node.id, node.id)
            case ast.arg() | ast.keyword():
                node.arg = own.get(node.arg or "", node.arg or "")
            case ast.FunctionDef():
                node.name = own[node.name]
