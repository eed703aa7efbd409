"""Make a text that a regular expression matches.

In: the source of the expression. Out: an example, or None where the source is not an expression or
has no special characters.
"""

from __future__ import annotations

import re
import warnings
from re import _constants as kind  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_SPECIAL = re.compile(r"[\\\[\](){}*+?|^$]")
_MEMBERS = {
    kind.CATEGORY_DIGIT: "7",
    kind.CATEGORY_SPACE: " ",
    kind.CATEGORY_WORD: "w",
    kind.CATEGORY_NOT_DIGIT: "w",
    kind.CATEGORY_NOT_SPACE: "w",
    kind.CATEGORY_NOT_WORD: "-",
}
_CANDIDATES = "w7 -_.\n"
_LONGEST = 500


def example(source: str) -> str | None:
    if not _SPECIAL.search(source):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(source)
        text = _text(tree, {})
    except (re.error, RecursionError, OverflowError):
        return None
    return text[:_LONGEST] if text != source else None


def _text(tree: Any, groups: dict[int, str]) -> str:
    return "".join(_one(op, argument, groups) for op, argument in tree)


def _one(op: Any, argument: Any, groups: dict[int, str]) -> str:
    if op is kind.LITERAL:
        return str(chr(argument))
    if op is kind.ANY:
        return "w"
    if op is kind.NOT_LITERAL:
        return next(c for c in _CANDIDATES if ord(c) != argument)
    if op is kind.IN:
        return _member(argument)
    if op is kind.BRANCH:
        return _text(argument[1][0], groups)
    if op is kind.SUBPATTERN:
        text = _text(argument[3], groups)
        groups[argument[0]] = text
        return text
    if op is kind.GROUPREF:
        return str(groups.get(argument, ""))
    if op in (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT):
        low, high, part = argument
        return _text(part, groups) * min(max(int(low), 1), int(high), _LONGEST)
    if op is kind.ATOMIC_GROUP:
        return _text(argument, groups)
    if op is kind.ASSERT and argument[0] > 0:
        return _text(argument[1], groups)
    return ""  # anchors and negations match no characters


def _member(argument: Any) -> str:
    if argument[0][0] is kind.NEGATE:
        return next(
            (c for c in _CANDIDATES if not any(_holds(member, c) for member in argument[1:])), "w"
        )
    op, value = argument[0]
    return str(
        chr(value)
        if op is kind.LITERAL
        else chr(value[0])
        if op is kind.RANGE
        else _MEMBERS.get(value, "w")
    )


def _holds(member: Any, c: str) -> bool:
    op, value = member
    if op is kind.LITERAL:
        return bool(ord(c) == value)
    return bool(value[0] <= ord(c) <= value[1]) if op is kind.RANGE else _MEMBERS.get(value) == c
