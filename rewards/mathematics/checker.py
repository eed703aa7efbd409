"""Decide one answer: math-verify compares values, and the answer must also be evaluated.

math-verify evaluates while it compares, so it would accept `37 \\times 43` for 1591. A policy must
not be paid for an operation that is left to carry out, nor for a formula of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify

from rewards.mathematics.units import asked, quantity, result_of

LATEX = [LatexExtractionConfig(boxed_match_priority=0)]  # plain text would be read by `eval`
_FORMULA = re.compile(r"\$\$?(.+?)\$\$?|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
_FONT = re.compile(r"\\(?:text|textbf|mbox|mathrm|mathbf)\s*\{([^{}]*)\}")
_MARKS = re.compile(
    r"\\!\s*|\\boxed|\\\$|\\?%|\bpercent(?:age)?\b|\bpct\b"
    r"|(?<=\d)(?:\\,|\s)(?=\d{3}(?!\d))"
)
_SCIENTIFIC = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d{1,2})(?![\w.])"
    # one digit before the point; what stands before it takes no part of the product
    r"|(?:(?<=[=,(\[-])|^)\s*([1-9](?:\.\d+)?)\s*(?:\\times|\\cdot|[*x×])\s*10\s*"
    r"\^\s*\{?\s*([+-]?\d{1,2})\s*\}?(?![\w.!^}])",
    re.IGNORECASE,
)
# In 1,000 the comma separates thousands: no member of a pair is written as 000.
_THOUSANDS = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})*,0\d\d(?:,\d{3})*(?![\d,]*\d)")
_MIXED = re.compile(r"(?<![\w.^/])(\d+)\s+(\d+)/(\d+)(?![\w.!^])")
CLOSE = 1e-3  # relative; math-verify rounds to six decimals, where all small numbers are equal
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_PI = re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])")
# What math-verify evaluates while it parses.
_DIVISION = re.compile(r"\\[dtc]?frac|\\div|[/:÷⁄]")
_FUNCTION = re.compile(
    r"\\[dt]?binom|\\choose|\\(?:gcd|max|min|det|phi|varphi|Gamma|lim|bmod|pmod|lfloor|lceil)\b"
    r"|\\begin\{vmatrix\}|\\operatorname|!"
)


def accepted(reference: str, answer: str, statement: str = "", any_form: bool = False) -> bool:
    """Return whether the answer equals the reference answer and is a result.

    statement: text of the question, whose formulas do not count as answers. any_form: the answer
    may be any expression.
    """
    if same_text(reference, answer):
        return True
    if result_of(reference) == reference:
        answer = result_of(answer)
    if ":" in reference:
        answer = re.sub(r"(?<=\d)\s+to\s+(?=\d)", ":", answer)
    if same_text(reference, answer):
        return True
    (number, unit), (given_number, given_unit) = quantity(reference), quantity(answer)
    wanted = unit or asked(statement)
    if given_unit and wanted and given_unit != wanted:
        return False
    if (given_unit and wanted) or (_NUMBER.fullmatch(number) and _NUMBER.fullmatch(given_number)):
        reference, answer = number, given_number
        if same_text(reference, answer):
            return True
    if re.fullmatch("[0-9]*[A-Z][0-9A-Z]+", reference):  # letters would commute
        return False
    right, given = _parsed(reference), _parsed(answer)
    if not right or not given or not verify(right, given, timeout_seconds=None):
        return False
    if not _close(right[0], given[0]):
        return False
    if any_form:
        return True
    copied = _copied(answer, statement) and not _copied(reference, statement)
    return not copied and _evaluated(reference, right[0], answer, given[0])


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal without regard to white space and fonts."""
    return _joined(one) == _joined(other)


def _joined(text: str) -> str:
    plain = _FONT.sub(r"\1", _MARKS.sub("", text)).strip().strip("$")
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", plain)


@lru_cache(maxsize=1000)
def _parsed(text: str) -> list[Any]:
    """Return the expression, which is not evaluated, and its text; only the text if unreadable."""
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", _SCIENTIFIC.sub(_decimal, text))
    plain = _MARKS.sub("", _PI.sub(r"\\pi ", text))
    return list(parse(f"\\boxed{{{plain}}}", LATEX, parsing_timeout=None))


