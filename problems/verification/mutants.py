"""Mutants: copies of a program with one mistake each, which good tests reject.

In: a reference solution. Out: at most `most` `Mutant`s, the same on every machine, that compile to
other code than the original and each other. A mistake is another operator, comparison, constant,
`and` for `or`, or a return of None, in code that the entry point reaches by name. Kinds take turns,
and the sites of a kind are ordered by a hash, so that even a few mutants are a fair sample.

Some mutants are equivalent to the original, so no test can reject them. They count as survivors
unless `equivalence` recognizes them, so a test strength is a lower bound.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from artifacts.parsing import parse
from problems.syntax import binds, names_in, reached

# A larger number is a modulus, a bound or an infinity: adding one to it seldom matters.
LARGE = 10_000
TRIES = 4  # at most this many sites are tried for each mutant wanted

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
# A change there is not seen by a test: types, decorators, messages of assertions.
UNSEEN = ("annotation", "returns", "msg", "decorator_list", "type")
SAMPLE = "sample"  # the kind of a program that a model wrote


@dataclass(frozen=True)
class Mutant:
    """A mutated program: its source, the kind and line of the mistake, and a description."""

    source: str
    kind: str
    line: int
    what: str

    @property
    def name(self) -> str:
        return f"{self.kind}, line {self.line}: {self.what}" if self.line else self.what


class _Site(NamedTuple):
    """A place for a mistake: `new` replaces the node's field."""

    kind: str
    node: ast.AST
    field: str
    new: Any


def mutants(source: str, most: int, entry_point: str | None = None) -> list[Mutant]:
    """Return at most `most` mutants; an empty list for a source that is not valid Python.

    entry_point: the function that the tests call; None for a program that runs on its own.
    """
    try:
        tree = parse(source)
        compiled = {_compiled(tree)}
        result: list[Mutant] = []
        for site in _ordered(list(_sites(tree, entry_point or "")), source)[: TRIES * most]:
            if len(result) == most:
                break
            old = getattr(site.node, site.field)
            setattr(site.node, site.field, site.new)
            if (code := _compiled(tree)) not in compiled:
                compiled.add(code)
                what = f"{_words(old)} becomes {_words(site.new)}"
                line = getattr(site.node, "lineno", 0)
                result.append(Mutant(ast.unparse(tree), site.kind, line, what))
            setattr(site.node, site.field, old)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return []
    return result


def _compiled(tree: ast.Module) -> Any:
    """Return a code object: equal where constants fold to the same, or only dead code differs."""
    return compile(tree, "", "exec", dont_inherit=True, optimize=0)


def _ordered(sites: list[_Site], source: str) -> list[_Site]:
    """Order the sites: kinds take turns; within a kind by a hash of program and position."""
    kinds: dict[str, list[tuple[bytes, _Site]]] = defaultdict(list)
    seed = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    for number, site in enumerate(sites):
        key = hashlib.sha256(seed + f"{number}/{site.kind}".encode()).digest()
        kinds[site.kind].append((key, site))
    turns = zip_longest(*(sorted(kinds[kind], key=lambda pair: pair[0]) for kind in sorted(kinds)))
    return [pair[1] for pair in chain.from_iterable(turns) if pair]


def _sites(tree: ast.Module, entry_point: str) -> Iterator[_Site]:
    """Yield the sites in what the entry point, or code outside definitions, reaches."""
    plain = [node for node in tree.body if not binds(node)]
    roots = [*entry_point.replace("()", "").split("."), *chain(*map(names_in, plain))]
    stack: list[ast.AST] = [*plain, *reached(tree, roots)]
    while stack:
        node = stack.pop()
        yield from _mistakes(node)
        stack += _children(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that a test could detect a change in."""
    if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)) or (
        isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
    ):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            documents = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and name not in UNSEEN and not documents:
                yield child


def _mistakes(node: ast.AST) -> Iterator[_Site]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield _Site("operator", node, "op", OPERATORS[type(op)]())
        case ast.Compare(ops=comparisons):
            for at, old in enumerate(comparisons):
                new = [*comparisons[:at], COMPARISONS[type(old)](), *comparisons[at + 1 :]]
                yield _Site("comparison", node, "ops", new)
        case ast.BoolOp(op=op):
            yield _Site("boolean", node, "op", ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.Constant(value=bool() as value):
            yield _Site("constant", node, "value", not value)
        case ast.Constant(value=int() | float() as value) if abs(value) <= LARGE:
            yield _Site("constant", node, "value", value + 1)
        case ast.Constant(value=str() as value):
            yield _Site("constant", node, "value", "" if value else "x")
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            returns = [part for part in ast.walk(node) if isinstance(part, ast.Return)]
            # Any test rejects a function that lacks its only return.
            for part in returns if len(returns) > 1 else ():
                if part.value and not isinstance(part.value, ast.Constant):
                    none = ast.copy_location(ast.Constant(None), part.value)
                    yield _Site("return", part, "value", none)


def _words(part: Any) -> str:
    """Return a short text for a node, operators or a value."""
    if isinstance(part, list):
        return ", ".join(map(_words, part))
    if isinstance(part, (ast.operator, ast.cmpop, ast.boolop)):
        return type(part).__name__
    text = ast.unparse(part) if isinstance(part, ast.AST) else repr(part)
    return text if len(text) <= 40 else f"{text[:39]}…"
