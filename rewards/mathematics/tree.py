"""The syntax tree of an answer, and numbers written with several signs. Nothing is evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

LARGEST_EXPONENT = 400  # of scientific notation
CONSTANTS = frozenset({"pi", "e", "i", "infty"})  # letters that are not variables
_KINDS = (
    "number symbol neg sum product quotient power root call factorial binomial abs floor ceil "
    "percent degree"
)
EXPRESSIONS = frozenset(_KINDS.split())  # kinds of nodes that have a value


class Unreadable(ValueError):
    """The text is not an answer in a supported notation."""


@dataclass(frozen=True)
class Node:
    """One element of what is written: its kind, its parts, and a name or a style as text.

    number: value; text = integer, decimal, fraction, unreduced, division (a fraction that is an
    integer), mixed or scientific.
    symbol, word, based (digits in a base): text. neg, sum, product, quotient, power, root
    (radicand, index), call (argument, base), factorial, binomial, abs, floor, ceil, percent,
    degree: expressions. quantity: an expression with its unit as text.
    list, set, tuple, interval (text = its brackets), union, intersection, difference, matrix (of
    rows), row, ratio: containers.
    relation: its sides, text = the signs between them. or: alternatives.
    """

    kind: str
    args: tuple[Node, ...] = ()
    text: str = ""
    value: Fraction | None = None


def walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.args:
        yield from walk(part)


def letters(node: Node) -> frozenset[str]:
    """Return the names of symbols and constants in a tree."""
    return frozenset(part.text for part in walk(node) if part.kind == "symbol")


def leaves(node: Node) -> Counter[str]:
    """Count each number, letter and function name in a tree.

    Signs, ones and the 2 of square roots are not counted.
    """
    if node.kind == "number" and not node.args:
        return Counter([f"{node.text} {abs(node.value or 0)}"] if node.value not in (1, -1) else ())
    if node.kind == "root" and node.args[1].value == 2:
        return leaves(node.args[0])
    name = (
        [node.text]
        if node.kind in ("symbol", "call")
        else [node.kind]
        if node.kind in ("percent", "factorial", "binomial")
        else []
    )
    return sum(map(leaves, node.args), Counter(name))


def closed(node: Node) -> bool:
    """Return whether the tree contains no variable."""
    return letters(node) <= CONSTANTS


def is_name(node: Node) -> bool:
    """Return whether the left side of an equation only names its right side.

    Examples: `x`, `AB`, `f(x)`, `(x, y)`.
    """
    if node.kind in ("product", "quotient", "tuple", "call", "ratio"):
        return all(is_name(part) for part in node.args)
    if node.kind == "abs":
        return node.args[0].kind == "product" and all(
            part.kind == "symbol" and part.text.isupper() for part in node.args[0].args
        )
    return node.kind == "symbol" and node.text not in ("pi", "infty")


def infinite(node: Node) -> bool:
    return node.text == "infty" or (node.kind == "neg" and infinite(node.args[0]))


def negative(node: Node) -> Node:
    if node.kind == "number" and node.value is not None and node.value >= 0:
        return Node("number", node.args, node.text, -node.value)
    return Node("neg", (node,))


def mixed(whole: Node, part: Node) -> Node:
    assert whole.value is not None and part.value is not None
    return Node("number", (whole, part), "mixed", whole.value + part.value)


def quotient(over: list[Node], under: list[Node]) -> Node:
    """Return a product over a product, or the single number that they write.

    A single number is a fraction of two integers, or scientific notation.
    """
    if (
        len(over) == len(under) == 1
        and over[0].text == under[0].text == "integer"
        and over[0].value is not None
        and under[0].value is not None
    ):
        value = Fraction(over[0].value, under[0].value)
        written = (over[0], under[0])
        style = (
            "division"
            if value.denominator == 1
            else "fraction"
            if value.denominator == abs(under[0].value)
            else "unreduced"
        )
        return Node("number", written, style, value)
    if not under and len(over) == 2 and (number := _scientific(*over)) is not None:
        return number
    product = over[0] if len(over) == 1 else Node("product", tuple(over))
    if not under:
        return product
    return Node(
        "quotient", (product, under[0] if len(under) == 1 else Node("product", tuple(under)))
    )


def _scientific(mantissa: Node, power: Node) -> Node | None:
    """Return `3.2 \\times 10^5` as one number; None for anything else."""
    if (
        power.kind != "power"
        or mantissa.value is None
        or not 1 <= abs(mantissa.value) < 10
        or mantissa.text not in ("integer", "decimal")
    ):
        return None
    base, exponent = power.args
    if (
        base.value != 10
        or exponent.value is None
        or exponent.text != "integer"
        or abs(exponent.value) > LARGEST_EXPONENT
    ):
        return None
    return Node(
        "number", text="scientific", value=mantissa.value * Fraction(10) ** int(exponent.value)
    )
