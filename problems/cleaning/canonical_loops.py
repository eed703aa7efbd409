"""Rewrite loops: that count, collect, add or search, and those over indices or numbered items."""

from __future__ import annotations

import ast
from copy import deepcopy

from problems.cleaning.canonical_names import reads, uses


def counted(block: list[ast.stmt]) -> list[ast.stmt]:
    """Turn each `i = a`, `while i < b` whose last statement is `i += 1` into `for i in range`."""
    result: list[ast.stmt] = []
    for node in block:
        loop = _count(node) if isinstance(node, ast.While) else None
        if loop and (start := _start(result, loop[0])) is not None:
            number, stop, body = loop
            (first,) = [result.pop(start)]
            assert isinstance(first, ast.Assign)
            ends = [first.value, stop]
            call = ast.Call(ast.Name("range", ast.Load()), ends, [])
            node = ast.For(ast.Name(number, ast.Store()), call, body, [])
        result.append(node)
    return result


def _count(loop: ast.While) -> tuple[str, ast.expr, list[ast.stmt]] | None:
    """Return the counting variable, its end, and the body without the counting."""
    match loop.test:
        case ast.Compare(ast.Name(number), [ast.Lt()], [stop]):
            pass
        case ast.Compare(stop, [ast.Gt()], [ast.Name(number)]):
            pass
        case _:
            return None
    *body, last = loop.body
    match last:
        case ast.AugAssign(ast.Name(counter), ast.Add(), ast.Constant(1)):
            pass
        case ast.Assign(
            [ast.Name(counter)],
            ast.BinOp(ast.Name(), ast.Add(), ast.Constant(1))
            | ast.BinOp(ast.Constant(1), ast.Add(), ast.Name()),
        ) if reads([last], counter):
            pass
        case _:
            return None
    nodes = [inner for part in body for inner in ast.walk(part)]
    skips = any(isinstance(node, ast.Continue) for node in nodes)
    if counter != number or skips or any(uses(part)[f"={number}"] for part in body):
        return None
    return number, stop, body or [ast.Pass()]


def _start(before: list[ast.stmt], number: str) -> int | None:
    """Return the place of the statement that sets the number, if none after it mentions it."""
    for at in reversed(range(len(before))):
        match before[at]:
            case ast.Assign([ast.Name(name)]) if name == number:
                return at
        if reads([before[at]], number):
            return None
    return None


def plain(node: ast.For) -> ast.For:
    """Return a loop over items without the numbers that nobody reads."""
    match node:
        case ast.For(ast.Tuple([ast.Name(number), target]), ast.Call(ast.Name("enumerate"), [it])):
            if not reads(node.body, number):
                return ast.For(target, it, node.body, node.orelse)
        case ast.For(
            ast.Name(number),
            ast.Call(ast.Name("range"), [ast.Call(ast.Name("len"), [ast.Name(items)])]),
        ):
            element = _Element(items, number)
            body = [element.visit(deepcopy(inner)) for inner in node.body]
            if not reads(body, number) and element.count:
                target = ast.Name(f"{items}_item", ast.Store())
                node = ast.For(target, ast.Name(items, ast.Load()), body, node.orelse)
    match node:
        case ast.For(ast.Name(first), body=[ast.Assign([target], ast.Name(read)), *rest]) if (
            first == read and rest and not reads(rest, first)
        ):
            return ast.For(target, node.iter, rest, node.orelse)
    return node


class _Element(ast.NodeTransformer):
    """`items[number]` becomes the item itself."""

    def __init__(self, items: str, number: str) -> None:
        self.items, self.number, self.count = items, number, 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Name(items), ast.Name(number), ast.Load()) if (
                items,
                number,
            ) == (self.items, self.number):
                self.count += 1
                return ast.Name(f"{items}_item", ast.Load())
        self.generic_visit(node)
        return node


def collected(block: list[ast.stmt]) -> list[ast.stmt]:
    """Turn an empty list and a loop that appends to it into a list comprehension."""
    for at in range(len(block) - 1):
        match block[at : at + 2]:
            case [
                ast.Assign([ast.Name(name)], ast.List([]) | ast.Call(ast.Name("list"), [], [])),
                ast.For(target, it, [inner], []),
            ]:
                inner, tests = _unwrapped(inner)
                match inner:
                    case ast.Expr(ast.Call(ast.Attribute(ast.Name(filled), "append"), [item])) if (
                        filled == name and not reads([item, *tests], name)
                    ):
                        value = ast.ListComp(item, [ast.comprehension(target, it, tests, 0)])
                        assign = ast.Assign([ast.Name(name, ast.Store())], value)
                        return collected([*block[:at], assign, *block[at + 2 :]])
    return block


def searched(block: list[ast.stmt]) -> list[ast.stmt]:
    """Turn a loop that adds up into `sum`, and one that returns at a find into `any` or `all`."""
    for at in range(len(block)):
        match block[at : at + 2]:
            case [
                ast.Assign([ast.Name(name)], ast.Constant(0)),
                ast.For(target, it, [inner], []),
            ]:
                inner, tests = _unwrapped(inner)
                if (added := _added(inner, name)) and not reads([added, *tests, it], name):
                    value = _call("sum", added, ast.comprehension(target, it, tests, 0))
                    assign = ast.Assign([ast.Name(name, ast.Store())], value)
                    return searched([*block[:at], assign, *block[at + 2 :]])
            case [
                ast.For(target, it, [inner], []),
                ast.Return(ast.Constant(bool(otherwise))),
            ]:
                inner, tests = _unwrapped(inner)
                match inner:
                    case ast.Return(ast.Constant(bool(found))) if tests and found is not otherwise:
                        *rest, test = tests
                        value = _call("any", test, ast.comprehension(target, it, rest, 0))
                        result = value if found else ast.UnaryOp(ast.Not(), value)
                        return [*block[:at], ast.Return(result)]
    return block


def _unwrapped(node: ast.stmt) -> tuple[ast.stmt, list[ast.expr]]:
    """Return the only statement in nested branches, and their tests."""
    tests: list[ast.expr] = []
    while isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        tests.append(node.test)
        node = node.body[0]
    return node, tests


def _added(node: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement adds to the variable."""
    match node:
        case ast.Assign([ast.Name(target)], ast.BinOp(left, ast.Add(), right)) if target == name:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ast.Name) and one.id == name:
                    return other
    return None


def _call(name: str, element: ast.expr, part: ast.comprehension) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.GeneratorExp(element, [part])], [])


def until_break(node: ast.stmt) -> ast.stmt:
    """Turn `while True` whose first statement is a break on a condition into `while not` it."""
    match node:
        case ast.While(ast.Constant(True), [ast.If(test, [ast.Break()], []), *rest], []) if rest:
            return ast.While(ast.UnaryOp(ast.Not(), test), rest, [])
    return node
