"""Makes a plausible but wrong expected value.

A literal gets one part changed; the two are compared here, so that the result is certainly
different. A computed expression gets something added, if its form shows the type.
"""

from __future__ import annotations

import ast
import copy
import random
from typing import Any

SECRET = random.SystemRandom()  # no program can predict which part is changed, and by how much
STEPS = (1, 2, 3, -1, -2, 10)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TYPES = {
    "int": "str", "float": "str", "bool": "str", "str": "int", "bytes": "str", "list": "dict",
    "dict": "list", "tuple": "dict", "set": "list",
    "frozenset": "list", "complex": "str",
}  # fmt: skip
COUNTS = {"len", "int", "ord"}
# may be infinite, or so large that adding 1 changes nothing
NUMBERS = {"float", "round", "sum", "abs"}
LISTS = {"sorted", "list"}


def otherwise(value: ast.expr, *, by: float | None = 0.0, surely: bool = False) -> ast.expr | None:
    """Return an expression that is unequal to this one, or None if none is known.

    by: the margin within which numbers count as equal; None if it is unknown.
    surely: the result must not occur where this value occurred, in a text or a list; it is
        therefore very different.
    """
    try:
        before = ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None if surely or by != 0.0 else _computed(value)
    if by is None:
        return None
    changed = _far(before) if surely else _changed(copy.deepcopy(value), by)
    return changed if changed and ast.literal_eval(changed) != before else None


def other_type(value: ast.expr) -> ast.expr | None:
    """Return a type that has no instances in common with this one, if this is a plain type."""
    return (
        ast.Name(TYPES[value.id], ast.Load())
        if isinstance(value, ast.Name) and value.id in TYPES
        else None
    )


def _far(value: Any) -> ast.expr | None:
    if isinstance(value, str):
        return ast.Constant(_text(value, 3) if sum(map(str.isalnum, value)) > 4 else value + "qj")
    return (
        ast.Constant(value + 10**9 + 7)
        if isinstance(value, int) and not isinstance(value, bool)
        else None
    )


def _changed(value: ast.expr, by: float) -> ast.expr | None:
    """Return this literal with one part changed, in place or as a new node."""
    if isinstance(value, ast.Constant):
        return ast.Constant(_other(value.value, by))
    if isinstance(value, ast.UnaryOp):
        return ast.UnaryOp(value.op, changed) if (changed := _changed(value.operand, by)) else None
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        parts = value.elts
    elif isinstance(value, ast.Dict):
        parts = value.values
        if not parts:
            return ast.Dict([ast.Constant("a")], [ast.Constant(1)])
    else:
        return None
    if not parts:
        parts.append(ast.Constant(1))
        return value
    at = SECRET.randrange(len(parts))
    if (changed := _changed(parts[at], by)) is None:
        return None
    parts[at] = changed
    return value


def _other(value: Any, by: float) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + (1 + int(2 * by)) * SECRET.choice(STEPS if value > 9 else STEPS[:3])
    if isinstance(value, (float, complex)):
        return value + (1 + (2 * by if by > 0.1 else 0)) * SECRET.choice(STEPS)
    if isinstance(value, str):
        return _text(value, 1)
    if isinstance(value, bytes):
        return value + b"a"
    return 0 if value is None else None


def _text(value: str, changes: int) -> str:
    """Change this many letters or digits, chosen at random, to their neighbours."""
    places = [at for at, letter in enumerate(value) if letter.isascii() and letter.isalnum()]
    if not places:
        return value + "a"
    letters = list(value)
    for at in SECRET.sample(places, min(changes, len(places))):
        letters[at] = _neighbour(letters[at])
    return "".join(letters)


def _neighbour(letter: str) -> str:
    if letter.isdigit():
        return str((int(letter) + 1) % 10)
    other = LETTERS[(LETTERS.index(letter.lower()) + 1) % 26]
    return other.upper() if letter.isupper() else other


def _computed(value: ast.expr) -> ast.expr | None:
    if isinstance(value, ast.Name):
        return other_type(value)
    if (
        isinstance(value, (ast.List, ast.Tuple))
        and value.elts
        and not any(isinstance(part, ast.Starred) for part in value.elts)
    ):
        return type(value)(value.elts[:-1], ast.Load())
    if (
        isinstance(value, ast.Dict)
        and len({ast.unparse(key) for key in value.keys if isinstance(key, ast.Constant)})
        == len(value.keys)
        > 0
    ):
        return ast.Dict(value.keys[:-1], value.values[:-1])
    if isinstance(value, ast.JoinedStr):
        return ast.JoinedStr([*value.values, ast.Constant("s")])
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    if name in COUNTS:
        return ast.BinOp(value, ast.Add(), ast.Constant(1))
    if name in NUMBERS:  # the only number left unchanged has infinitely many digits
        return ast.BinOp(
            ast.BinOp(value, ast.Mult(), ast.Constant(-3.3)), ast.Sub(), ast.Constant(1.7)
        )
    if name in LISTS or isinstance(value, ast.ListComp):
        return ast.BinOp(value, ast.Add(), ast.List([ast.Constant(1)], ast.Load()))
    if name == "str":
        return ast.BinOp(value, ast.Add(), ast.Constant("s"))
    return None
