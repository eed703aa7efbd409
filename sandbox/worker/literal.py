"""Reads assert tests that only compare calls with literals, as most of HumanEval's do, as data, so
that no judge process has to run them.

`assert candidate([1, 2]) == 3` means the same as a call test. The calls of such a test are sent to
the program at once, and their results are compared outside, as for the style `call`. Anything else
(a loop, a helper, a tolerance, a value that only Python can compare reliably) gives None, and a
judge process runs the test as it is written.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from sandbox.wire import NotPlain, Tree, encode, parse
from sandbox.worker.compare import equal, is_longer

MAX_CHARACTERS = 100_000
MAX_BRACKETS = 40  # nested; the parser recurses
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True)
class Claim:
    """One assertion: a call, and what its result must be."""

    call: str  # encoded [args, kwargs]
    how: Literal["equal", "truthy", "falsy", "is"]
    want: str = "null"  # encoded; for equal and is

    def holds(self, got: bytes) -> bool | None:
        """Return what Python's own comparison would give for a result; None if that cannot be
        decided from the text. Raises NotPlain.
        """
        if self.how == "is":
            return got.decode("ascii", "replace") == self.want
        # The truth of a long value is not worth parsing it here.
        if is_longer(got, self.want.encode(), 4096):
            return False if self.how == "equal" else None
        tree = parse(got)
        if self.how == "equal":
            if got == self.want.encode() and b'"nan"' not in got:
                return True
            # More generous than ==, which distinguishes lists from tuples: only a False is certain.
            unsure = b'{"c"' in got or '{"c"' in self.want or equal(tree, parse(self.want), None)
            return None if unsure else False
        truth = _truth(tree)
        return truth if truth is None or self.how == "truthy" else not truth


@lru_cache(maxsize=256)
def claims(source: str, entry_point: str) -> tuple[Claim, ...] | None:
    """Return the assertions of a test in order, or None if the test must be run."""
    if not is_short(source):
        return None
    try:
        body = ast.parse(source).body
        return _claims(body, entry_point)
    except (
        _Unclear,
        SyntaxError,
        NotPlain,
        ValueError,
        TypeError,
        IndexError,
        RecursionError,
        MemoryError,
        OverflowError,
    ):
        return None


def is_short(source: str) -> bool:
    """Whether this text can be parsed in the worker, which must not run out of time or stack."""
    return len(source) <= MAX_CHARACTERS and "\0" not in source and _deepest(source) <= MAX_BRACKETS


class _Unclear(Exception):
    """The test contains more than literals."""


def _claims(body: list[ast.stmt], entry_point: str) -> tuple[Claim, ...]:
    checks = [node for node in body if isinstance(node, ast.FunctionDef)]
    for node in body:
        named = isinstance(node, ast.Assign) and [
            target.id for target in node.targets if isinstance(target, ast.Name)
        ]
        if (
            node not in checks
            and not does_nothing(node)
            and named not in (["METADATA"], ["__metadata__"])
        ):
            raise _Unclear
        if named:
            ast.literal_eval(node.value)  # type: ignore[attr-defined]
    [check] = checks
    plain = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=check.args.args[0].arg)],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    for argument in check.args.args:
        argument.annotation = None
    if (
        check.name != "check"
        or check.decorator_list
        or check.returns
        or ast.dump(check.args) != ast.dump(plain)
    ):
        raise _Unclear
    names = {check.args.args[0].arg, entry_point} - {"check", "METADATA"}
    claims_found = (_claim(node, names) for node in check.body if not does_nothing(node))
    return tuple(claim for claim in claims_found if claim is not None)


def does_nothing(node: ast.stmt) -> bool:
    """Return whether a statement is `pass`, or a text or number on its own."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _claim(node: ast.stmt, names: set[str]) -> Claim | None:
    """Return the claim of an assertion; None if it holds whatever the program does."""
    if not isinstance(node, ast.Assert):
        raise _Unclear
    test = node.test
    if isinstance(test, ast.Constant) and test.value:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Claim(_call(test.operand, names), "falsy")
    if not isinstance(test, ast.Compare):
        return Claim(_call(test, names), "truthy")
    [other], [relation] = test.comparators, test.ops
    if (
        isinstance(relation, ast.Is)
        and isinstance(other, ast.Constant)
        and (other.value is None or type(other.value) is bool)
    ):
        return Claim(_call(test.left, names), "is", encode(other.value))
    if not isinstance(relation, ast.Eq):
        raise _Unclear
    call, expected = (test.left, other) if isinstance(test.left, ast.Call) else (other, test.left)
    return Claim(_call(call, names), "equal", encode(_value(expected)))


def _call(node: ast.expr, names: set[str]) -> str:
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Name)
        or node.func.id not in names
    ):
        raise _Unclear
    arguments = [_value(argument) for argument in node.args]
    return encode(
        [
            arguments,
            {word.arg: _value(word.value) for word in node.keywords if word.arg or _unclear()},
        ]
    )


def _unclear() -> bool:
    raise _Unclear


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, or of a small sum of literals."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        left, right = _value(node.left), _value(node.right)
        kinds = {type(left), type(right)}
        if kinds <= {int, float} or (kinds == {str} and isinstance(node.op, ast.Add)):
            return _SUMS[type(node.op)](left, right)
        raise _Unclear
    return ast.literal_eval(node)


def _truth(of: Tree) -> bool | None:
    if type(of) is not dict:
        return bool(of)
    found = [body for tag, body in of.items() if tag in ("t", "s", "z", "d") and type(body) is list]
    return bool(found[0]) if len(found) == len(of) == 1 else None


def _deepest(source: str) -> int:
    deepest = depth = 0
    for character in source:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest
