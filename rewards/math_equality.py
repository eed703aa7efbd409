"""Decide whether a final answer equals a reference answer.

An answer is accepted if the texts are the same, or if it means the same in an evaluated form that
is not copied from the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from rewards.math_form import evaluated
from rewards.math_intervals import part, pieces, variables
from rewards.math_reader import read
from rewards.math_text import LONGEST, clean, same_text
from rewards.math_tree import EXPRESSIONS, Node, Unreadable, closed, is_name, leaves, letters, walk
from rewards.math_value import equal, proportion

MOST_FORMULAS = 40  # most formulas of a question that are read
_THOUSANDS = re.compile(r"(-?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?)(?![\d,])(.*)")
_WORDS = re.compile(r"(\d[ )}]* )((?!or\b|and\b)[A-Za-z]{3,}(?: (?!or\b|and\b)[A-Za-z]+)*)$")
_TIME = re.compile(r"\d{1,2}:[0-5]\d")
_FORMULAS = re.compile(
    r"\$\$?(.+?)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]|(\d[\d.,/^*+()!%:-]*)", re.DOTALL
)


def accepted(right: str, given: str, statement: str = "", any_form: bool = False) -> bool:
    """Return whether the answer `given` matches the reference answer `right`.

    statement: text of the question; formulas copied from it do not count as answers.
    any_form: accept answers with operations left to carry out.
    """
    if (decided := same_text(right, given)) is not None:
        return decided
    return any(
        _matches(one, other, statement, any_form)
        for one in readings(right)
        for other in readings(given)
    )


def _matches(right: Node, given: Node, statement: str, any_form: bool) -> bool:
    """Compare one reading of each answer. False where a number is too large to evaluate."""
    with suppress(Unreadable):
        return same(right, given, any_form) and (any_form or not restated(right, given, statement))
    return False


def readings(text: str) -> Iterator[Node]:
    """Yield the possible readings of a text; nothing for a text that cannot be read.

    `1,234` can be a number or a list, `5 apples` a quantity or a product.
    """
    cleaned = clean(text)
    variants = [cleaned]
    if grouped := _THOUSANDS.fullmatch(cleaned):
        variants.append(re.sub("[, ]", "", grouped[1]) + grouped[2])
    variants += [
        _WORDS.sub(r"\1\\text{\2}", variant) for variant in variants if _WORDS.search(variant)
    ]
    for variant in reversed(variants):
        with suppress(Unreadable):
            yield read(variant)


def same(right: Node, given: Node, any_form: bool = False) -> bool:
    """Return whether two trees mean the same thing.

    Sets, tuples, intervals, ratios, words and numbers never equal one another.
    """

    def alike(one: Node, other: Node) -> bool:
        return same(one, other, any_form)

    if "quantity" in (right.kind, given.kind):
        return _units(right, given) and alike(_bare(right), _bare(given))
    if right.kind == given.kind == "relation":
        return _relations(right, given, alike, any_form)
    if given.kind == "relation" and _is_equation(given):
        return _chain(right, given.args[1:] if is_name(given.args[0]) else given.args, alike)
    if right.kind == "relation" and _is_equation(right):
        return is_name(right.args[0]) and alike(right.args[-1], given)
    if right.kind == given.kind == "interval":
        return right.text == given.text and _ordered(right.args, given.args, alike)
    if (one := pieces(right)) is not None and (other := part(given)) is not None:
        return _unordered(one, other, alike)
    if (
        (other := pieces(given)) is not None
        and given.kind != "interval"
        and (one := part(right)) is not None
        and right.kind != "tuple"
    ):
        return _unordered(one, other, alike)
    if right.kind in ("list", "set", "tuple") or given.kind in ("list", "set", "tuple"):
        return _sequences(right, given, alike)
    if right.kind == given.kind and right.kind in ("matrix", "row"):
        return _ordered(right.args, given.args, alike)
    if right.kind == given.kind == "ratio":
        return _ratios(right, given, any_form)
    if "based" in (right.kind, given.kind):
        return _digits(right) == _digits(given) != "" and (
            right.kind != given.kind or right.text == given.text
        )
    if "percent" in (right.kind, given.kind):
        return _percents(right, given, alike)
    if "degree" in (right.kind, given.kind):
        right, given = (node.args[0] if node.kind == "degree" else node for node in (right, given))
    if right.kind not in EXPRESSIONS or given.kind not in EXPRESSIONS:
        return False
    return (any_form or evaluated(right, given)) and equal(right, given)


def _chain(right: Node, sides: Sequence[Node], alike: Alike) -> bool:
    """Return whether all sides of an equation equal the reference, and one side is evaluated.

    Requiring all sides to be equal keeps an answer from listing several values to choose from.
    """
    return any(alike(right, side) for side in sides) and all(
        same(right, side, any_form=True) for side in sides
    )


Alike = Callable[[Node, Node], bool]


def _ordered(right: Sequence[Node], given: Sequence[Node], alike: Alike) -> bool:
    return len(right) == len(given) and all(
        alike(one, other) for one, other in zip(right, given, strict=True)
    )


def _unordered(right: Sequence[Node], given: Sequence[Node], alike: Alike) -> bool:
    """Return whether the items can be paired so that each pair is alike."""
    left = list(given)
    for one in right:
        found = next((at for at, other in enumerate(left) if alike(one, other)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _sequences(right: Node, given: Node, alike: Alike) -> bool:
    """Compare lists, sets and tuples.

    A list without brackets counts as a set or a tuple, whichever the other side is. Values with
    different names form a tuple.
    """
    if right.kind == "tuple" and given.kind == "matrix":
        given = _vector(given)
    if right.kind == "matrix" and given.kind == "tuple":
        right = _vector(right)
    if (right.kind == "set") != (given.kind == "set"):  # a set of one item equals that item
        right, given = (
            node.args[0] if node.kind == "set" and len(node.args) == 1 else node
            for node in (right, given)
        )
    named = right.kind == given.kind == "list" and all(
        _named(item) for node in (right, given) for item in node.args
    )
    if named and _unordered(right.args, given.args, alike):
        return True
    (kind, one), (other_kind, other) = _values(right), _values(given)
    if {kind, other_kind} == {"set", "tuple"}:
        return False
    if "tuple" in (kind, other_kind):
        return _ordered(one, other, alike)
    once = [
        value
        for at, value in enumerate(other)
        if not any(alike(value, before) for before in other[:at])
    ]
    return _unordered(one, other, alike) or _unordered(one, once, alike)


def _values(node: Node) -> tuple[str, tuple[Node, ...]]:
    """Return a sequence's kind (set, tuple or list) and its items without their names.

    A list may stand for a set or a tuple.
    """
    if node.kind != "list":
        return (node.kind, node.args) if node.kind in ("set", "tuple") else ("list", (node,))
    names = [canonical_name(item.args[0]) if _named(item) else "" for item in node.args]
    values = tuple(item.args[-1] if _named(item) else item for item in node.args)
    if len(set(names) - {""}) > 1:
        return "tuple", values
    return "list", values


def _vector(node: Node) -> Node:
    """Turn a matrix of one row or one column into a tuple."""
    if len(node.args) == 1:
        return Node("tuple", node.args[0].args)
    return (
        Node("tuple", tuple(row.args[0] for row in node.args))
        if all(len(row.args) == 1 for row in node.args)
        else node
    )


def canonical_name(node: Node) -> str:
    """Return the lower-case name of a variable or of a function of it.

    Returns "" for a longer name, on which nothing depends.
    """
    if node.kind == "call":
        return _shape(node)
    return node.text.lower() if node.kind == "symbol" and "(" not in node.text else ""


def _is_equation(node: Node) -> bool:
    return set(node.text.split()) <= {"=", "in"}


def _named(node: Node) -> bool:
    return node.kind == "relation" and node.text in ("=", "in") and is_name(node.args[0])


def _relations(right: Node, given: Node, alike: Alike, any_form: bool) -> bool:
    """Compare two relations.

    Equations with one name are compared by their values, equations in several variables up to a
    constant factor, and inequalities by their solution sets.
    """
    if _named(right) and _is_equation(given) and is_name(given.args[0]):
        names = canonical_name(right.args[0]), canonical_name(given.args[0])
        if names[0] == names[1] or "" in names:
            return _chain(right.args[-1], given.args[1:], alike)
    if (one := pieces(right)) is not None and (other := pieces(given)) is not None:
        return variables(right) == variables(given) and _unordered(one, other, alike)
    if (
        len(right.args) != 2
        or len(given.args) != 2
        or one is not None
        or (_named(right) and closed(right.args[1]))
    ):
        return False
    factor = proportion(_difference(right), _difference(given))
    if not factor or not (any_form or all(evaluated(_both(right), side) for side in given.args)):
        return False
    if "=" in (right.text, given.text) or "!=" in (right.text, given.text):
        return right.text == given.text
    return right.text == (
        given.text if factor > 0 else given.text.translate(str.maketrans("<>", "><"))
    )


def _both(relation: Node) -> Node:
    """Combine both sides into one expression, to collect its operations and letters."""
    return Node("call", relation.args, "sides")


def _ratios(right: Node, given: Node, any_form: bool) -> bool:
    """Compare ratios by value; a time of day must match term by term."""
    if len(right.args) != len(given.args) or not (
        any_form or all(map(evaluated, right.args, given.args))
    ):
        return False
    if _TIME.fullmatch(right.text):
        return all(map(equal, right.args, given.args))
    crossed = [
        (Node("product", (right.args[0], other)), Node("product", (given.args[0], one)))
        for one, other in zip(right.args[1:], given.args[1:], strict=True)
    ]
    return all(equal(one, other) for one, other in crossed)


def _digits(node: Node) -> str:
    """Return the digits of a numeral with a base, or of a plain integer."""
    return (
        node.text.partition("_")[0]
        if node.kind == "based"
        else str(node.value)
        if node.text == "integer"
        else ""
    )


def _percents(right: Node, given: Node, alike: Alike) -> bool:
    """Compare percentages: `28%` equals 28 percent, 28 where percent are asked for, or 0.28.

    A reference of 0.5 does not equal 50%.
    """
    if right.kind == given.kind:
        return alike(right.args[0], given.args[0])
    if right.kind == "percent":
        return alike(right.args[0], given) or (given.kind == "number" and equal(right, given))
    return right.value is not None and abs(right.value) >= 1 and alike(right, given.args[0])


def _bare(node: Node) -> Node:
    return node.args[0] if node.kind == "quantity" else node


def _units(right: Node, given: Node) -> bool:
    """Return whether the units agree, where both sides have one.

    `cm` agrees with `centimeters`; `cm` and `m` do not agree.
    """
    if right.kind != "quantity" or given.kind != "quantity":
        return True
    one, other = (
        re.sub(r"[^a-z0-9/]", "", node.text.lower().removesuffix("s")) for node in (right, given)
    )
    short, long = sorted((one, other), key=len)
    if short == long or len(short) > 3 or len(long) < 4:
        return short == long
    return short[0] == long[0] and re.search(".*".join(map(re.escape, short)), long) is not None


def _shape(node: Node) -> str:
    """Return a tree as text."""
    return f"{node.kind} {node.text} {node.value} ({', '.join(map(_shape, node.args))})"


def restated(right: Node, given: Node, statement: str) -> bool:
    """Return whether the answer only restates a form that the question gives.

    True if the question states the reference in another evaluated form, and the numbers and letters
    of the answer differ from those of the reference. Then the form is what was asked for: reduce
    `\\frac{84}{126}`, factor `x^2 - 5x + 6`, or turn 0.75 into a fraction.
    """
    if _named(given) and (_named(right) or right.kind != "relation"):
        given = given.args[-1]
    if _named(right) and given.kind != "relation":
        right = right.args[-1]
    if (
        given.text == "integer"
        or given.kind not in EXPRESSIONS | {"relation"}
        or leaves(given) == leaves(right)
    ):
        return False
    return any(
        leaves(stated) != leaves(right) and _equals(right, stated) for stated in formulas(statement)
    )


def formulas(statement: str) -> Iterator[Node]:
    """Yield all expressions and equations in a question, and their parts."""
    for found in islice(_FORMULAS.finditer(statement), MOST_FORMULAS):
        formula = next(filter(None, found.groups()))
        for tree in readings(formula) if len(formula) <= LONGEST else ():
            yield from walk(tree)


def _equals(right: Node, part: Node) -> bool:
    """Return whether a part of the question has the reference's value, or is the same equation."""
    if right.kind == part.kind == "relation":
        return right.text == part.text == "=" and bool(
            proportion(_difference(right), _difference(part))
        )
    if not {right.kind, part.kind} <= EXPRESSIONS or part.kind == "symbol":
        return False
    return (
        {name.lower() for name in letters(right)} == {name.lower() for name in letters(part)}
        and evaluated(right, part)
        and equal(right, part)
    )


def _difference(relation: Node) -> Node:
    return Node("sum", (relation.args[0], Node("neg", (relation.args[1],))))
