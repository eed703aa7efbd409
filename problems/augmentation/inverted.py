"""Invert a problem: negate a predicate, or reverse an order or an extreme.

Statement and solutions change, and the outputs are computed again. If the statement names the
results ("returns True if ..., else False"), these are swapped; otherwise a sentence is added that
inverts the result.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence

from artifacts.parsing import parse
from problems.augmentation.draft import Draft, change_prose, inputs_of, reason_outputs_fixed
from problems.schema import Problem
from problems.syntax import tree_of

INVERTED = (
    "The answer is turned around: it returns False where the above says yes, and True where it "
    "says no."
)
SWAP = {"True": "False", "False": "True"}
EXTREMES = (
    ("largest", "smallest"),
    ("greatest", "smallest"),
    ("highest", "lowest"),
    ("longest", "shortest"),
    ("maximum", "minimum"),
)
ORDERS = (
    ("ascending", "descending"),
    ("increasing", "decreasing"),
    ("smallest to largest", "largest to smallest"),
    ("small to large", "large to small"),
)


def mutate(problem: Problem, _: Sequence[Problem], __: random.Random) -> Draft | str:
    if why := reason_outputs_fixed(problem):
        return why
    if all(type(test["expected"]) is bool for test in problem.tests):
        return _negated(problem)
    for pairs, change in ((ORDERS, _other_order), (EXTREMES, _other_extreme)):
        if swapped := _swapped(problem.statement, pairs):
            return _draft(
                problem,
                swapped[0],
                [change(source) for source in problem.solutions],
                swapped[1],
                least=2,
            )
    return "neither a predicate nor a single order or extreme"


def _draft(
    problem: Problem, statement: str, solutions: Sequence[str | None], change: str, least: int = 1
) -> Draft | str:
    """Build the draft, or say why there is none.

    least: how many solutions must show the change. A single one may use `min` for something other
    than what the statement calls the smallest.
    """
    changed = tuple(source for source in solutions if source)
    if len(changed) < least:
        return "too few solutions in which it could be turned around for sure"
    return Draft(
        kind="inverted",
        parents=(problem,),
        statement=statement,
        entry_point=str(problem.entry_point),
        solutions=changed,
        tests=inputs_of(problem),
        starter_code=problem.starter_code,
        differs=True,
        change=change,
    )


def _negated(problem: Problem) -> Draft | str:
    results = re.findall(r"\b(?:True|False)\b", problem.statement)
    bools = any(type(value) is bool for test in problem.tests for value in test.get("args", ()))
    if results and not bools and len(set(results)) == len(results):
        statement = re.sub(r"\b(?:True|False)\b", lambda match: SWAP[match[0]], problem.statement)
    elif results:
        return "it says True or False in more than one place"
    else:
        statement = f"{problem.statement.rstrip()}\n{INVERTED}"
    return _draft(
        problem,
        statement,
        [_negation(source, str(problem.entry_point)) for source in problem.solutions],
        "True ↔ False",
    )


def _negation(source: str, entry: str) -> str | None:
    """Replace every `return x` of the function by `return not x`.

    Returns None if the function calls itself, or may end without a return.
    """
    tree = parse(source)
    node = next(
        (
            statement
            for statement in tree.body
            if isinstance(statement, ast.FunctionDef) and statement.name == entry
        ),
        None,
    )
    if (
        node is None
        or sum(isinstance(n, ast.Name) and n.id == entry for n in ast.walk(tree))
        or not isinstance(node.body[-1], (ast.Return, ast.If, ast.Try))
    ):
        return None
    returns: list[ast.Return] = []
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        if isinstance(inner, (ast.Yield, ast.YieldFrom)):
            return None
        if isinstance(inner, ast.Return):
            returns.append(inner)
        elif not isinstance(
            inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        ):
            pending.extend(ast.iter_child_nodes(inner))
    for statement in returns:
        statement.value = _opposite(statement.value)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


# < and >= are no opposites here: sets and NaN are not totally ordered.
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def _opposite(value: ast.expr | None) -> ast.expr:
    match value:
        case ast.Constant(value=bool(constant)):
            return ast.Constant(not constant)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.Call(ast.Name("bool", ast.Load()), [operand], [])
        case ast.Compare(left=left, ops=[op], comparators=comparators) if type(op) in OPPOSITES:
            return ast.Compare(left, [OPPOSITES[type(op)]()], comparators)
    return ast.UnaryOp(ast.Not(), value or ast.Constant(None))


def _swapped(statement: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Replace the one word of these pairs that the statement contains, if it occurs once.

    Returns the statement and the change, or None.
    """
    words = {word: other for one, two in pairs for word, other in ((one, two), (two, one))}
    words |= {"smallest": "largest"} if "smallest" in words else {}
    matches = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", statement, re.IGNORECASE))
    if len(matches) != 1:
        return None
    old, new = matches[0][0], words[matches[0][0].lower()]
    swapped = change_prose(
        statement,
        lambda prose: re.sub(rf"\b{old}\b", new.capitalize() if old[0].isupper() else new, prose),
    )
    return (swapped, f"{old} → {new}") if swapped != statement else None


def _other_order(source: str) -> str | None:
    return _change_only_call(source, lambda call: _call_name(call) in ("sorted", "sort"), _reverse)


def _other_extreme(source: str) -> str | None:
    return _change_only_call(
        source,
        lambda call: isinstance(call.func, ast.Name) and call.func.id in ("max", "min"),
        _swap,
    )


def _change_only_call(
    source: str, selects: Callable[[ast.Call], bool], change: Callable[[ast.Call], None]
) -> str | None:
    """Return the program with its only call of this kind changed, or None."""
    if (tree := tree_of(source)) is None:
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and selects(node)]
    mentions = sum(
        isinstance(node, ast.Name) and node.id in ("sorted", "max", "min", "reversed")
        for node in ast.walk(tree)
    )
    if len(calls) != 1 or mentions > 1:
        return None
    change(calls[0])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _call_name(call: ast.Call) -> str:
    return (
        call.func.id
        if isinstance(call.func, ast.Name)
        else call.func.attr
        if isinstance(call.func, ast.Attribute)
        else ""
    )


def _reverse(call: ast.Call) -> None:
    reverse = [keyword for keyword in call.keywords if keyword.arg == "reverse"]
    call.keywords = [keyword for keyword in call.keywords if keyword.arg != "reverse"]
    if not reverse:
        call.keywords.append(ast.keyword("reverse", ast.Constant(True)))
    elif not isinstance(reverse[0].value, ast.Constant):
        call.keywords.append(ast.keyword("reverse", ast.UnaryOp(ast.Not(), reverse[0].value)))
    elif not reverse[0].value.value:
        call.keywords.append(ast.keyword("reverse", ast.Constant(True)))


def _swap(call: ast.Call) -> None:
    assert isinstance(call.func, ast.Name)
    call.func.id = "min" if call.func.id == "max" else "max"
