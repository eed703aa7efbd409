"""Turns an assertion of a unittest into a question to the program's process and an assertion about
the answer, which a judge decides.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from sandbox.decoys.expressions import answer_name, is_type, opened_expression
from sandbox.decoys.purity import COMPREHENSIONS, Known
from sandbox.decoys.variants import asserts

COMPARING = {
    "assertEqual", "assertEquals", "assertNotEqual", "assertDictEqual", "assertListEqual",
    "assertTupleEqual", "assertSetEqual", "assertCountEqual",
    "assertSequenceEqual", "assertMultiLineEqual", "assertIn", "assertNotIn", "assertGreater",
    "assertGreaterEqual", "assertLess", "assertLessEqual",
    "assertRegex", "assertNotRegex", "assertAlmostEqual", "assertNotAlmostEqual",
    "assertAlmostEquals",
}  # fmt: skip
# which most values pass
LOOSE = {
    "assertNotEqual", "assertNotIn", "assertGreater", "assertGreaterEqual", "assertLess",
    "assertLessEqual", "assertNotRegex", "assertNotAlmostEqual",
}  # fmt: skip
NARROW = ("startswith", "endswith", "match", "fullmatch", "search")
# their third argument is not a message
CLOSE = {"assertAlmostEqual", "assertNotAlmostEqual", "assertAlmostEquals"}
# assertion about whether the answer is None
ALONE = {"assertIsNone": "assertTrue", "assertIsNotNone": "assertFalse"}
CALLED = {
    "assert_called_once_with": "assertEqual",
    "assert_called_with": "assertEqual",
    "assert_any_call": "assertIn",
}
COUNTED = {
    "assert_called": "assertGreaterEqual",
    "assert_called_once": "assertEqual",
    "assert_not_called": "assertEqual",
}


class Question(NamedTuple):
    """A question and its check.

    doing: statements that ask.
    checks: statements about the answers.
    hides: whether `checks` contains a value that `doing` does not show.
    """

    doing: list[ast.stmt]
    checks: list[ast.stmt]
    hides: bool


def of_statement(part: ast.Expr | ast.Assert | ast.For, known: Known) -> Question | None:
    """Convert a statement. Returns None if it has no assertion that can be extracted."""
    if isinstance(part, ast.For):
        return None if known.pure(part.iter) else _of_rows(part, known)
    if isinstance(part, ast.Assert):
        return _of_truth(part.test, "assertTrue", known)
    call = part.value
    name = asserts(call)
    if (
        not isinstance(call, ast.Call)
        or not name
        or any(isinstance(argument, ast.Starred) for argument in call.args)
    ):
        return None
    if name in CALLED or name in COUNTED:
        return _of_mock(call, name, known)
    if not _is_itself(call, known):
        return None
    if name in ("assertTrue", "assertFalse") and call.args:
        return _of_truth(call.args[0], name, known)
    if name in ALONE and call.args:
        # Only the comparison is sent: the value itself may not be plain data.
        is_none = ast.Compare(call.args[0], [ast.Is()], [ast.Constant(None)])
        return (
            None
            if known.pure(call.args[0])
            else Question([_sent(is_none)], [_check(ALONE[name], [_next_answer()], known)], False)
        )
    if (
        name == "assertIsInstance"
        and len(call.args) >= 2
        and not known.pure(call.args[0])
        and _is_class(call.args[1], known)
    ):
        return Question(
            [_sent(ast.Call(ast.Name("_kinds", ast.Load()), [call.args[0]], []))],
            [_is_one_of(call.args[1])],
            False,
        )
    if (
        name in ("assertIs", "assertIsNot")
        and len(call.args) >= 2
        and isinstance(call.args[1], ast.Constant)
        and not known.pure(call.args[0])
    ):
        return Question(
            [_sent(call.args[0])],
            [_check(name, [_next_answer(), call.args[1]], known)],
            call.args[1].value not in (None, True, False),
        )
    if name == "assertRaises" and len(call.args) >= 2:
        return _of_raising_call(call, known)
    return _of_comparison(call, name, known) if name in COMPARING and len(call.args) >= 2 else None


def of_raising(part: ast.With, known: Known) -> Question | None:
    """Convert `with self.assertRaises(kind): ...`: the answer is what is raised there."""
    call = part.items[0].context_expr
    assert isinstance(call, ast.Call)
    inside = any(
        asserts(node) for node in ast.walk(ast.Module(part.body, [])) if isinstance(node, ast.Call)
    )
    if len(call.args) != 1 or not known.pure(call.args[0]) or inside:
        return None
    context = ast.withitem(
        ast.Call(ast.Name("_raising", ast.Load()), [], []), part.items[0].optional_vars
    )
    return Question([ast.With([context], part.body, lineno=0)], [_is_one_of(call.args[0])], False)


def _of_raising_call(call: ast.Call, known: Known) -> Question | None:
    if not known.pure(call.args[0]):
        return None
    context = ast.withitem(ast.Call(ast.Name("_raising", ast.Load()), [], []), None)
    body = ast.Expr(ast.Call(call.args[1], call.args[2:], call.keywords))
    return Question([ast.With([context], [body], lineno=0)], [_is_one_of(call.args[0])], False)


def _is_one_of(kind: ast.expr) -> ast.stmt:
    """Make a check of classes. The answer has the class names of a value or an exception; they are
    compared with the names of the expected classes.
    """
    return ast.Expr(ast.Call(ast.Name("_check_kind", ast.Load()), [_next_answer(), kind], []))


def _of_comparison(call: ast.Call, name: str, known: Known) -> Question | None:
    sides, more = call.args[:2], call.args[2:] if name in CLOSE else []
    keywords = [keyword for keyword in call.keywords if keyword.arg in ("places", "delta")]
    if not all(map(known.pure, (*more, *(keyword.value for keyword in keywords)))):
        return None
    sent = [not known.pure(side) or known.may_differ(side) for side in sides]
    if not any(sent):  # the assertion is about something that the program may have changed
        sent = [
            any(
                isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in known.lent
                for node in ast.walk(side)
            )
            for side in sides
        ]
    if sent.count(True) != 1:
        return None
    at = sent.index(True)
    operands = [_next_answer() if side == at else sides[side] for side in (0, 1)]
    # A container that contains everything would pass.
    anything = name in LOOSE or (name == "assertIn" and at == 1)
    return Question(
        [_sent(sides[at])],
        [_check(name, [*operands, *more], known, keywords)],
        not anything and not known.is_bare(sides[1 - at]),
    )


def _of_truth(test: ast.expr, name: str, known: Known) -> Question | None:
    if known.pure(test):
        return None
    leaves: list[ast.expr] = []
    opened = opened_expression(test, known, frozenset(), leaves)
    if opened is None or _is_answer(opened):  # only the truth of the expression can be sent
        return Question(
            [_sent(ast.Call(ast.Name("bool", ast.Load()), [test], []))],
            [_check(name, [_next_answer()], known)],
            False,
        )
    assignments: list[ast.stmt] = [
        ast.Assign([ast.Name(answer_name(at), ast.Store())], _next_answer(), lineno=0)
        for at in range(len(leaves))
    ]
    return Question(
        [_sent(leaf) for leaf in leaves],
        [*assignments, _check(name, [opened], known)],
        name == "assertTrue" and _is_narrow(opened),
    )


def _of_rows(loop: ast.For, known: Known) -> Question | None:
    """Convert a loop over a value of the program that only asserts things about its elements: the
    elements are sent, and the judge runs the loop.
    """
    targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    inside = known.with_names(targets)
    for part in loop.body:
        call = part.value if isinstance(part, ast.Expr) else None
        if (
            not isinstance(call, ast.Call)
            or not asserts(call)
            or not _is_itself(call, known)
            or loop.orelse
        ):
            return None
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not all(inside.pure(value) for value in values) or asserts(call) == "assertRaises":
            return None
    sent = _sent(ast.List([ast.Starred(loop.iter, ast.Load())], ast.Load()))
    return Question([sent], [ast.For(loop.target, _next_answer(), loop.body, [], lineno=0)], False)


def _of_mock(call: ast.Call, name: str, known: Known) -> Question | None:
    assert isinstance(call.func, ast.Attribute)
    mock = call.func.value
    if name in COUNTED:
        sent = _sent(ast.Attribute(mock, "call_count", ast.Load()))
        return Question(
            [sent],
            [
                _check(
                    COUNTED[name],
                    [_next_answer(), ast.Constant(int(name != "assert_not_called"))],
                    known,
                )
            ],
            False,
        )
    if any(keyword.arg is None for keyword in call.keywords) or not all(
        map(known.pure, (*call.args, *call.keywords))
    ):
        return None
    calls = ast.parse(
        f"[[list(_c.args), dict(_c.kwargs)] for _c in {ast.unparse(mock)}.call_args_list]",
        mode="eval",
    ).body
    keywords = ast.Dict(
        [ast.Constant(keyword.arg) for keyword in call.keywords],
        [keyword.value for keyword in call.keywords],
    )
    expected: ast.expr = ast.List([ast.List(list(call.args), ast.Load()), keywords], ast.Load())
    answer: ast.expr = _next_answer()
    if name != "assert_any_call":
        expected = ast.List([expected], ast.Load())
    if name == "assert_called_with":
        answer = ast.Subscript(answer, ast.Slice(ast.Constant(-1), None, None), ast.Load())
    return Question(
        [_sent(calls)],
        [_check(CALLED[name], [expected, answer], known)],
        bool(call.args or call.keywords),
    )


def _is_itself(call: ast.Call, known: Known) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in known.owners


def _is_class(kind: ast.expr, known: Known) -> bool:
    """Whether this is a class, or a tuple of classes, whose instances are identified by the class
    name alone.
    """
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(
        is_type(part)
        or known.path(part).rpartition(".")[0]
        in ("collections", "datetime", "decimal", "fractions")
        for part in kinds
    )


def _is_narrow(test: ast.expr) -> bool:
    """Whether few values make this true: an equality or similar, but not one about each element of
    a value that may be empty.
    """
    if isinstance(test, COMPREHENSIONS) or (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    ):
        return False
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq) or (
            isinstance(test.ops[0], ast.In) and _is_answer(test.left)
        )
    if (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Attribute)
        and test.func.attr in NARROW
    ):
        return True
    return any(
        _is_narrow(part) for part in ast.iter_child_nodes(test) if isinstance(part, ast.expr)
    )


def _is_answer(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Name) and node.id.startswith(answer_name(""))


def _sent(value: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name("_told", ast.Load()), [value], []))


def _next_answer() -> ast.expr:
    return ast.Call(ast.Name("_asked", ast.Load()), [], [])


def _check(
    name: str, args: list[ast.expr], known: Known, keywords: list[ast.keyword] | None = None
) -> ast.stmt:
    return ast.Expr(
        ast.Call(
            ast.Attribute(ast.Name(known.itself, ast.Load()), name, ast.Load()),
            args,
            keywords or [],
        )
    )
