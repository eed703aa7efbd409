"""Evaluate trees of `rewards.mathematics.reader` with sympy, and compare expressions by value."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy

from rewards.mathematics.tree import Node, Unreadable, letters, walk

DIGITS = 40  # precision of the numbers that are compared
LARGEST, LARGEST_FACTORIAL = 100_000, 10_000  # bits of a power, argument of a factorial
CLOSE = sympy.Float(10) ** -25  # relative difference up to which two such numbers are equal
# A decimal stands for another number if both round to the same number of PLACES (as math-verify
# does) and their relative difference is at most RELATIVE, which matters near 0.
PLACES, RELATIVE = 6, Fraction(1, 10_000)
POINTS = (
    (0.7312, 1.3719, 2.2173, 0.4391, 1.8837, 3.1153, 0.9127),
    (-0.6171, 1.1213, -1.7359, 0.3719, -2.1391, 0.8117, -1.2713),
    (2.4139, 0.5923, 1.5173, 2.7131, 0.6713, 1.0931, 3.3371),
    (-1.4173, -0.7919, 0.9371, -2.3117, 1.2919, -0.4733, -3.1379),
    (1.1371, 2.9173, 0.3137, 1.6793, 2.2391, 0.7193, 1.4519),
    (0.2713, -2.1179, 1.8311, -0.9413, 0.5179, 1.3391, -0.6197),
)
VALUES = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "infty": sympy.oo}


@lru_cache(maxsize=4096)
def expression(node: Node, log_base: int = 0) -> Any:
    """Return the sympy expression of a tree. Raises Unreadable for a container.

    log_base: the base of a `log` without one; 0 means e.
    """
    if node.kind == "number" and node.value is not None:
        return sympy.Rational(node.value.numerator, node.value.denominator)
    if node.kind == "symbol":
        return VALUES.get(node.text) or sympy.Symbol(node.text)
    parts = [expression(part, log_base) for part in node.args]
    match node.kind:
        case "neg":
            return -parts[0]
        case "sum":
            return sympy.Add(*parts)
        case "product":
            return sympy.Mul(*parts)
        case "quotient":
            return parts[0] / parts[1]
        case "power":
            if (
                parts[0].is_Rational
                and parts[1].is_Rational
                and abs(parts[1]) * max(parts[0].p.bit_length(), parts[0].q.bit_length()) > LARGEST
            ):
                raise Unreadable("too large")
            return sympy.Pow(parts[0], parts[1])
        case "root":
            real = parts[0].is_negative and parts[1].is_odd
            return -sympy.root(-parts[0], parts[1]) if real else sympy.root(parts[0], parts[1])
        case "factorial" | "binomial":
            if any(part.is_Rational and abs(part) > LARGEST_FACTORIAL for part in parts):
                raise Unreadable("too large")
            return getattr(sympy, node.kind)(*parts)
        case "abs":
            return sympy.Abs(parts[0])
        case "floor":
            return sympy.floor(parts[0])
        case "ceil":
            return sympy.ceiling(parts[0])
        case "percent":
            return parts[0] / 100
        case "degree":
            return parts[0] * sympy.pi / 180
        case "call":
            return _called(node.text, parts, log_base)
    raise Unreadable(f"{node.kind} has no value")


def _called(name: str, parts: list[Any], log_base: int) -> Any:
    if name in ("ln", "log"):
        base = parts[1] if len(parts) > 1 else log_base if name == "log" and log_base else sympy.E
        return sympy.log(parts[0], base)
    return getattr(sympy, name.replace("arc", "a"))(parts[0])


def equal(reference: Node, answer: Node) -> bool:
    """Return whether two expressions have the same value wherever both have one.

    A `log` without a base may be to base e or to base 10.
    """
    one, other = number(reference), number(answer)
    if one is not None and other is not None:
        return same_number(one, other)
    bases = (
        (0, 10)
        if any(
            part.text == "log" and len(part.args) == 1 for part in (*walk(reference), *walk(answer))
        )
        else (0,)
    )
    inexact = any(part.text == "decimal" for part in (*walk(reference), *walk(answer)))
    return any(
        _equal(expression(reference, base), expression(answer, base), inexact) for base in bases
    )


def number(node: Node) -> Node | None:
    """Return the number that a tree is, without degrees; None for anything else."""
    node = node.args[0] if node.kind == "degree" else node
    return node if node.kind == "number" else None


def same_number(reference: Node, answer: Node) -> bool:
    """Compare two numbers: exact numbers exactly, integers always exactly.

    A decimal stands for the other number if both round to the same six places.
    """
    assert reference.value is not None and answer.value is not None
    if reference.value == answer.value:
        return True
    if "decimal" not in (reference.text, answer.text) or 1 in (
        reference.value.denominator,
        answer.value.denominator,
    ):
        return False
    return _rounds(reference.value, answer.value)


def _rounds(reference: Any, answer: Any) -> bool:
    return bool(
        round(reference, PLACES) == round(answer, PLACES)
        and abs(reference - answer) <= RELATIVE * abs(reference)
    )


def _equal(reference: Any, answer: Any, inexact: bool) -> bool:
    """Return whether two expressions are equal at fixed points, or by simplification.

    They must be equal at every point where both are real, or where neither is. With fewer than
    three such points, simplification decides.
    """
    if reference == answer or (reference.is_Rational and answer.is_Rational):
        return bool(reference == answer or (inexact and _rounds(reference, answer)))
    reference, answer = _lower(reference), _lower(answer)
    names = sorted(reference.free_symbols | answer.free_symbols, key=str)
    if not names:
        return _near(sympy.N(reference, DIGITS), sympy.N(answer, DIGITS), inexact)
    compared = 0
    for point in POINTS:
        values = {
            name: sympy.Rational(str(point[at % len(point)])) + at // len(point)
            for at, name in enumerate(names)
        }
        one, other = (sympy.N(side.subs(values), DIGITS) for side in (reference, answer))
        if (
            not (one.is_number and other.is_number and one.is_finite and other.is_finite)
            or one.is_real != other.is_real
        ):
            continue
        if not _near(one, other, inexact):
            return False
        compared += 1
    return compared >= 3 or sympy.simplify(reference - answer) == 0


def _lower(side: Any) -> Any:
    """Turn symbols into lower case, unless two of them would become one."""
    names = {str(symbol): symbol for symbol in side.free_symbols}
    lowered = {name.lower() for name in names}
    return (
        side.subs({symbol: sympy.Symbol(name.lower()) for name, symbol in names.items()})
        if len(lowered) == len(names)
        else side
    )


def _near(one: Any, other: Any, inexact: bool) -> bool:
    if not (one.is_finite and other.is_finite):
        return bool(one == other)
    if one == other or abs(one - other) <= CLOSE * max(abs(one), abs(other)):
        return True
    return inexact and one.is_real and other.is_real and _rounds(one, other)


def proportion(reference: Node, answer: Node) -> Any:
    """Return the constant factor that turns the second expression into the first.

    None if there is none, if it is 0, or if the expressions have different variables.
    """
    if {name.lower() for name in letters(reference)} != {name.lower() for name in letters(answer)}:
        return None
    one, other = _lower(expression(reference)), _lower(expression(answer))
    names = sorted(one.free_symbols, key=str)
    values = {
        name: sympy.Rational(str(POINTS[0][at % len(POINTS[0])])) + at // len(POINTS[0])
        for at, name in enumerate(names)
    }
    factor = sympy.N(one.subs(values), DIGITS) / sympy.N(other.subs(values), DIGITS)
    return (
        factor
        if factor.is_real
        and factor.is_finite
        and factor != 0
        and _equal(one, factor * other, False)
        else None
    )
