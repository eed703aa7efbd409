"""Compare unions of intervals and solution sets of inequalities, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rewards.mathematics.tree import CONSTANTS, Node, closed, is_name, letters


def pieces(node: Node) -> list[Node] | None:
    """Return the intervals and points of a union or a solved inequality; None for anything else."""
    if node.kind == "interval":
        return [node]
    if node.kind == "union" and sum(side.kind == "set" for side in node.args) > 1:
        return None  # not yet united
    if node.kind in ("union", "or"):
        parts = [part(side) for side in node.args]
        return [piece for part in parts for piece in part or ()] if all(parts) else None
    if node.kind == "symbol" and node.text == "mathbb R":
        return [_between("()", -1, 1)]
    if node.kind == "difference" and node.args[1].kind == "set":
        whole = part(node.args[0])
        return _without(whole[0], node.args[1].args) if whole and len(whole) == 1 else None
    if node.kind == "relation":
        return _solved(node)
    return None


def part(node: Node) -> list[Node] | None:
    """Return the pieces of a part of a union.

    There `(1, 2)` is an interval, and `{1, 2}` are points.
    """
    if node.kind == "tuple" and len(node.args) == 2:
        return [Node("interval", node.args, "()")]
    return [Node("set", (point,)) for point in node.args] if node.kind == "set" else pieces(node)


def _between(brackets: str, low: Node | int, high: Node | int) -> Node:
    """Return an interval; -1 and 1 stand for the infinities."""
    infinite = {1: Node("symbol", text="infty"), -1: Node("neg", (Node("symbol", text="infty"),))}
    return Node(
        "interval",
        tuple(infinite[end] if isinstance(end, int) else end for end in (low, high)),
        brackets,
    )


def _without(whole: Node, points: Sequence[Node]) -> list[Node] | None:
    """Return an interval without some numbers inside it."""
    if whole.kind != "interval" or not all(point.value is not None for point in points):
        return None
    low, high = whole.args
    inside = sorted(points, key=lambda point: point.value or 0)
    ends = [low, *inside, high]
    values = [end.value for end in ends if end.value is not None]
    if any(one >= other for one, other in pairwise(values)):
        return None
    brackets = [whole.text[0] + ")", *["()"] * (len(inside) - 1), "(" + whole.text[1]]
    return [
        Node("interval", pair, shape) for pair, shape in zip(pairwise(ends), brackets, strict=True)
    ]


def _solved(node: Node) -> list[Node] | None:
    """Return the solution set of an inequality such as `x <= 3`, `1 < x <= 2` or `x != 2`.

    None where no single variable stands alone between constants.
    """
    signs, sides = node.text.split(), list(node.args)
    if signs == ["in"] and sides[0].kind == "symbol":
        return part(sides[1])
    at = next((at for at, side in enumerate(sides) if is_name(side) and not closed(side)), None)
    if (
        at is None
        or not all(closed(side) for side in sides[:at] + sides[at + 1 :])
        or len(sides) > 3
        or (len(sides) == 3 and at != 1)
    ):
        return None
    if signs == ["!="]:
        return _without(_between("()", -1, 1), [sides[1 - at]])
    if all(sign[0] == ">" for sign in signs):
        sides, signs, at = (
            sides[::-1],
            [sign.replace(">", "<") for sign in signs[::-1]],
            len(sides) - 1 - at,
        )
    if not all(sign[0] == "<" for sign in signs):
        return None
    low, high = (sides[0] if at > 0 else -1), (sides[-1] if at < len(sides) - 1 else 1)
    left = "[" if at > 0 and signs[0] == "<=" else "("
    right = "]" if at < len(sides) - 1 and signs[-1] == "<=" else ")"
    return [_between(left + right, low, high)]


def variables(node: Node) -> frozenset[str]:
    """Return the variables of inequalities, in lower case; none for intervals."""
    if node.kind == "or":
        return frozenset().union(*(variables(side) for side in node.args))
    return (
        frozenset(name.lower() for name in letters(node) - CONSTANTS)
        if node.kind == "relation"
        else frozenset()
    )
