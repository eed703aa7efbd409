"""Decoys: variants of a unittest that no real solution passes. A program that shares the interpreter with its tests can forge a pass; it then forges
this one too.

Each decoy changes one assertion so that what held no longer holds. The best look like tests: they expect another value (sandbox/otherwise.py), so
that only who knows the answer can tell them from the test itself, and who reads the expected value out of the test returns the wrong one. The others,
where there is no value to change, are the opposite assertion, an operand wrapped in a list, which equals nothing it equalled before, and an end that
fails.
Assertions that a run may not reach (under if or except, after a return, in functions) are left alone: a decoy that passes must be proof.

Each method is run by itself, in a fresh process, like its decoys: or a method could change the ones after it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

from sandbox.otherwise import otherwise

MOST = 8  # decoys a method: each is a run
LIKE_TESTS = 6  # of these at most, where there are others
OPPOSITE = {
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIn": "assertNotIn", "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance", "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual", "assertRegex": "assertNotRegex",
    "assertAlmostEqual": "assertNotAlmostEqual", "assert_called": "assert_not_called",
}  # fmt: skip
OPPOSITE |= {opposite: name for name, opposite in OPPOSITE.items()} | {"assert_called_once": "assert_not_called"}
WRAPPED = {"assertEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertAlmostEqual", "assertCountEqual"}
CALLED_WITH = {"assert_called_with", "assert_called_once_with", "assert_any_call"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OPAQUE = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
SWALLOWS = ("aises", "suppress", "assertLogs", "assertWarns", "assertNoLogs")  # contexts in which a failure may come to nothing
ENDS = ("self.assertIn({name!r}, {half!r})", "self.assertEqual(len({name!r}), {more})", "self.assertTrue({name!r}.startswith({half!r} * 2))")

Path = tuple[int, ...]
Variants = tuple[list[ast.stmt], list[ast.stmt]]  # that look like tests, and others


def methods_and_decoys(source: str) -> list[list[str]]:
    """For each test method its name, the text with this method alone, then its decoys. Raises SyntaxError and its kin on a text that is no Python."""
    tree = ast.parse(source)
    return [
        [f"{tree.body[c].name}.{tree.body[c].body[m].name}", *map(ast.unparse, (_changed(tree, c, m, lambda _: None), *_decoys(tree, c, m)))]  # type: ignore[attr-defined]
        for c, m in _methods(tree)
    ]


def _methods(tree: ast.Module) -> list[tuple[int, int]]:
    """Where the test methods are, by class and by number; of two with one name the last, as Python has it."""
    found = {}
    for c, kind in enumerate(tree.body):
        for m, part in enumerate(kind.body if isinstance(kind, ast.ClassDef) else ()):
            if _is_test(part):
                found[kind.name, part.name] = c, m  # type: ignore[attr-defined]
    return sorted(found.values())


def _is_test(part: ast.stmt) -> bool:
    return isinstance(part, FUNCTIONS) and part.name.startswith("test") and not any("skip" in ast.unparse(by) for by in part.decorator_list)


def _decoys(tree: ast.Module, c: int, m: int) -> list[ast.Module]:
    method = tree.body[c].body[m]  # type: ignore[attr-defined]
    like_tests: list[tuple[Path, ast.stmt]] = []
    others: list[tuple[Path, ast.stmt]] = []
    for path, (natural, plain) in _sites(method, method.body, ()):
        like_tests += [(path, variant) for variant in natural]
        others += [(path, variant) for variant in plain]
    made = [_replaced(tree, c, m, path, by) for path, by in _spread(like_tests, LIKE_TESTS)]
    if len(made) < 3 and not _may_leave(method.body):
        made.append(_changed(tree, c, m, _fail_in_the_end))
    return made + [_replaced(tree, c, m, path, by) for path, by in _spread(others, MOST - len(made))]


def _spread(found: list[Any], most: int) -> list[Any]:
    """So many of them, from all over."""
    return found if len(found) <= most else [found[at * len(found) // most] for at in range(most)]


def _fail_in_the_end(method: ast.FunctionDef) -> None:
    name = method.name
    text = ENDS[len(name) % len(ENDS)].format(name=name, half=name[: len(name) // 2], more=len(name) + 2)
    method.body = [*method.body, *ast.parse(text.replace("self", method.args.args[0].arg if method.args.args else "self")).body]


def _changed(tree: ast.Module, c: int, m: int, change: Callable[[Any], None]) -> ast.Module:
    """A copy with this one test method, changed. Only what is changed is copied."""
    kind = copy.copy(tree.body[c])
    assert isinstance(kind, ast.ClassDef)
    method = copy.copy(kind.body[m])
    change(method)
    kind.body = [method if at == m else part for at, part in enumerate(kind.body) if at == m or not _is_test(part)]
    return ast.Module([kind if at == c else _without_tests(part) for at, part in enumerate(tree.body)], [])


def _without_tests(part: ast.stmt) -> ast.stmt:
    """A class is left, for another may inherit from it."""
    if isinstance(part, ast.ClassDef) and any(map(_is_test, part.body)):
        part = copy.copy(part)
        part.body = [kept for kept in part.body if not _is_test(kept)] or [ast.Pass()]
    return part


def _replaced(tree: ast.Module, c: int, m: int, path: Path, by: ast.stmt) -> ast.Module:
    def change(method: ast.FunctionDef) -> None:
        part: Any = method
        for step in path[:-1]:
            part.body = list(part.body)
            part.body[step] = part = copy.copy(part.body[step])
        part.body = [by if at == path[-1] else kept for at, kept in enumerate(part.body)]

    return _changed(tree, c, m, change)


def _sites(method: ast.FunctionDef, body: list[ast.stmt], path: Path) -> Iterator[tuple[Path, Variants]]:
    """Where in a method, by index, a statement stands that every run reaches, and what may take its place."""
    for at, part in enumerate(body):
        here = (*path, at)
        if isinstance(part, (ast.With, ast.AsyncWith)):
            if not any(word in ast.unparse(item.context_expr) for item in part.items for word in SWALLOWS):
                yield from _sites(method, part.body, here)
            elif len(part.items) == 1 and _asserts(part.items[0].context_expr) == "assertRaises":
                yield here, ([_with_context(part, other) for other in _raising(part.items[0].context_expr)], [])
        elif (isinstance(part, ast.For) and _is_certain(part)) or (isinstance(part, ast.Try) and not part.handlers):
            yield from _sites(method, part.body, here)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            natural, plain = _variants(part.value)
            yield here, ([ast.Expr(call) for call in natural], [ast.Expr(call) for call in plain])
        elif isinstance(part, ast.Assert):
            yield here, ([ast.Assert(test) for test in _compared_otherwise(part.test)], [ast.Assert(test) for test in _opposites(part.test)])
        elif isinstance(part, ast.Assign) and (value := _expected_otherwise(method, body[at + 1 :], part)):
            yield here, ([ast.Assign(part.targets, value, lineno=0)], [])
        if _may_leave([part]):
            return


def _may_leave(body: list[ast.stmt]) -> bool:
    """Whether what comes after these may not be reached, although the test passes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)) or (isinstance(node, ast.Attribute) and node.attr == "skipTest"):
            return True
        if not isinstance(node, OPAQUE):
            waiting += ast.iter_child_nodes(node)
    return False


