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

from problems.syntax import parse

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
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
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
    """A place for a mistake: `new` replaces the node's field, or item `at` of it."""

    kind: str
    node: ast.AST
    field: str
    new: Any
    at: int | None = None


def mutants(source: str, most: int, entry_point: str | None = None) -> list[Mutant]:
    """Return at most `most` mutants; an empty list for a source that is not valid Python.

    entry_point: the function that the tests call; None for a program that runs on its own.
    """
    try:
        tree = parse(source)
        compiled = {_code(ast.unparse(tree))}
        result: list[Mutant] = []
        for site in _ordered(list(_sites(tree, entry_point or "")), source)[: TRIES * most]:
            if len(result) == most:
                break
            old = _put(site, site.new)
            text = ast.unparse(tree)
            _put(site, old)
            if (code := _code(text)) not in compiled:
                compiled.add(code)
                what = f"{_words(old)} becomes {_words(site.new)}"
                result.append(Mutant(text, site.kind, getattr(site.node, "lineno", 0), what))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return []
    return result


def _put(site: _Site, value: Any) -> Any:
    """Put a value in its place in the tree; return what was there."""
    old = getattr(site.node, site.field)
    if site.at is None:
        setattr(site.node, site.field, value)
        return old
    replaced, old[site.at] = old[site.at], value
    return replaced


def _code(source: str) -> str:
    """Return what a source compiles to, without line numbers. Constants fold, dead code goes."""
    return _shown(compile(source, "", "exec", dont_inherit=True, optimize=0))


def _shown(code: Any) -> str:
    if not hasattr(code, "co_code"):
        return f"{type(code)} {code!r}"  # 1 == True
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable)
    return repr((code.co_code, names, [_shown(constant) for constant in code.co_consts]))


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
    """Yield the sites in functions that the entry point, or code outside functions, reaches."""
    skipped = _unreached(tree, entry_point)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if node not in skipped:
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


def _unreached(tree: ast.Module, entry_point: str) -> set[ast.AST]:
    """Return the functions, classes and data of the module that are not reached by name.

    A dunder method is reached with its class.
    """
    names = {node: node.name for node in ast.walk(tree) if isinstance(node, DEFINITIONS)} | {
        node: node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    unreached = {node for node, name in names.items() if not name.startswith("__")}
    used = _used_names(tree, unreached) | {*entry_point.replace("()", "").split(".")}
    while live := {node for node in unreached if names[node] in used}:
        unreached -= live
        used = used.union(*(_used_names(node, unreached) for node in live))
    return {*unreached}


def _used_names(node: ast.AST, without: set[Any]) -> set[str]:
    """Return the names that a node uses outside the nodes to leave out."""
    names, stack = set[str](), [*ast.iter_child_nodes(node)]
    while stack:
        part = stack.pop()
        if part not in without:
            names.add(getattr(part, "id", "") or getattr(part, "attr", ""))
            stack += ast.iter_child_nodes(part)
    return names


def _mistakes(node: ast.AST) -> Iterator[_Site]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield _Site("operator", node, "op", OPERATORS[type(op)]())
        case ast.Compare(ops=comparisons):
            for at, comparison in enumerate(comparisons):
                yield _Site("comparison", node, "ops", COMPARISONS[type(comparison)](), at)
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
                    yield _Site("return", part, "value", ast.Constant(None))


def _words(part: Any) -> str:
    """Return a short text for a node, operator or value."""
    if isinstance(part, (ast.operator, ast.cmpop, ast.boolop)):
        return type(part).__name__
    text = ast.unparse(part) if isinstance(part, ast.AST) else repr(part)
    return text if len(text) <= 40 else f"{text[:39]}…"
