"""Splits a test method in two: what it does, for the program's process, and what it then compares,
for a judge's process.

In the first part each assertion that can be extracted becomes a question: `_told(...)` sends the
value as plain data. In the second part the answer takes its place (`_asked()`). Expected values
appear only in the second part, as far as they are literals or computed from literals
(decoys/purity.py). Statements that the first part does not need are left out of it. So a program
that reads its tests finds the questions only, and a program that claims a pass gains nothing.
Assertions that cannot be extracted stay where they were.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, NamedTuple

from sandbox.decoys.bindings import (
    FUNCTIONS,
    Shared,
    attributes_loaded,
    loaded,
    loaded_at_class,
    name_given,
    names_given,
    stores,
)
from sandbox.decoys.inline import written_out
from sandbox.decoys.purity import Known
from sandbox.decoys.questions import Question, of_raising, of_statement
from sandbox.decoys.variants import asserts, is_literal

# contexts that may swallow a failure
SWALLOWS = ("aises", "suppress", "assertLogs", "assertWarns", "assertNoLogs")
# methods that unittest calls
KEPT = {"setUp", "tearDown", "setUpClass", "tearDownClass", "run", "shortDescription", "id"}
LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Yield, ast.YieldFrom, ast.Await)


class Split(NamedTuple):
    """The two parts of a method.

    doing: source for the program's process.
    checks: source for the judge's process.
    hides: whether `checks` contains a value that `doing` does not show.
    """

    doing: str
    checks: str
    hides: bool


class _Parts:
    """Statements of both parts."""

    def __init__(self) -> None:
        self.doing: list[ast.stmt] = []
        self.checks: list[ast.stmt] = []
        self.hides = self.asks = False

    def take(self, question: Question) -> None:
        self.doing += question.doing
        self.checks += question.checks
        self.asks = True
        self.hides |= question.hides


def split(tree: ast.Module, c: int, method: ast.stmt) -> Split | None:
    """Split a method. tree: a module with this test method only, in class c. Returns None if
    nothing can be extracted, or some questions might not be reached.
    """
    kind: Any = tree.body[c]
    if not isinstance(method, ast.FunctionDef) or not method.args.args or _leaves_early(method):
        return None
    original, method = method, written_out(kind, method)
    known = Known(method.args.args[0].arg, kind.name)
    shared = Shared(tree, kind, known)
    local = {
        *stores(method),
        *(part.arg for part in ast.walk(method.args) if isinstance(part, ast.arg)),
    }
    known.names -= local
    shared.take_usual(method, known, {*names_given(tree), *known.modules, *local})
    known.modules |= dict.fromkeys(local - {known.itself}, "?")
    parts = _Parts()
    _body(method.body, method, known, parts)
    if not parts.asks:
        return None
    checks = _module_of_checks(shared, kind, parts.checks, known)
    doing = _pruned(tree, c, original, parts.doing, shared, known)
    return Split(ast.unparse(doing), ast.unparse(checks), parts.hides)


def _leaves_early(method: ast.FunctionDef) -> bool:
    """Whether a passing run may end before the last statement, or the method awaits something."""
    waiting: list[ast.AST] = list(method.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*LEAVES, ast.Raise)) or (
            isinstance(node, ast.Attribute) and node.attr == "skipTest"
        ):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return False


def _body(body: list[ast.stmt], method: ast.FunctionDef, known: Known, parts: _Parts) -> None:
    """Distribute the statements of a body that every passing run reaches."""
    stored = stores(method)
    for part in body:
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            continue  # a docstring may say what is expected
        if (name := name_given(part)) and stored[name] == 1 and known.pure(part.value):  # type: ignore[attr-defined]
            known.names.add(name)
            known.values[name] = part.value  # type: ignore[attr-defined]
            known.written.add(id(part))
            parts.checks.append(part)
            parts.doing.append(part)
        elif (
            isinstance(part, ast.With)
            and len(part.items) == 1
            and asserts(part.items[0].context_expr) == "assertRaises"
        ):
            question = of_raising(part, known)
            parts.take(question) if question else parts.doing.append(part)
        elif isinstance(part, ast.With) and not any(
            word in ast.unparse(item.context_expr) for item in part.items for word in SWALLOWS
        ):
            inner = _Parts()
            _body(part.body, method, known, inner)
            # a subTest message may say what is expected
            about = ast.unparse(part.items[0].context_expr).startswith(f"{known.itself}.subTest(")
            parts.doing += (
                inner.doing if about else [_copied(part, body=inner.doing or [ast.Pass()])]
            )
            parts.checks += inner.checks
            parts.hides |= inner.hides
            parts.asks |= inner.asks
        elif isinstance(part, ast.If) and known.pure(part.test):
            inner, otherwise = _Parts(), _Parts()
            _body(part.body, method, known, inner)
            _body(part.orelse, method, known, otherwise)
            parts.doing.append(
                _copied(part, body=inner.doing or [ast.Pass()], orelse=otherwise.doing)
            )
            parts.checks.append(
                _copied(part, body=inner.checks or [ast.Pass()], orelse=otherwise.checks)
            )
            parts.asks |= inner.asks or otherwise.asks
        elif isinstance(part, ast.For) and (loop := _loop(part, method, known, stored)):
            parts.doing += loop.doing
            parts.checks += loop.checks
            parts.hides |= loop.hides
            parts.asks |= loop.asks
        elif isinstance(part, (ast.Expr, ast.Assert, ast.For)) and (
            question := of_statement(part, known)
        ):
            parts.take(question)
        else:
            parts.doing.append(part)
        for node in (
            ast.walk(parts.doing[-1])
            if parts.doing and id(parts.doing[-1]) not in known.written
            else ()
        ):
            if isinstance(node, (ast.Name, ast.Attribute)):
                known.lent.add(ast.unparse(node))


def _loop(
    loop: ast.For, method: ast.FunctionDef, known: Known, stored: dict[str, int]
) -> _Parts | None:
    """Split a loop over literals. Both parts run the loop; the program's gets only the columns of
    the table that it needs, if they are literals.
    """
    names = [node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)]
    plain = isinstance(loop.target, ast.Name) or (
        isinstance(loop.target, ast.Tuple)
        and all(isinstance(part, ast.Name) for part in loop.target.elts)
    )
    loops = [
        node.id
        for part in ast.walk(method)
        if isinstance(part, ast.For)
        for node in ast.walk(part.target)
        if isinstance(node, ast.Name)
    ]
    if (
        loop.orelse
        or not plain
        or not known.pure(loop.iter)
        or any(stored[name] != loops.count(name) for name in names)
    ):
        return None
    inner = _Parts()
    _body(loop.body, method, known.with_names(set(names)), inner)
    if not inner.asks:
        return None
    needed = {
        node.id for part in inner.doing for node in ast.walk(part) if isinstance(node, ast.Name)
    }
    doing, hidden = _narrowed(
        loop, [name for name in names if name in needed], _table(loop.iter, method)
    )
    inner.checks = [_copied(loop, body=inner.checks or [ast.Pass()])]
    inner.doing = [_copied(doing, body=inner.doing or [ast.Pass()])]
    inner.hides &= hidden
    return inner


def _table(of: ast.expr, method: ast.FunctionDef) -> ast.expr:
    """Return the literal that a loop iterates over, if it has a name."""
    if isinstance(of, ast.Name):
        values = [
            part.value
            for part in method.body
            if name_given(part) == of.id and isinstance(part, ast.Assign)
        ]
        return values[0] if len(values) == 1 else of
    return of


def _narrowed(loop: ast.For, names: list[str], table: ast.expr) -> tuple[ast.For, bool]:
    """Return the loop with only these variables, and whether that hides the others."""
    if isinstance(loop.target, ast.Name):
        return loop, True
    assert isinstance(loop.target, ast.Tuple)
    at = [
        number
        for number, part in enumerate(loop.target.elts)
        if isinstance(part, ast.Name) and part.id in names
    ]
    if len(at) == len(loop.target.elts):
        return loop, True
    rows: list[list[ast.expr]] = []
    if (
        isinstance(table, ast.Call)
        and isinstance(table.func, ast.Attribute)
        and table.func.attr == "items"
        and isinstance(table.func.value, ast.Dict)
    ):
        rows = [
            [key, value]
            for key, value in zip(table.func.value.keys, table.func.value.values, strict=True)
            if key and is_literal(key)
        ]
        if len(rows) != len({ast.unparse(key) for key, _ in rows}) or len(rows) != len(
            table.func.value.keys
        ):
            return loop, False
    elif isinstance(table, (ast.List, ast.Tuple)):
        rows = [row.elts for row in table.elts if isinstance(row, (ast.Tuple, ast.List))]
        if len(rows) != len(table.elts):
            return loop, False
    if not rows or any(
        len(row) != len(loop.target.elts) or any(isinstance(part, ast.Starred) for part in row)
        for row in rows
    ):
        return loop, False
    target = ast.Tuple([loop.target.elts[number] for number in at], ast.Store())
    narrow: ast.expr = ast.List(
        [ast.Tuple([row[number] for number in at], ast.Load()) for row in rows], ast.Load()
    )
    if not at:
        return _copied(
            loop,
            target=ast.Name("_", ast.Store()),
            iter=ast.List([ast.Constant(0)] * len(rows), ast.Load()),
        ), True
    return _copied(loop, target=target, iter=narrow), True


def _copied(node: Any, **changes: Any) -> Any:
    other = copy.copy(node)
    other.__dict__.update(changes)
    return other


def _module_of_checks(
    shared: Shared, kind: ast.ClassDef, checks: list[ast.stmt], known: Known
) -> ast.Module:
    """Build the judge's source: the known names of module and class, and one method."""
    up = [
        _copied(
            part, targets=[ast.Attribute(ast.Name(known.itself, ast.Load()), name, ast.Store())]
        )
        for name, part in shared.of_set_up.items()
    ]
    arguments = ast.arguments([], [ast.arg(known.itself)], None, [], [], None, [])
    method = ast.FunctionDef("runTest", arguments, [*up, *checks, ast.Pass()], [], None, lineno=0)
    case = ast.ClassDef(
        kind.name,
        [ast.Name("_TestCase", ast.Load())],
        [],
        [*shared.of_class.values(), *shared.methods, method],
        [],
    )
    return ast.Module([*shared.imports, *shared.constants.values(), *shared.functions, case], [])