def _is_certain(loop: ast.For) -> bool:
    """Whether a loop runs at least once."""
    return isinstance(loop.iter, (ast.List, ast.Tuple)) and any(not isinstance(item, ast.Starred) for item in loop.iter.elts)


def _expected_otherwise(method: ast.FunctionDef, after: list[ast.stmt], part: ast.Assign) -> ast.expr | None:
    """Another value for a name that serves as one side of one assertion, and for nothing else."""
    if len(part.targets) != 1 or not isinstance(part.targets[0], ast.Name):
        return None
    name = part.targets[0].id
    if len([node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == name]) != 2:
        return None
    for statement in after:
        call = statement.value if isinstance(statement, ast.Expr) else None
        compares = isinstance(call, ast.Call) and _asserts(call) in WRAPPED - {"assertAlmostEqual"}
        if compares and any(isinstance(side, ast.Name) and side.id == name for side in call.args[:2]):  # type: ignore[union-attr]
            return otherwise(part.value) or _wrapped(part.value)
        if _may_leave([statement]):
            return None
    return None


def _asserts(call: ast.expr) -> str:
    """The name of the assertion that this calls, or nothing."""
    name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    return name if name.startswith("assert") else ""


def _variants(call: ast.Call) -> tuple[list[ast.Call], list[ast.Call]]:
    name, natural, plain = _asserts(call), list[ast.Call](), list[ast.Call]()
    if name in WRAPPED and len(call.args) >= 2:
        literal = next((side for side in (1, 0) if _is_literal(call.args[side])), 1)
        if other := otherwise(call.args[literal], by=_margin(call)):
            natural.append(_with_argument(call, literal, other))
        plain += [_with_argument(call, side, _wrapped(call.args[side])) for side in (0, 1)]
    if name == "assertIsInstance" and len(call.args) >= 2 and (other := otherwise(call.args[1])):
        natural.append(_with_argument(call, 1, other))
    if name == "assertIn" and len(call.args) >= 2 and (other := otherwise(call.args[0], surely=True)):
        natural.append(_with_argument(call, 0, other))
    if name == "assertTrue" and call.args:
        natural += [_with_argument(call, 0, other) for other in _compared_otherwise(call.args[0])]
        plain += [_with_argument(call, 0, other) for other in _opposites(call.args[0])[1:]]
    if name == "assertRaises" and len(call.args) >= 2:
        natural += _raising(call)
    if name in CALLED_WITH:
        natural += [_with_argument(call, at, other) for at, given in enumerate(call.args) if _is_literal(given) and (other := otherwise(given))][:1]
        plain.append(ast.Call(call.func, [*call.args, ast.Constant(0), ast.Constant(0)], call.keywords))
    if name in OPPOSITE:
        assert isinstance(call.func, ast.Attribute)
        plain.append(ast.Call(ast.Attribute(call.func.value, OPPOSITE[name], ast.Load()), call.args, call.keywords))
    return natural, plain


