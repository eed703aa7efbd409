"""Edit a program without changing what it does: other names, turned comparisons, split returns."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence

NAMES = ("item", "data", "temp", "value", "res", "cur", "flag", "box", "cell", "part")
TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq}


def edited(source: str, rng: random.Random, count: int = 3) -> str:
    """Return the program without docstrings after `count` kinds of edits, if so many apply.

    The first is renaming. Raises SyntaxError for text that is no Python.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    edits: list[Callable[[ast.Module], ast.NodeTransformer]] = [
        lambda _: Turn(),
        lambda _: Spell(),
        lambda _: Negate(),
        lambda _: Split(),
        lambda _: Number(),
        lambda _: Generate(),
    ]
    rng.shuffle(edits)
    for edit in [lambda tree: Rename(tree), *edits]:
        before = ast.dump(tree)
        tree = ast.fix_missing_locations(edit(tree).visit(tree))
        count -= ast.dump(tree) != before
        if not count:
            break
    return ast.unparse(tree)


class Rename(ast.NodeTransformer):
    """Rename arguments and variables, unless the program uses keyword arguments."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        own = {node.arg for node in nodes if isinstance(node, ast.arg)} | {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        own -= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        if any(isinstance(node, ast.keyword) for node in nodes):
            own = set()
        self.names = {name: f"{NAMES[at % len(NAMES)]}{at}" for at, name in enumerate(sorted(own))}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        return node


class Turn(ast.NodeTransformer):
    """`a < b` becomes `b > a`."""

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        turned = TURNED.get(type(node.ops[0])) if len(node.ops) == 1 else None
        return ast.Compare(node.comparators[0], [turned()], [node.left]) if turned else node


class Spell(ast.NodeTransformer):
    """`a += b` becomes `a = a + b`."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.Assign([node.target], value)


class Negate(ast.NodeTransformer):
    """The branches of `if` and `else` change places."""

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        if not node.orelse or isinstance(node.orelse[0], ast.If):
            return node
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)


class Split(ast.NodeTransformer):
    """A returned expression is first given a name."""

    def visit_Return(self, node: ast.Return) -> ast.stmt | Sequence[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Name):
            return node
        name = ast.Assign([ast.Name("answer_", ast.Store())], node.value)
        return [name, ast.Return(ast.Name("answer_", ast.Load()))]


class Number(ast.NodeTransformer):
    """A loop counts its rounds."""

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.target = ast.Tuple([ast.Name("at_", ast.Store()), node.target], ast.Store())
        node.iter = ast.Call(ast.Name("enumerate", ast.Load()), [node.iter], [])
        return node


class Generate(ast.NodeTransformer):
    """A list comprehension becomes `list` of a generator."""

    def visit_ListComp(self, node: ast.ListComp) -> ast.Call:
        self.generic_visit(node)
        generator = ast.GeneratorExp(node.elt, node.generators)
        return ast.Call(ast.Name("list", ast.Load()), [generator], [])
