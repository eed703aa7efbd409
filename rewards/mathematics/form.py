"""Decide whether an answer is evaluated, compared with what the reference leaves standing.

Order, factoring, expanding, unreduced fractions and roots, decimals and mixed numbers are forms of
a result. `3 + 4`, `2^{10}`, `10!`, `\\sqrt{16}`, `\\frac{100}{20}`, `2x + 3x`, `x^2 x^3`,
`\\frac{x^2 - 1}{x - 1}`, or a function that the reference does not use, still have to be carried
out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import sympy

from rewards.mathematics.tree import CONSTANTS, Node, closed, letters, walk
from rewards.mathematics.value import expression, number

# Allowed any number of times where the reference has one.
FREE = frozenset({"trigonometric", "inverse trigonometric", "hyperbolic", "logarithm", "abs"})


def evaluated(reference: Node, answer: Node) -> bool:
    """Return whether the answer has no pending operation and no letter that the reference lacks.

    Both are expressions.
    """
    numeral = number(reference)
    if numeral is not None:
        value = number(answer)
        return value is not None and (value.text != "division" or numeral.text == "division")
    rounded = any(
        part.text == "decimal" for part in walk(reference)
    )  # may stand for a multiple of pi
    if not {name.lower() for name in letters(answer)} <= {
        name.lower() for name in letters(reference)
    } | (CONSTANTS if rounded else set()):
        return False
    allowed = operations(reference)
    return all(
        count <= allowed[name] or (name in FREE and allowed[name])
        for name, count in operations(answer).items()
    )


def operations(node: Node) -> Counter[str]:
    """Count the operations that could still be carried out in an expression, by name."""
    counts: Counter[str] = Counter()
    if node.kind in ("product", "quotient"):
        over, under = _factors(node)
        for factor in (*over, *under):
            counts += operations(factor)
        return counts + _product(over, under)
    if node.kind == "sum":
        terms = _terms(node)
        for term in terms:
            counts += operations(term)
        counts["sum"] += _like(terms)
        return +counts
    for part in node.args:
        counts += operations(part)
    counts[_standing(node)] += 1
    del counts[""]
    return counts


def _standing(node: Node) -> str:
    """Return the name of the operation at the top of a tree, "" where it is part of a result."""
    match node.kind:
        case "number":
            return "quotient" if node.text == "division" else ""
        case "neg":
            return "sum" if node.args[0].kind == "neg" else ""
        case "power":
            return "power" if _power(*node.args) else ""
        case "root":
            return "root" if _root(node, *node.args) else ""
        case "call":
            return (
                "value"
                if closed(node) and sympy.expand_log(expression(node), factor=True).is_Rational
                else _family(node.text)
            )
        case "factorial" | "binomial" | "abs" | "floor" | "ceil":
            return node.kind
    return ""


def _family(function: str) -> str:
    if function in ("ln", "log"):
        return "logarithm"
    if function.endswith("h"):
        return "hyperbolic"
    return "inverse trigonometric" if function.startswith("arc") else "trigonometric"


def _terms(node: Node) -> list[Node]:
    if node.kind == "neg":
        return _terms(node.args[0])
    return [term for part in node.args for term in _terms(part)] if node.kind == "sum" else [node]


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the factors above and below the fraction bar.

    Nested products, quotients and signs are flattened.
    """
    if node.kind == "neg":
        return _factors(node.args[0])
    if node.kind not in ("product", "quotient"):
        return [node], []
    over: list[Node] = []
    under: list[Node] = []
    for at, part in enumerate(node.args):
        above, below = _factors(part)
        flipped = node.kind == "quotient" and at == 1
        over += below if flipped else above
        under += above if flipped else below
    return over, under


def _like(terms: list[Node]) -> int:
    """Count the terms that could be added to another one.

    These are numbers, equal roots, equal powers, and logarithms of numbers with a common factor.
    """
    kinds: list[Any] = []
    for term in terms:
        value = sympy.expand_power_exp(sympy.expand_log(expression(term), factor=True))
        kinds += (
            {part.as_coeff_Mul()[1] for part in sympy.Add.make_args(value)}
            if value != 0
            else [sympy.S.One, sympy.S.One]
        )
    return len(kinds) - len(set(kinds))


