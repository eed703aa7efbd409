"""Decides equality outside the program's process, on trees: no object of a program is ever
constructed, hashed or called.

Equality is Python's ==, with two exceptions because tests come from JSON: a list equals a tuple of
the same elements, and NaN equals NaN. True equals 1, and 1 equals 1.0, Decimal(1) and Fraction(1),
as in Python. A set equals only a set; str and bytes differ.
With a tolerance, two integers must still be equal. If an integer is expected, a float may differ by
the absolute tolerance only: a relative one would accept 1000000999.0 for 1000000000.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from sandbox.wire import NotPlain, Tree, deep, dump, parse

# Elements times bytes: some tenths of a second, in a process that others wait for.
MAX_WORK = 2_000_000
MAX_REPEATED = 1 << 20  # bytes of elements that occur more than once
MAX_DIGITS = 5_000  # of a Decimal or a Fraction: more would take quadratic time
LOOSE = Decimal("1e-5")
# What reading a decimal as a float loses: without it 0.100001 would not be within 1e-6 of 0.1.
ROUNDING = 2.0**-52
MAX_ZEROS = 400  # additional digits that only an exponent stands for; a float has 308
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_INTEGER = re.compile(rb"[+-]?[0-9]{1,400}")
_DECIMAL = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)")
Number = complex | Fraction  # int and float are complex to the type checker


def same_text(got: bytes, want: bytes, tolerance: float | None, compare: str = "exact") -> bool:
    """Whether two encoded values are equal in the sense of `compare` (see Job). Raises NotPlain if
    `got` is not an encoded value.
    """
    if got == want:
        return True
    if is_longer(got, want, MAX_REPEATED if compare == "set" else 4096):
        return False
    if compare == "exact":
        return deep(equal, parse(got), parse(want), tolerance)
    return deep(
        same_elements, parse(got), parse(want), tolerance, once=compare == "set", size=len(got)
    )


def is_longer(got: bytes, want: bytes, most: int) -> bool:
    """Whether `got` is so much longer than `want`, or has so many more parts, that the two cannot
    be equal. Parsing it would waste memory.

    most: bytes that it may have in any case.
    """
    return len(got) > most and (
        len(got) > 16 * len(want) + most or _parts(got) > 8 * _parts(want) + most
    )


def _parts(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def same_elements(got: Tree, want: Tree, tolerance: float | None, *, once: bool, size: int) -> bool:
    """Whether two lists, tuples or sets have equal elements, in any order. once: ignore how often
    an element occurs.

    Anything else is compared by `equal`. With a tolerance, each expected element takes the first
    remaining one that is close enough. Numbers are sorted first, and so are other elements if that
    search would be too much work for `size` bytes.
    """
    actual, expected = _elements(got), _elements(want)
    if actual is None or expected is None:
        return equal(got, want, tolerance)
    if once:
        actual, expected = (
            list({_key(item): item for item in actual}.values()),
            list({_key(item): item for item in expected}.values()),
        )
    if tolerance is None:
        return sorted(map(_key, actual)) == sorted(map(_key, expected))
    numbers = all(type(_number(item)) in (int, float) for item in (*actual, *expected))
    if once:
        if numbers:
            return _has_near(actual, expected, tolerance, swapped=False) and _has_near(
                expected, actual, tolerance, swapped=True
            )
        return (
            len(actual) * len(expected) * size < MAX_WORK
            and all(any(equal(a, b, tolerance) for b in expected) for a in actual)
            and all(any(equal(a, b, tolerance) for a in actual) for b in expected)
        )
    if len(actual) != len(expected):
        return False
    if numbers or len(expected) * size > MAX_WORK:
        order: Any = _place if numbers else _key
        return all(
            equal(a, b, tolerance)
            for a, b in zip(sorted(actual, key=order), sorted(expected, key=order), strict=True)
        )
    for item in expected:
        at = next((at for at, other in enumerate(actual) if equal(other, item, tolerance)), None)
        if at is None:
            return False
        actual = actual[:at] + actual[at + 1 :]
    return True


def _place(of: Tree) -> tuple[bool, Any]:
    """Sort key of a number; NaN is last."""
    number = _number(of)
    return (True, 0) if number != number else (False, number)


def _has_near(these: list[Any], those: list[Any], tolerance: float, *, swapped: bool) -> bool:
    """Whether each of these numbers is close enough to one of those. swapped: these are the
    expected ones.
    """
    others = sorted(those, key=_place)
    for item in these:
        at = bisect_left(others, _place(item), key=_place)
        if not any(
            equal(*((other, item) if swapped else (item, other)), tolerance)
            for other in others[max(0, at - 1) : at + 1]
        ):
            return False
    return True


def _elements(of: Tree) -> list[Any] | None:
    if type(of) is dict and len(of) == 1:
        ((tag, body),) = of.items()
        return body if tag in ("t", "s", "z") and type(body) is list else None
    return of if type(of) is list else None


def equal(got: Tree, want: Tree, tolerance: float | None) -> bool:
    """Whether two trees are equal. tolerance: absolute or relative, for floats at any depth; None
    compares exactly. Raises NotPlain for a broken `got`.
    """
    number = _number(want)
    if number is not None:
        other = _number(got)
        return other is not None and _close(other, number, tolerance)
    if want is None or type(want) is str:
        return type(got) is type(want) and got == want
    items = _sequence(want)
    if items is not None:
        others = _sequence(got)
        return (
            others is not None
            and len(others) == len(items)
            and all(equal(a, b, tolerance) for a, b in zip(others, items, strict=True))
        )
    if type(got) is not dict or type(want) is not dict:
        return False
    return _tagged(got, want, tolerance)


def same_output(got: bytes, want: bytes, tolerance: float | None, compare: str = "exact") -> bool:
    """Whether the output is the expected one, line by line. White space at line ends and empty
    lines at the end are ignored.

    With a tolerance, or if `compare` is "tokens" or "loose", tokens are compared; with a tolerance
    as numbers if both are, without one as decimals: 0.5 is 0.50, and 1.0 is 1, as in
    LiveCodeBench's harness. "loose" is as in CodeContests' harness: upper and lower case are equal,
    and decimals may differ by less than LOOSE.
    """
    expected_lines, actual_lines = _lines(want), _lines(got)
    if expected_lines == actual_lines:
        return True
    if (tolerance is None and compare == "exact") or len(got) > 64 * len(want) + 4096:
        return False
    loose = compare == "loose"
    if loose:
        got, want = got.lower(), want.lower()
    expected, actual = want.split(), got.split()
    return len(expected) == len(actual) and all(
        a == b
        or (_equal_decimals(a, b, loose) if tolerance is None else _close_tokens(a, b, tolerance))
        for a, b in zip(actual, expected, strict=True)
    )


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _equal_decimals(got: bytes, want: bytes, loose: bool) -> bool:
    """Whether two tokens are one number, or near each other, and one of them has a point."""
    if b"." not in got + want or not all(
        _DECIMAL.fullmatch(token) and len(token) <= MAX_DIGITS for token in (got, want)
    ):
        return False
    actual, expected = Decimal(got.decode()), Decimal(want.decode())
    return actual == expected or (loose and abs(actual - expected) < LOOSE)


def _close_tokens(got: bytes, want: bytes, tolerance: float) -> bool:
    actual, expected = _token_number(got), _token_number(want)
    return actual is not None and expected is not None and _close(actual, expected, tolerance)


def _token_number(token: bytes) -> float | None:
    if _INTEGER.fullmatch(token):
        return int(token)
    try:
        return float(token) if len(token) <= 400 and b"_" not in token else None
    except ValueError:
        return None


def _number(of: Tree) -> Number | None:
    if isinstance(of, (bool, int, float)):
        return of
    if type(of) is not dict or len(of) != 1:
        return None
    ((tag, body),) = of.items()
    if tag == "f":
        return _SPECIAL.get(body) if type(body) is str else None
    if tag == "i" and type(body) is str:
        try:
            return int(body, 16)
        except ValueError:
            raise NotPlain("broken message: an int that is none") from None
    if tag == "c" and type(body) is list and len(body) == 2:
        real, imaginary = _number(body[0]), _number(body[1])
        if isinstance(real, (int, float)) and isinstance(imaginary, (int, float)):
            try:
                return complex(real, imaginary)
            except OverflowError:
                return None
    return _exact_number(*body) if tag == "v" and type(body) is list and len(body) == 2 else None


def _exact_number(kind: Tree, parts: Tree) -> Number | None:
    """Return a Decimal or Fraction as child/objects.py sends it; None for another type or more
    than MAX_DIGITS digits.
    """
    if type(parts) is not list:
        return None
    if kind == "Fraction" and len(parts) == 2:
        over, under = _number(parts[0]), _number(parts[1])
        short = all(
            isinstance(part, int) and part.bit_length() <= 4 * MAX_DIGITS for part in (over, under)
        )
        return Fraction(over, under) if short and under else None  # type: ignore[arg-type]
    if (
        kind != "Decimal"
        or len(parts) != 1
        or type(parts[0]) is not str
        or len(parts[0]) > MAX_DIGITS
    ):
        return None
    try:
        value = Decimal(parts[0])
    except InvalidOperation:
        return None
    if not value.is_finite():
        return float(value) if not value.is_snan() else None
    # The value must not be much longer than its text, as its length determines the cost.
    return Fraction(value) if abs(value.adjusted()) <= len(parts[0]) + MAX_ZEROS else None


def _close(got: Any, want: Any, tolerance: float | None) -> bool:
    """Whether two values of type Number are close enough."""
    if got == want:
        return True
    if got != got or want != want:
        return bool(got != got and want != want)
    if (
        tolerance is None
        or isinstance(want, bool)
        or (isinstance(got, int) and isinstance(want, int))
    ):
        return False
    # Compare exactly: a float next to a long integer would lose its last digits.
    if not {type(got), type(want)} <= {float, complex}:
        if not all(
            isinstance(of, Fraction | int) or (type(of) is float and math.isfinite(of))
            for of in (got, want)
        ):
            return False
        size = max(Fraction(1), abs(Fraction(want)))
        allowed = Fraction(tolerance) * (1 if isinstance(want, int) else size)
        allowed += min(allowed, Fraction(ROUNDING) * size)
        return bool(abs(Fraction(got) - Fraction(want)) <= allowed)
    try:
        difference = abs(got - want)
        allowed = (tolerance + min(tolerance, ROUNDING)) * max(1.0, abs(want))
        return bool(difference <= allowed and difference != math.inf)
    except OverflowError:  # of complex numbers
        return False


def _sequence(of: Tree) -> list[Any] | None:
    if type(of) is list:
        return of
    if type(of) is dict and len(of) == 1 and type(of.get("t")) is list:
        return of["t"]  # type: ignore[no-any-return]
    return None


def _tagged(got: dict[str, Any], want: dict[str, Any], tolerance: float | None) -> bool:
    ((tag, body),) = want.items()
    if tag == "b":
        return bool(got.get("b") == body)
    if tag in "sz":
        actual = got.get("s", got.get("z"))
        return (
            type(actual) is list
            and len(actual) == len(body)
            and sorted(map(_key, actual)) == sorted(map(_key, body))
        )
    actual = got.get("d")
    if (
        tag != "d"
        or type(actual) is not list
        or len(actual) != len(body)
        or any(type(pair) is not list or len(pair) != 2 for pair in actual)
    ):
        return False
    expected = {_key(k): v for k, v in body}
    values = {_key(k): v for k, v in actual}
    return values.keys() == expected.keys() and all(
        equal(values[k], v, tolerance) for k, v in expected.items()
    )


def _key(of: Tree) -> str:
    """Return one text for all equal keys (1, 1.0 and True are one key). A text, because Python
    salts its hash.
    """
    number = _number(of)
    if isinstance(number, (int, Fraction)) or (isinstance(number, float) and math.isfinite(number)):
        return "{:x}/{:x}".format(*number.as_integer_ratio())
    if type(of) is list:
        # a list equals a tuple of the same elements, as everywhere here
        return f"t[{','.join(map(_key, of))}]"
    if type(of) is dict and len(of) == 1:
        ((tag, body),) = of.items()
        if tag == "d" and type(body) is list:
            return f"d[{','.join(sorted(f'{_key(pair)}' for pair in body))}]"
        if type(body) is list:
            return (
                f"s[{','.join(sorted(map(_key, body)))}]"
                if tag in "sz"
                else f"{tag}[{','.join(map(_key, body))}]"
            )
    return dump(of)
