"""Variants of an assertion for a decoy: first those that look like a test (another value), then the
opposite, or a list with the operand inside, which equals nothing that it equalled before. Each
variant fails if the assertion itself holds.
"""

from __future__ import annotations

import ast
import builtins

from sandbox.decoys.mutate_expected import SECRET, other_type, otherwise

OPPOSITE = {
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIn": "assertNotIn",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual", "assertRegex": "assertNotRegex",
    "assertAlmostEqual": "assertNotAlmostEqual", "assert_called": "assert_not_called",
}  # fmt: skip
OPPOSITE |= {opposite: name for name, opposite in OPPOSITE.items()} | {
    "assert_called_once": "assert_not_called"
}
COMPARED = {
    "assertEqual",
    "assertListEqual",
    "assertDictEqual",
    "assertTupleEqual",
    "assertSetEqual",
    "assertCountEqual",
}
CALLED_WITH = {"assert_called_with", "assert_called_once_with"}
# exceptions that are unlikely to be base classes of others
RAISED = (
    "FileNotFoundError",
    "PermissionError",
    "ZeroDivisionError",
    "AttributeError",
    "NotImplementedError",
)
PATHS = {"exists", "isfile", "isdir"}


def asserts(call: ast.expr) -> str:
    """Return the name of the assertion method that this expression calls, or nothing."""
    name = (
        call.func.attr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        else ""
    )
    return name if name.startswith("assert") else ""


def of_call(call: ast.Call) -> tuple[list[ast.Call], list[ast.Call]]:
    """Return variants of a call of an assertion: those that look like tests, and others."""
    name, natural, plain = asserts(call), list[ast.Call](), list[ast.Call]()
    if name in COMPARED | {"assertAlmostEqual"} and len(call.args) >= 2:
        side = next((side for side in (1, 0) if is_literal(call.args[side])), 1)
        if other := otherwise(call.args[side], by=_margin(call)):
            natural.append(_with_argument(call, side, other))
        plain += [_with_argument(call, at, wrapped(call.args[at])) for at in (0, 1)]
    if name == "assertIsInstance" and len(call.args) >= 2 and (other := other_type(call.args[1])):
        natural.append(_with_argument(call, 1, other))
    if name == "assertIn" and len(call.args) >= 2:
        natural += [_with_argument(call, at, other) for at, other in _apart(*call.args[:2])]
    if name == "assertTrue" and call.args:
        like_tests, others = of_test(call.args[0])
        natural += [_with_argument(call, 0, other) for other in like_tests]
        plain += [_with_argument(call, 0, other) for other in others[1:]]
    if name == "assertRaises" and len(call.args) >= 2:
        natural += raising(call)
    if name in CALLED_WITH:
        natural += [
            _with_argument(call, at, other)
            for at, argument in enumerate(call.args)
            if (other := otherwise(argument))
        ][:1]
        natural += (
            [ast.Call(call.func, call.args[:-1], call.keywords)] if len(call.args) > 1 else []
        )
    if name in CALLED_WITH | {"assert_any_call"}:
        plain.append(
            ast.Call(call.func, [*call.args, ast.Constant(0), ast.Constant(0)], call.keywords)
        )
    if name in OPPOSITE:
        assert isinstance(call.func, ast.Attribute)
        plain.append(
            ast.Call(
                ast.Attribute(call.func.value, OPPOSITE[name], ast.Load()), call.args, call.keywords
            )
        )
    return natural, plain


def of_test(test: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """Return false expressions for an expression that is true: those that look like tests, and
    others.
    """
    plain: list[ast.expr] = [ast.UnaryOp(ast.Not(), test)]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, right = test.left, test.comparators[0]
        plain += [
            ast.Compare(wrapped(left), [ast.Eq()], [right]),
            ast.Compare(left, [ast.Eq()], [wrapped(right)]),
        ]
        return (
            [ast.Compare(left, test.ops, [other])] if (other := otherwise(right)) else []
        ), plain
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In):
        sides = [test.left, test.comparators[0]]
        found = [
            [other if at == side else sides[side] for side in (0, 1)]
            for at, other in _apart(*sides)
        ]
        return [ast.Compare(left, test.ops, [right]) for left, right in found], plain
    return ([other] if isinstance(test, ast.Call) and (other := _changed_call(test)) else []), plain