def _power(base: Node, exponent: Node) -> bool:
    """Return whether a power could be carried out."""
    if exponent.kind != "number" or exponent.value is None:
        return (
            closed(base)
            and closed(exponent)
            and bool(expression(Node("power", (base, exponent))).is_Rational)
        )
    whole = exponent.value.denominator == 1
    if exponent.value in (0, 1) or base.kind in ("power", "root", "neg", "factorial", "binomial"):
        return True
    if base.kind == "number":
        return whole or bool(expression(Node("power", (base, exponent))).is_Rational)
    if base.kind == "symbol":
        return base.text == "i"
    if base.kind in ("product", "quotient"):
        return closed(base) or any(
            factor.kind in ("number", "power", "root") for side in _factors(base) for factor in side
        )
    return base.kind == "sum" and closed(base)


def _root(node: Node, radicand: Node, index: Node) -> bool:
    """Return whether a root could be taken, or is a root of roots."""
    if closed(radicand):
        value = expression(radicand)
        nested = radicand.kind == "sum" or any(
            part.kind in ("root", "power") for part in walk(radicand)
        )
        return bool(value.is_negative) or nested or bool(expression(node).is_Rational)
    positive, _ = sympy.posify(sympy.factor(expression(radicand)))
    step = expression(index)
    return all(
        (power / step).is_integer
        for base, power in positive.as_powers_dict().items()
        if base.free_symbols
    )


def _product(over: list[Node], under: list[Node]) -> Counter[str]:
    """Count the operations left in a product over a product."""
    counts: Counter[str] = Counter()
    for side in (over, under):
        counts["product"] += max(0, sum(_rational(factor) is not None for factor in side) - 1)
        counts["product"] += max(0, sum(_surd(factor) is not None for factor in side) - 1)
        counts["product"] += max(0, sum(_closed_sum(factor) for factor in side) - 1)
        counts["product"] += _repeated(side)
    if any(_closed_sum(factor) and "i" in letters(factor) for factor in over):
        counts["product"] += sum(
            not _closed_sum(factor) and "i" in letters(factor) for factor in over
        )
    counts["quotient"] += sum(
        _closed_sum(factor) or "i" in letters(factor) for factor in under if closed(factor)
    )
    counts["quotient"] += bool(under) and (_divides(over, under) or _common(over, under))
    return +counts


def _rational(factor: Node) -> Any:
    """Return the value of a factor that is a rational number in any form, else None."""
    value = expression(factor) if factor.kind not in ("sum", "symbol") and closed(factor) else None
    return value if value is not None and value.is_Rational else None


def _closed_sum(factor: Node) -> bool:
    factor = factor.args[0] if factor.kind == "power" else factor
    return factor.kind == "sum" and closed(factor)


def _surd(factor: Node) -> Any:
    """Return the radicand of a root of a number, else None."""
    root = factor.kind == "root" or (
        factor.kind == "power"
        and factor.args[1].kind == "number"
        and not expression(factor.args[1]).is_integer
    )
    return expression(factor.args[0]) if root and factor.args[0].kind == "number" else None


def _bases(side: list[Node]) -> list[tuple[Any, Any]]:
    """Return bases and exponents of factors that are not numbers, roots of numbers or sums."""
    bases = []
    for factor in side:
        if factor.kind != "number" and _surd(factor) is None:
            bases += [
                (base, power)
                for base, power in expression(factor).as_powers_dict().items()
                if not base.is_Add and base != 1
            ]
    return bases


def _repeated(side: list[Node]) -> int:
    bases = [base for base, _ in _bases(side)]
    return len(bases) - len(set(bases))


def _divides(over: list[Node], under: list[Node]) -> bool:
    """Return whether the numbers could be divided: evenly, or fractions by a number."""
    above, below = (
        [value for factor in side if (value := _rational(factor))] for side in (over, under)
    )
    if not below:
        return False
    if any(value.q > 1 for value in (*above, *below)):
        return True
    content = above[0] if above else sympy.S.One
    for factor in over:
        if factor.kind == "sum":
            content *= expression(factor).primitive()[0]
    return bool(content % below[0] == 0)


def _common(over: list[Node], under: list[Node]) -> bool:
    """Return whether something could be cancelled: a root, a power of one base, a polynomial."""
    radicands = [
        [radicand for factor in side if (radicand := _surd(factor))] for side in (over, under)
    ]
    if radicands[0] and radicands[1] and sympy.gcd(radicands[0][0], radicands[1][0]) not in (0, 1):
        return True
    below = dict(_bases(under))
    for base, power in _bases(over):
        if base in below and bool(power.is_integer) == bool(below[base].is_integer):
            return True
    if not any(letters(factor) - CONSTANTS for factor in under):
        return False
    try:
        shared = sympy.gcd(
            expression(Node("product", tuple(over))), expression(Node("product", tuple(under)))
        )
    except sympy.PolynomialError:
        return False
    return bool(shared.free_symbols)
