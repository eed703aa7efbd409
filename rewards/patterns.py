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
        made = _text(tree, {})
    except (re.error, RecursionError, OverflowError):
        return None
    return made[:_LONGEST] if made != source else None


def _text(tree: Any, groups: dict[int, str]) -> str:
    return "".join(_one(op, given, groups) for op, given in tree)


def _one(op: Any, given: Any, groups: dict[int, str]) -> str:
    if op is kind.LITERAL:
        return str(chr(given))
    if op is kind.ANY:
        return "w"
    if op is kind.NOT_LITERAL:
        return next(c for c in _CANDIDATES if ord(c) != given)
    if op is kind.IN:
        return _member(given)
    if op is kind.BRANCH:
        return _text(given[1][0], groups)
    if op is kind.SUBPATTERN:
        made = _text(given[3], groups)
        groups[given[0]] = made
        return made
    if op is kind.GROUPREF:
        return str(groups.get(given, ""))
    if op in (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT):
        low, high, part = given
        return _text(part, groups) * min(max(int(low), 1), int(high), _LONGEST)
    if op is kind.ATOMIC_GROUP:
        return _text(given, groups)
    if op is kind.ASSERT and given[0] > 0:
        return _text(given[1], groups)
    return ""  # anchors and negations match no characters


def _member(given: Any) -> str:
    if given[0][0] is kind.NEGATE:
        return next((c for c in _CANDIDATES if not any(_holds(one, c) for one in given[1:])), "w")
    op, value = given[0]
    return str(
        chr(value)
        if op is kind.LITERAL
        else chr(value[0])
        if op is kind.RANGE
        else _MEMBERS.get(value, "w")
    )


def _holds(one: Any, c: str) -> bool:
    op, value = one
    if op is kind.LITERAL:
        return bool(ord(c) == value)
    return bool(value[0] <= ord(c) <= value[1]) if op is kind.RANGE else _MEMBERS.get(value) == c