def _changed_call(call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2:
        return _with_argument(call, 1, other) if (other := other_type(call.args[1])) else None
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
        return None
    argument = call.args[0]
    if (
        call.func.attr in ("startswith", "endswith")
        and isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
    ):
        other = otherwise(argument)  # must be as long as this one, or it might match as well
        same_length = isinstance(other, ast.Constant) and len(str(other.value)) == len(
            argument.value
        )
        return _with_argument(call, 0, other) if other and same_length else None
    # If this is not a text, the result is an error: a failure as well.
    if call.func.attr in PATHS and ast.unparse(call.func.value) == "os.path":
        return _with_argument(
            call,
            0,
            otherwise(argument, surely=True) or ast.BinOp(argument, ast.Add(), ast.Constant("_q")),
        )
    return None


def raising(call: ast.expr) -> list[ast.Call]:
    """Return variants of an assertRaises with an exception that does not match the
    expected ones.
    """
    assert isinstance(call, ast.Call)
    wanted = ast.unparse(call.args[0]) if call.args else ""
    kind = getattr(builtins, wanted, None)
    # several exceptions, or one that may be a base class of any other
    if not isinstance(kind, type) or wanted in ("Exception", "BaseException"):
        others = (
            ["StopAsyncIteration", "BufferError"]
            if "Exception" not in wanted
            else ["StopAsyncIteration"]
        )
    else:
        others = [
            other
            for other in RAISED
            if not issubclass(getattr(builtins, other), kind)
            and not issubclass(kind, getattr(builtins, other))
        ]
    others = SECRET.sample(others, min(2, len(others)))
    return (
        [_with_argument(call, 0, ast.Name(other, ast.Load())) for other in others] if wanted else []
    )


def is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def wrapped(operand: ast.expr) -> ast.expr:
    """Return a list that equals nothing that the operand equals: for assertCountEqual "a" is like
    ["a"], and for numpy 1 is like [[1]].
    """
    return ast.List([ast.Dict([ast.Constant(0)], [operand])], ast.Load())


def _margin(call: ast.Call) -> float | None:
    """Return the difference within which two numbers count as equal here; None if it is not a
    literal.
    """
    if asserts(call) != "assertAlmostEqual":
        return 0.0
    arguments = {keyword.arg: keyword.value for keyword in call.keywords} | dict(
        zip(("places", "msg", "delta"), call.args[2:], strict=False)
    )
    try:
        delta, places = (
            ast.literal_eval(arguments.get(key, ast.Constant(None))) for key in ("delta", "places")
        )
        return (
            float(10.0 ** -(7 if places is None else places))
            if delta is None
            else abs(float(delta))
        )
    except (ValueError, TypeError, OverflowError):
        return None


def _apart(member: ast.expr, group: ast.expr) -> list[tuple[int, ast.expr]]:
    """Return replacements for the member (0) or the group (1), so that the member is not in the
    group.
    """
    if other := otherwise(member, surely=True):
        return [(0, other)]
    if not isinstance(group, (ast.List, ast.Tuple)) or not group.elts or not is_literal(group):
        return []
    others = [other for item in group.elts if (other := otherwise(item)) is not None]
    values = [ast.literal_eval(item) for item in group.elts]
    if len(others) < len(values) or any(ast.literal_eval(other) in values for other in others):
        return []
    return [(1, type(group)(others, ast.Load()))]


def _with_argument(call: ast.Call, at: int, by: ast.expr) -> ast.Call:
    return ast.Call(
        call.func,
        [by if number == at else argument for number, argument in enumerate(call.args)],
        call.keywords,
    )
