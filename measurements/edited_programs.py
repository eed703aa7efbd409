"""Edit a program without changing what it does: other names, turned comparisons, split returns.

`edited` makes edits that `problems/cleaning/canonical.py` undoes, `reworked` others, written after
its rules were fixed.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from functools import partial

Edit = Callable[[], ast.NodeTransformer]
NAMES = ("item", "data", "temp", "value", "res", "cur", "flag", "box", "cell", "part")
TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq}


def edited(source: str, rng: random.Random, count: int = 3) -> str:
    """Return the program without docstrings after `count` kinds of edits, if so many apply.

    The first is renaming. Raises SyntaxError for text that is no Python.
    """
    return _edited(source, rng, count, [Turn, Spell, Negate, Split, Number, Generate])


def reworked(source: str, rng: random.Random, count: int = 3) -> str:
    """As `edited`, with other kinds of edits."""
    return _edited(source, rng, count, [Guard, Nest, Extract, Report, Alias, Twice])


def _edited(source: str, rng: random.Random, count: int, edits: list[Edit]) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    rng.shuffle(edits)
    renamed: Edit = partial(Rename, tree)
    for edit in [renamed, *edits]:
        before = ast.dump(tree)
        tree = ast.fix_missing_locations(edit().visit(tree))
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


class Guard(ast.NodeTransformer):
    """A function returns early without its first argument."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.args.args:
            name = node.args.args[0].arg
            node.body = [*ast.parse(f"if {name} is None:\n    return None").body, *node.body]
        return node


class Nest(ast.NodeTransformer):
    """`if a and b` becomes two branches, one in the other."""

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        match node.test:
            case ast.BoolOp(ast.And(), [first, *rest]) if not node.orelse:
                second = rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
                return ast.If(first, [ast.If(second, node.body, [])], [])
        return node


class Extract(ast.NodeTransformer):
    """The first returned call or operation of a function moves to a function of its own."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        for inner in node.body:
            if isinstance(inner, ast.Return) and isinstance(inner.value, (ast.Call, ast.BinOp)):
                names = {
                    name.id
                    for name in ast.walk(node)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                } | {argument.arg for argument in node.args.args}
                own = {name.id for name in ast.walk(inner) if isinstance(name, ast.Name)}
                bound = {  # of a comprehension in it
                    name.id
                    for name in ast.walk(inner)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                }
                read = sorted((own - bound) & names)
                part = ast.parse(f"def part_({', '.join(read)}):\n    pass").body[0]
                assert isinstance(part, ast.FunctionDef)
                part.body = [ast.Return(inner.value)]
                inner.value = ast.parse(f"part_({', '.join(read)})", mode="eval").body
                node.body.insert(0, part)
                break
        return node


class Report(ast.NodeTransformer):
    """A function keeps a log of its calls."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [
            *ast.parse(f"log_ = {{'called': {node.name!r}}}\nassert log_").body,
            *node.body,
        ]
        return node


class Alias(ast.NodeTransformer):
    """A function reads its first argument under another name."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.args.args:
            name, new = node.args.args[0].arg, "alias_"
            for inner in (inner for part in node.body for inner in ast.walk(part)):
                if isinstance(inner, ast.Name) and inner.id == name:
                    inner.id = new
            node.body = [*ast.parse(f"{new} = {name}").body, *node.body]
        return node


class Twice(ast.NodeTransformer):
    """`a ** 2` becomes `a * a`, where a is a name."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Name(), ast.Pow(), ast.Constant(2)):
                return ast.BinOp(node.left, ast.Mult(), node.left)
        return node
