"""Decide whether a final answer equals a reference answer.

An answer is accepted if the texts are the same, or if it means the same in an evaluated form that
is not copied from the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from rewards.mathematics.form import evaluated
from rewards.mathematics.intervals import part, pieces, variables
from rewards.mathematics.reader import read
from rewards.mathematics.text import LONGEST, clean, same_text
from rewards.mathematics.tree import (
    EXPRESSIONS,
    Node,
    Unreadable,
    closed,
    is_name,
    leaves,
    letters,
    walk,
)
from rewards.mathematics.value import equal, proportion

MAX_FORMULAS = 40  # most formulas of a question that are read
_THOUSANDS = re.compile(r"(-?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?)(?![\d,])(.*)")
_WORDS = re.compile(r"(\d[ )}]* )((?!or\b|and\b)[A-Za-z]{3,}(?: (?!or\b|and\b)[A-Za-z]+)*)$")
_TIME = re.compile(r"\d{1,2}:[0-5]\d")
_FORMULAS = re.compile(
    r"\$\$?(.+?)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]|(\d[\d.,/^*+()!%:-]*)", re.DOTALL
)


def accepted(reference: str, answer: str, statement: str = "", any_form: bool = False) -> bool:
    """Return whether the answer matches the reference answer.

    statement: text of the question; formulas copied from it do not count as answers.
    any_form: accept answers with operations left to carry out.
    """
    if (decided := same_text(reference, answer)) is not None:
        return decided
    return any(
        _matches(one, other, statement, any_form)
        for one in readings(reference)
        for other in readings(answer)
    )


def _matches(reference: Node, answer: Node, statement: str, any_form: bool) -> bool:
    """Compare one reading of each answer. False where a number is too large to evaluate."""
    with suppress(Unreadable):
        return same(reference, answer, any_form) and (
            any_form or not restated(reference, answer, statement)
        )
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


def same(reference: Node, answer: Node, any_form: bool = False) -> bool:
    """Return whether two trees mean the same thing.

    Sets, tuples, intervals, ratios, words and numbers never equal one another.
    """

    def alike(one: Node, other: Node) -> bool:
        return same(one, other, any_form)

    if "quantity" in (reference.kind, answer.kind):
        return _units(reference, answer) and alike(_bare(reference), _bare(answer))
    if reference.kind == answer.kind == "relation":
        return _relations(reference, answer, alike, any_form)
    if answer.kind == "relation" and _is_equation(answer):
        return _chain(reference, answer.args[1:] if is_name(answer.args[0]) else answer.args, alike)
    if reference.kind == "relation" and _is_equation(reference):
        return is_name(reference.args[0]) and alike(reference.args[-1], answer)
    if reference.kind == answer.kind == "interval":
        return reference.text == answer.text and _ordered(reference.args, answer.args, alike)
    if (one := pieces(reference)) is not None and (other := part(answer)) is not None:
        return _unordered(one, other, alike)
    if (
        (other := pieces(answer)) is not None
        and answer.kind != "interval"
        and (one := part(reference)) is not None
        and reference.kind != "tuple"
    ):
        return _unordered(one, other, alike)
    if reference.kind in ("list", "set", "tuple") or answer.kind in ("list", "set", "tuple"):
        return _sequences(reference, answer, alike)
    if reference.kind == answer.kind and reference.kind in ("matrix", "row"):
        return _ordered(reference.args, answer.args, alike)
    if reference.kind == answer.kind == "ratio":
        return _ratios(reference, answer, any_form)
    if "based" in (reference.kind, answer.kind):
        return _digits(reference) == _digits(answer) != "" and (
            reference.kind != answer.kind or reference.text == answer.text
        )
    if "percent" in (reference.kind, answer.kind):
        return _percents(reference, answer, alike)
    if "degree" in (reference.kind, answer.kind):
        reference, answer = (
            node.args[0] if node.kind == "degree" else node for node in (reference, answer)
        )
    if reference.kind not in EXPRESSIONS or answer.kind not in EXPRESSIONS:
        return False
    return (any_form or evaluated(reference, answer)) and equal(reference, answer)


def _chain(reference: Node, sides: Sequence[Node], alike: Alike) -> bool:
    """Return whether all sides of an equation equal the reference, and one side is evaluated.

    Requiring all sides to be equal keeps an answer from listing several values to choose from.
    """
    return any(alike(reference, side) for side in sides) and all(
        same(reference, side, any_form=True) for side in sides
    )


Alike = Callable[[Node, Node], bool]


def _ordered(reference: Sequence[Node], answer: Sequence[Node], alike: Alike) -> bool:
    return len(reference) == len(answer) and all(
        alike(one, other) for one, other in zip(reference, answer, strict=True)
    )


def _unordered(reference: Sequence[Node], answer: Sequence[Node], alike: Alike) -> bool:
    """Return whether the items can be paired so that each pair is alike."""
    remaining = list(answer)
    for one in reference:
        index = next((at for at, other in enumerate(remaining) if alike(one, other)), None)
        if index is None:
            return False
        del remaining[index]
    return not remaining


def _sequences(reference: Node, answer: Node, alike: Alike) -> bool:
    """Compare lists, sets and tuples.

    A list without brackets counts as a set or a tuple, whichever the other side is. Values with
    different names form a tuple.
    """
    if reference.kind == "tuple" and answer.kind == "matrix":
        answer = _vector(answer)
    if reference.kind == "matrix" and answer.kind == "tuple":
        reference = _vector(reference)
    if (reference.kind == "set") != (answer.kind == "set"):  # a set of one item equals that item
        reference, answer = (
            node.args[0] if node.kind == "set" and len(node.args) == 1 else node
            for node in (reference, answer)
        )
    named = reference.kind == answer.kind == "list" and all(
        _named(item) for node in (reference, answer) for item in node.args
    )
    if named and _unordered(reference.args, answer.args, alike):
        return True
    (kind, one), (other_kind, other) = _values(reference), _values(answer)
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


def _relations(reference: Node, answer: Node, alike: Alike, any_form: bool) -> bool:
    """Compare two relations.

    Equations with one name are compared by their values, equations in several variables up to a
    constant factor, and inequalities by their solution sets.
    """
    if _named(reference) and _is_equation(answer) and is_name(answer.args[0]):
        names = canonical_name(reference.args[0]), canonical_name(answer.args[0])
        if names[0] == names[1] or "" in names:
            return _chain(reference.args[-1], answer.args[1:], alike)
    if (one := pieces(reference)) is not None and (other := pieces(answer)) is not None:
        return variables(reference) == variables(answer) and _unordered(one, other, alike)
    if (
        len(reference.args) != 2
        or len(answer.args) != 2
        or one is not None
        or (_named(reference) and closed(reference.args[1]))
    ):
        return False
    factor = proportion(_difference(reference), _difference(answer))
    if not factor or not (
        any_form or all(evaluated(_both(reference), side) for side in answer.args)
    ):
        return False
    if "=" in (reference.text, answer.text) or "!=" in (reference.text, answer.text):
        return reference.text == answer.text
    return reference.text == (
        answer.text if factor > 0 else answer.text.translate(str.maketrans("<>", "><"))
    )


def _both(relation: Node) -> Node:
    """Combine both sides into one expression, to collect its operations and letters."""
    return Node("call", relation.args, "sides")


def _ratios(reference: Node, answer: Node, any_form: bool) -> bool:
    """Compare ratios by value; a time of day must match term by term."""
    if len(reference.args) != len(answer.args) or not (
        any_form or all(map(evaluated, reference.args, answer.args))
    ):
        return False
    if _TIME.fullmatch(reference.text):
        return all(map(equal, reference.args, answer.args))
    crossed = [
        (Node("product", (reference.args[0], other)), Node("product", (answer.args[0], one)))
        for one, other in zip(reference.args[1:], answer.args[1:], strict=True)
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


def _percents(reference: Node, answer: Node, alike: Alike) -> bool:
    """Compare percentages: `28%` equals 28 percent, 28 where percent are asked for, or 0.28.

    A reference of 0.5 does not equal 50%.
    """
    if reference.kind == answer.kind:
        return alike(reference.args[0], answer.args[0])
    if reference.kind == "percent":
        return alike(reference.args[0], answer) or (
            answer.kind == "number" and equal(reference, answer)
        )
    return (
        reference.value is not None
        and abs(reference.value) >= 1
        and alike(reference, answer.args[0])
    )


def _bare(node: Node) -> Node:
    return node.args[0] if node.kind == "quantity" else node


def _units(reference: Node, answer: Node) -> bool:
    """Return whether the units agree, where both sides have one.

    `cm` agrees with `centimeters`; `cm` and `m` do not agree.
    """
    if reference.kind != "quantity" or answer.kind != "quantity":
        return True
    one, other = (
        re.sub(r"[^a-z0-9/]", "", node.text.lower().removesuffix("s"))
        for node in (reference, answer)
    )
    short, long = sorted((one, other), key=len)
    if short == long or len(short) > 3 or len(long) < 4:
        return short == long
    return short[0] == long[0] and re.search(".*".join(map(re.escape, short)), long) is not None


def _shape(node: Node) -> str:
    """Return a tree as text."""
    return f"{node.kind} {node.text} {node.value} ({', '.join(map(_shape, node.args))})"


def restated(reference: Node, answer: Node, statement: str) -> bool:
    """Return whether the answer only restates a form that the question gives.

    True if the question states the reference in another evaluated form, and the numbers and letters
    of the answer differ from those of the reference. Then the form is what was asked for: reduce
    `\\frac{84}{126}`, factor `x^2 - 5x + 6`, or turn 0.75 into a fraction.
    """
    if _named(answer) and (_named(reference) or reference.kind != "relation"):
        answer = answer.args[-1]
    if _named(reference) and answer.kind != "relation":
        reference = reference.args[-1]
    if (
        answer.text == "integer"
        or answer.kind not in EXPRESSIONS | {"relation"}
        or leaves(answer) == leaves(reference)
    ):
        return False
    return any(
        leaves(stated) != leaves(reference) and _equals(reference, stated)
        for stated in formulas(statement)
    )


def formulas(statement: str) -> Iterator[Node]:
    """Yield all expressions and equations in a question, and their parts."""
    for match in islice(_FORMULAS.finditer(statement), MAX_FORMULAS):
        formula = next(filter(None, match.groups()))
        for tree in readings(formula) if len(formula) <= LONGEST else ():
            yield from walk(tree)


def _equals(reference: Node, part: Node) -> bool:
    """Return whether a part of the question has the reference's value, or is the same equation."""
    if reference.kind == part.kind == "relation":
        return reference.text == part.text == "=" and bool(
            proportion(_difference(reference), _difference(part))
        )
    if not {reference.kind, part.kind} <= EXPRESSIONS or part.kind == "symbol":
        return False
    return (
        {name.lower() for name in letters(reference)} == {name.lower() for name in letters(part)}
        and evaluated(reference, part)
        and equal(reference, part)
    )


def _difference(relation: Node) -> Node:
    return Node("sum", (relation.args[0], Node("neg", (relation.args[1],))))