def _margin(call: ast.Call) -> float | None:
    """Within which difference two numbers count as equal here; None where that is not written out."""
    if _asserts(call) != "assertAlmostEqual":
        return 0.0
    given = {keyword.arg: keyword.value for keyword in call.keywords} | dict(zip(("places", "msg", "delta"), call.args[2:], strict=False))
    try:
        delta, places = (ast.literal_eval(given.get(key, ast.Constant(None))) for key in ("delta", "places"))
        return 10.0 ** -float(7 if places is None else places) if delta is None else abs(float(delta))
    except (ValueError, TypeError, OverflowError):
        return None


def _compared_otherwise(test: ast.expr) -> list[ast.expr]:
    """A comparison with another value, false where this one is true."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        side = test.comparators[0]
        if other := otherwise(side):
            return [ast.Compare(test.left, test.ops, [other])]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In) and (other := otherwise(test.left, surely=True)):
        return [ast.Compare(other, test.ops, test.comparators)]
    if isinstance(test, ast.Call) and len(test.args) == 2 and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        return [ast.Call(test.func, [test.args[0], other], [])] if (other := otherwise(test.args[1])) else []
    if isinstance(test, ast.Call) and len(test.args) == 1 and isinstance(test.func, ast.Attribute):
        place, word = ast.unparse(test.func.value), test.func.attr
        if word in ("startswith", "endswith") and _is_literal(test.args[0]) and (other := otherwise(test.args[0])):
            return [ast.Call(test.func, [other], [])]
        if place == "os.path" and word in ("exists", "isfile", "isdir"):  # no text: it ends in an error, as no real solution does
            return [ast.Call(test.func, [otherwise(test.args[0], surely=True) or ast.BinOp(test.args[0], ast.Add(), ast.Constant("s"))], [])]
    return []


def _raising(call: ast.expr) -> list[ast.Call]:
    """The same with an exception that is none of those that are expected."""
    assert isinstance(call, ast.Call)
    wanted = ast.unparse(call.args[0]) if call.args else ""
    if not wanted.endswith(("Error", "Warning")):  # all exceptions, or several
        other = "StopAsyncIteration"
    else:
        other = "TypeError" if wanted in ("IndexError", "LookupError") else "IndexError"
    return [_with_argument(call, 0, ast.Name(other, ast.Load()))] if wanted else []


def _with_context(part: ast.With | ast.AsyncWith, context: ast.expr) -> ast.stmt:
    other = copy.copy(part)
    other.items = [ast.withitem(context, part.items[0].optional_vars)]
    return other


def _with_argument(call: ast.Call, at: int, by: ast.expr) -> ast.Call:
    return ast.Call(call.func, [by if number == at else given for number, given in enumerate(call.args)], call.keywords)


def _opposites(test: ast.expr) -> list[ast.expr]:
    """Expressions that are false where this is true; for an equality also with either side wrapped."""
    made: list[ast.expr] = [ast.UnaryOp(ast.Not(), test)]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        made += [ast.Compare(_wrapped(test.left), [ast.Eq()], test.comparators), ast.Compare(test.left, [ast.Eq()], [_wrapped(test.comparators[0])])]
    return made


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _wrapped(operand: ast.expr) -> ast.expr:
    return ast.List([operand], ast.Load())