def _decimal(found: re.Match[str]) -> str:
    mantissa, exponent = filter(None, found.groups())
    return format(Decimal(f"{mantissa}e{exponent}"), "f")


def _close(one: Any, other: Any) -> bool:
    """Return whether the numbers in two expressions are close, if both have as many."""
    numbers = [
        sorted(abs(part.evalf()) for part in _expressions(tree) if part.is_number)
        for tree in (one, other)
        if not isinstance(tree, str)
    ]
    if len(numbers) < 2 or len(numbers[0]) != len(numbers[1]):
        return True
    return all(abs(a - b) <= CLOSE * max(a, b) for a, b in zip(*numbers, strict=True))


def _evaluated(reference: str, right: Any, answer: str, given: Any) -> bool:
    """Return whether the answer has no operation that could be carried out, unless the reference
    has as many. Order, factors, unreduced fractions and roots are forms of a result.
    """
    if isinstance(right, str) or isinstance(given, str):
        return True  # compared as texts
    if _FUNCTION.search(_joined(answer)) and not _FUNCTION.search(reference):
        return False
    relations = given.args if isinstance(given, sympy.And) else (given,)
    if any(map(_false, relations)):
        return False
    allowed = list(_expressions(right))
    divided = bool(_DIVISION.search(answer)) and not _DIVISION.search(reference)
    finished = (
        _finished(one, allowed, divided) for one in _expressions(given) if not one.is_Symbol
    )
    if len(relations) > 1 and given.atoms(sympy.Eq):  # of a = b = c, one is the result
        return any(finished)
    return all(finished)


def _finished(expression: Any, allowed: list[Any], divided: bool) -> bool:
    """Return whether nothing in an expression could be carried out.

    allowed: expressions of the reference. divided: the answer has a division and they have none.
    """
    value = _value(expression)
    if expression.is_Rational or expression.is_Float:
        return not (value.is_Integer and divided)
    operations = _operations(expression)
    if operations > (0 if value.is_Rational else _operations(value)):
        return operations <= max(map(_operations, allowed), default=0)
    return not expression.has(sympy.Function) or any(one.has(sympy.Function) for one in allowed)


def _expressions(tree: Any) -> Iterator[Any]:
    """Yield the largest expressions in a set, tuple, interval, matrix or relation."""
    if isinstance(tree, sympy.Expr):
        yield tree
    elif isinstance(tree, sympy.MatrixBase):
        yield from tree.flat()
    else:
        for part in tree.args:
            yield from _expressions(part)


def _value(expression: Any) -> Any:
    """Carry out what sympy carries out when an expression is built."""
    if not expression.args:
        return expression
    return expression.func(*map(_value, expression.args)).doit(deep=False)


def _operations(expression: Any, above: Any = None) -> int:
    """Count the operations. A sum in a sum counts once, and a denominator is part of a product."""
    merged = expression.func in (sympy.Add, sympy.Mul) and above is expression.func
    denominator = above is sympy.Mul and expression.is_Pow and expression.args[1] == -1
    counts = bool(expression.args) and not merged and not denominator
    return counts + sum(_operations(part, expression.func) for part in expression.args)


def _false(relation: Any) -> bool:
    """Return whether both sides of an equation are numbers, and different."""
    return (
        isinstance(relation, sympy.Eq)
        and not relation.free_symbols
        and not sympy.Eq(*relation.args, evaluate=True)
    )


def _copied(answer: str, statement: str) -> bool:
    """Return whether the answer is a formula of the question, or one side of it.

    A whole number is a result wherever it stands.
    """
    text = _normal(answer)
    if text.isdecimal():
        return False
    formulas = ["".join(groups) for groups in _FORMULA.findall(statement)]
    words = [word.rstrip(".,;:?!") for word in statement.split()]
    return any(
        _normal(side) == text
        for formula in [*formulas, *words]
        for side in (formula, *formula.split("="))
    )


def _normal(text: str) -> str:
    """Return a formula without white space, braces, signs of a product and ways to print it."""
    text = re.sub(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1/\2", _joined(text))
    return re.sub(r"[\s{}*]|\\left|\\right|\\cdot|\\times", "", text).strip("$.")