def _pruned(
    tree: ast.Module,
    c: int,
    method: ast.FunctionDef,
    doing: list[ast.stmt],
    shared: Shared,
    known: Known,
) -> ast.Module:
    """Build the program's source: without values that only the judge needs, docstrings, or the
    method's name, all of which may reveal what is expected.
    """
    kind: Any = tree.body[c]
    body = [
        part
        for part in kind.body
        if part is not method
        and not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
    ]
    used = (
        loaded(part for at, part in enumerate(tree.body) if at != c)
        | loaded(kind.decorator_list)
        | loaded(kind.bases)
    )
    unused = {id(part) for part in shared.of_set_up.values()} | {
        id(part) for part in shared.of_class.values()
    }
    at_class = loaded_at_class([*body, method])
    read = attributes_loaded([*doing, *body]) | at_class
    body = [
        part
        for part in body
        if not (isinstance(part, ast.FunctionDef) and part.name not in read | KEPT)
    ]
    reflective = any(name in ("getattr", "vars", "__dict__") for name in used | loaded([kind]))
    doing = _needed(doing, known)
    attributes = attributes_loaded([*doing, *body]) | at_class
    removed = {
        id(part)
        for group in (shared.of_set_up, shared.of_class)
        for name, part in group.items()
        if name not in attributes
        and id(part) in unused
        and not reflective
        and name not in ("maxDiff", "longMessage")
    }
    body = [
        _copied(part, body=[kept for kept in part.body if id(kept) not in removed] or [ast.Pass()])
        if _is_set_up(part)
        else part
        for part in body
    ]
    body = [part for part in body if id(part) not in removed]
    method = _copied(method, name="test", body=doing or [ast.Pass()])
    kind = _copied(kind, body=[*body, method])
    needed = loaded([part for at, part in enumerate(tree.body) if at != c] + [kind])
    constants = {id(part) for name, part in shared.constants.items() if name not in needed}
    return ast.Module(
        [
            kind if at == c else part
            for at, part in enumerate(tree.body)
            if id(part) not in constants
        ],
        [],
    )


def _is_set_up(part: ast.stmt) -> bool:
    return isinstance(part, ast.FunctionDef) and part.name == "setUp"


def _needed(body: list[ast.stmt], known: Known) -> list[ast.stmt]:
    """Drop assignments of literals to names that nothing else here reads."""
    while True:
        read = loaded(body)
        kept = _without(body, known.written, read)
        if loaded(kept) == read:
            return kept
        body = kept


def _without(body: list[ast.stmt], written: set[int], read: set[str]) -> list[ast.stmt]:
    remaining = [part for part in body if id(part) not in written or name_given(part) in read]
    for at, part in enumerate(remaining):
        if isinstance(part, (ast.With, ast.For, ast.If)):
            remaining[at] = _copied(part, body=_without(part.body, written, read) or [ast.Pass()])
        if isinstance(part, (ast.For, ast.If)):
            remaining[at].orelse = _without(part.orelse, written, read)  # type: ignore[attr-defined]
    return remaining
