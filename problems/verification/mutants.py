"""Mutants: copies of a program with one mistake each, which good tests reject.

In: a reference solution. Out: at most `most` `Mutant`s, the same on every machine, none equal to
the original. Each mutant changes one site of the syntax tree. Kinds of mistake take turns, and the
sites of a kind are ordered by a hash, so that even a few mutants are a fair sample.

Some mutants are equivalent to the original, so no test can reject them. Those that are cheap to
recognize are never made: mutants that compile to the same code, and changes to docstrings,
annotations, error messages, functions that nothing calls, the comparison of `if a > b: b = a` (to
`>=`), and huge constants. The remaining equivalent mutants count as survivors, so a test strength
is a lower bound.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from types import CodeType
from typing import Any

from problems.syntax import parse

# A larger number is a modulus, a bound or an infinity: adding one to it seldom matters.
LARGE = 10_000
TRIES = 4  # at most this many sites are tried for each mutant wanted

OPERATORS: dict[type[ast.AST], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS: dict[type[ast.AST], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_PAIRS = (
    ("min", "max"), ("any", "all"), ("upper", "lower"), ("startswith", "endswith"),
    ("lstrip", "rstrip"), ("ceil", "floor"), ("find", "rfind"), ("isupper", "islower"),
)  # fmt: skip
CALLS = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])} | {
    "set": "list",
    "sum": "max",
    "len": "bool",
    "strip": "lstrip",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
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


@dataclass(frozen=True)
class _Site:
    """A place for a mistake: `holder`'s value under `key` is replaced by `new`."""

    kind: str
    holder: Any  # a node (key: a field) or a list of nodes (key: an index)
    key: str | int
    new: Any
    line: int

    @contextmanager
    def applied(self) -> Iterator[str]:
        """Apply the mistake to the tree within the block; the block receives its description."""
        old = self._put(self.new)
        try:
            yield f"{_words(old)} becomes {_words(self.new)}"
        finally:
            self._put(old)

    def _put(self, value: Any) -> Any:
        if isinstance(self.holder, list):
            old, self.holder[self.key] = self.holder[self.key], value  # type: ignore[index]
        else:
            old = getattr(self.holder, str(self.key))
            setattr(self.holder, str(self.key), value)
        return old


def mutants(source: str, most: int, entry_point: str | None = None) -> list[Mutant]:
    """Return at most `most` mutants that compile differently from the original and from each other.

    Returns an empty list for a source that is not valid Python.

    entry_point: the function that the tests call; None for a program that runs on its own.
    Functions that are not reachable by name are left unchanged.
    """
    try:
        tree = parse(source)
        compiled = {_essence(ast.unparse(tree))}
        sites = _ordered(list(_sites(tree, entry_point)), source)
        result: list[Mutant] = []
        for site in sites[: TRIES * most]:
            if len(result) == most:
                break
            with site.applied() as description:
                text = ast.unparse(tree)
            essence = _essence(text)
            if essence is not None and essence not in compiled:  # implies that the tree differs too
                compiled.add(essence)
                result.append(Mutant(text, site.kind, site.line, description))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return []
    return result


def _essence(source: str) -> object:
    """Return the code without line numbers, or None if invalid (`break` without its loop)."""
    try:
        return _code(compile(source, "", "exec", dont_inherit=True, optimize=0))
    except SyntaxError:
        return None


def _code(code: CodeType) -> tuple[object, ...]:
    # Each constant is paired with its type, because 1 == True and 0.0 == -0.0.
    constants = tuple(
        _code(const) if isinstance(const, CodeType) else (type(const), repr(const))
        for const in code.co_consts
    )
    return (
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_exceptiontable,
        constants,
    )


def _ordered(sites: list[_Site], source: str) -> list[_Site]:
    """Order the sites: kinds take turns; within a kind by a hash of program and position."""
    kinds: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    seed = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    for number, site in enumerate(sites):
        kinds[site.kind].append(
            (hashlib.sha256(seed + f"{number}/{site.kind}".encode()).digest(), number)
        )
    turns = zip_longest(*sorted(sorted(of_kind) for of_kind in kinds.values()))
    return [sites[place[1]] for place in chain.from_iterable(turns) if place]


def _sites(tree: ast.Module, entry_point: str | None) -> Iterator[_Site]:
    """Yield the sites depth first, in source order."""
    nodes = [*ast.walk(tree)]
    uncalled = _uncalled(tree, nodes, entry_point or "")
    settled = _settled(nodes) | _only_return(nodes)
    # Each entry is a node and whether it is inside a `while` loop.
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, looped = stack.pop()
        yield from _mistakes(node, looped, settled)
        inner = [child for child in _children(node) if child not in uncalled]
        stack += [
            (child, isinstance(node, ast.While) or (looped and not isinstance(child, FUNCTIONS)))
            for child in reversed(inner)
        ]


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that a test could detect a change in.

    Skips annotations, string statements, error messages, types and the `__main__` block.
    """
    if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)):
        return
    if _starts(node):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "msg", "decorator_list", "type"):
            continue
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST) and not (
                isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            ):
                yield child


def _uncalled(tree: ast.Module, nodes: Sequence[ast.AST], entry_point: str) -> set[ast.AST]:
    """Return functions that nothing reaches by name from the entry point or top-level code.

    A dunder method is reachable when its class is.
    """
    owner = {
        part: node.name for node in nodes if isinstance(node, ast.ClassDef) for part in node.body
    }
    unreached = {node for node in nodes if isinstance(node, FUNCTIONS)}
    used = _used_names(tree) | {*entry_point.replace("()", "").split(".")}
    while live := {
        node
        for node in unreached
        if (owner.get(node) if node.name.startswith("__") else node.name) in used
    }:
        unreached -= live
        used = used.union(*map(_used_names, live))
    return {*unreached}


def _used_names(node: ast.AST) -> set[str]:
    """Return the names that a node uses, except those used by functions inside it."""
    names, stack = set[str](), [*ast.iter_child_nodes(node)]
    while stack:
        part = stack.pop()
        names |= (
            {part.id}
            if isinstance(part, ast.Name)
            else {part.attr}
            if isinstance(part, ast.Attribute)
            else set()
        )
        stack += [] if isinstance(part, FUNCTIONS) else ast.iter_child_nodes(part)
    return names


def _mistakes(node: ast.AST, looped: bool, settled: set[ast.AST]) -> Iterator[_Site]:
    line = getattr(node, "lineno", 0)
    match node:
        case ast.BinOp(op=op) if (
            type(op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right)
        ):
            yield _Site("operator", node, "op", OPERATORS[type(op)](), line)
        # In a `while` loop, the mutant would hardly ever end.
        case ast.AugAssign(op=op) if type(op) in OPERATORS and not looped:
            yield _Site("operator", node, "op", OPERATORS[type(op)](), line)
        case ast.Compare(ops=ops) if node not in settled:
            yield from (
                _Site("comparison", ops, at, COMPARISONS[type(op)](), line)
                for at, op in enumerate(ops)
            )
        case ast.BoolOp(op=op):
            yield _Site(
                "boolean", node, "op", ast.Or() if isinstance(op, ast.And) else ast.And(), line
            )
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield _Site("sign", node, "op", ast.UAdd(), line)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _Site("condition", node, "operand", _negated(operand), line)
        case ast.Constant(value=value):
            yield from (_Site("constant", node, "value", new, line) for new in _other_value(value))
        case ast.Call():
            yield from _calls(node, line)
        case ast.Subscript(slice=ast.Slice() as cut):
            yield from (
                _Site("off by one", cut, edge, _one_more(end), line)
                for edge in ("lower", "upper")
                if (end := getattr(cut, edge))
            )
        case ast.Return(value=ast.expr() as value) if (
            not isinstance(value, ast.Constant) and node not in settled
        ):
            yield _Site("return", node, "value", ast.Constant(None), line)
        case ast.comprehension(ifs=ifs):
            yield from (
                _Site("condition", ifs, at, _negated(test), test.lineno)
                for at, test in enumerate(ifs)
            )
    if (
        isinstance(node, (ast.If, ast.IfExp, ast.While))
        and not isinstance(node.test, (ast.UnaryOp, ast.Constant))
        and not _starts(node)
    ):
        yield _Site("condition", node, "test", _negated(node.test), line)
    for block in ("body", "orelse"):
        if isinstance(statements := getattr(node, block, None), list):
            places = enumerate(statements)
            yield from (
                _Site("statement", statements, at, ast.Pass(), part.lineno)
                for at, part in places
                if _can_go(part, node, looped)
            )


def _other_value(value: object) -> list[object]:
    match value:
        case bool():
            return [not value]
        case int() | float() if abs(value) <= LARGE:
            return [value + 1]
        case str():
            return ["" if value else "x"]
    return []


def _calls(node: ast.Call, line: int) -> Iterator[_Site]:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[*_, ast.expr()]):
            at = min(1, len(node.args) - 1)
            yield _Site("off by one", node.args, at, _one_more(node.args[at]), line)
        case ast.Call(func=ast.Name(id="sorted" | "reversed"), keywords=[]):
            yield _Site("call", node, "func", ast.Name("list"), line)
        case ast.Call(func=ast.Name(id="abs" | "round"), keywords=[]):
            yield _Site("call", node, "func", ast.Name("float"), line)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in CALLS:
            yield _Site("call", node, "func", ast.Name(CALLS[name]), line)
        case ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
            yield _Site("call", node.func, "attr", CALLS[name], line)


def _can_go(statement: ast.stmt, parent: ast.AST, looped: bool) -> bool:
    """Return whether the program still ends when this statement is removed.

    Candidates are updates of an existing value, guards, and calls made for their effect.
    """
    looped |= isinstance(parent, ast.While)
    match statement:
        case ast.AugAssign():
            return not looped
        case ast.Assign(targets=[ast.Name(id=name)]):
            return not looped and any(
                isinstance(part, ast.Name) and part.id == name for part in ast.walk(statement.value)
            )
        case ast.Expr(value=ast.Call(func=func)):
            return not looped and ast.unparse(func) != "print"
        case ast.If() if statement.orelse or _starts(statement):
            return False
        case ast.If() | ast.Break() | ast.Continue():
            return not looped
    return False


def _starts(node: ast.AST) -> bool:
    """Return whether the node is `if __name__ == "__main__"`."""
    return isinstance(node, ast.If) and "__name__" in {
        getattr(name, "id", "") for name in ast.walk(node.test)
    }


def _settled(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return comparisons where including equality changes nothing: those of `if a > b: b = a`."""
    comparisons: set[ast.AST] = set()
    for node in nodes:
        match node:
            case ast.If(
                test=ast.Compare(
                    left=left,
                    ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()],
                    comparators=[right],
                ) as test
            ):
                match node.body:
                    case [ast.Assign(targets=[target], value=value)] if {
                        *map(ast.unparse, (left, right))
                    } == {*map(ast.unparse, (target, value))}:
                        comparisons.add(test)
    return comparisons


def _only_return(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return sole return statements: without its only one, a function is trivial."""
    returns_by_function = [
        [node for node in ast.walk(function) if isinstance(node, ast.Return)]
        for function in nodes
        if isinstance(function, FUNCTIONS)
    ]
    return {returns[0] for returns in returns_by_function if len(returns) == 1}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _one_more(node: ast.expr) -> ast.expr:
    return (
        ast.Constant(node.value + 1)
        if isinstance(node, ast.Constant) and type(node.value) is int
        else ast.BinOp(node, ast.Add(), ast.Constant(1))
    )


def _words(part: object) -> str:
    """Describe a node by its source, an operator by its name, all else by its repr; shortened."""
    if isinstance(part, (ast.operator, ast.cmpop, ast.boolop, ast.unaryop)):
        return type(part).__name__
    text = " ".join((ast.unparse(part) if isinstance(part, ast.AST) else repr(part)).split())
    return text if len(text) <= 60 else text[:59] + "…"
