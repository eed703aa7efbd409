"""Decides equality outside the program's process, on trees: nothing that a program sent is constructed, hashed or asked.

As Python's == with two kindnesses, because tests come from JSON: a list equals a tuple of the same elements, and NaN equals NaN.
True equals 1 and 1 equals 1.0, as in Python. A set equals only a set, str and bytes differ.
"""

from __future__ import annotations

import math
from typing import Any

from sandbox.wire import NotPlain, Tree, dump, parse

MOST_WORK = 20_000_000  # elements times bytes: some seconds, in a process that others wait for
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def same_text(got: bytes, want: bytes, tolerance: float | None, compare: str = "exact") -> bool:
    """Whether two encoded values are equal in the sense of `compare` (see Job). Raises NotPlain when `got` is no encoded value."""
    if got == want:
        return True
    if compare != "set" and len(got) > 16 * len(want) + 4096:  # no equal value is written so much longer: not worth parsing
        return False
    if compare == "exact":
        return equal(parse(got), parse(want), tolerance)
    return same_elements(parse(got), parse(want), tolerance, once=compare == "set", size=len(got))


def same_elements(got: Tree, want: Tree, tolerance: float | None, *, once: bool, size: int) -> bool:
    """Whether two lists, tuples or sets have equal elements, in any order. once: how often an element comes does not count.

    Anything else is compared as by `equal`. With a tolerance each expected element takes the first one left that is near enough; where that would be
    too much work for `size` bytes, and for numbers, the elements are put in order first.
    """
    found, wanted = _elements(got), _elements(want)
    if found is None or wanted is None:
        return equal(got, want, tolerance)
    if once:
        found, wanted = list({_key(item): item for item in found}.values()), list({_key(item): item for item in wanted}.values())
    if tolerance is None:
        return sorted(map(_key, found)) == sorted(map(_key, wanted))
    if once:
        near = len(found) * len(wanted) * size < MOST_WORK
        return (
            near
            and all(any(equal(a, b, tolerance) for b in wanted) for a in found)
            and all(any(equal(a, b, tolerance) for a in found) for b in wanted)
        )
    if len(found) != len(wanted):
        return False
    numbers = all(type(_number(item)) in (int, float) for item in (*found, *wanted))
    if numbers or len(wanted) * size > MOST_WORK:
        order: Any = _number if numbers else _key
        return all(equal(a, b, tolerance) for a, b in zip(sorted(found, key=order), sorted(wanted, key=order), strict=True))
    for item in wanted:
        at = next((at for at, other in enumerate(found) if equal(other, item, tolerance)), None)
        if at is None:
            return False
        found = found[:at] + found[at + 1 :]
    return True


def _elements(of: Tree) -> list[Any] | None:
    if type(of) is dict and len(of) == 1:
        ((tag, body),) = of.items()
        return body if tag in ("t", "s", "z") and type(body) is list else None
    return of if type(of) is list else None


def equal(got: Tree, want: Tree, tolerance: float | None) -> bool:
    """tolerance: absolute or relative, for floats anywhere inside; None compares exactly. Raises NotPlain on a broken `got`."""
    number = _number(want)
    if number is not None:
        other = _number(got)
        return other is not None and _close(other, number, tolerance)
    if want is None or type(want) is str:
        return type(got) is type(want) and got == want
    items = _sequence(want)
    if items is not None:
        others = _sequence(got)
        return others is not None and len(others) == len(items) and all(equal(a, b, tolerance) for a, b in zip(others, items, strict=True))
    if type(got) is not dict or type(want) is not dict:
        return False
    return _tagged(got, want, tolerance)


def same_output(got: bytes, want: bytes, tolerance: float | None, compare: str = "exact") -> bool:
    """Whether a program printed what it should: line by line, white space at line ends and empty lines at the end do not count.

    With a tolerance, or where `compare` is "tokens", tokens are compared; with a tolerance as floats where both are.
    """
    ours, theirs = _lines(want), _lines(got)
    if ours == theirs:
        return True
    if (tolerance is None and compare != "tokens") or len(got) > 64 * len(want) + 4096:
        return False
    wanted, found = want.split(), got.split()
    if tolerance is None:
        return wanted == found
    return len(wanted) == len(found) and all(a == b or _float_tokens(a, b, tolerance) for a, b in zip(found, wanted, strict=True))


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _float_tokens(got: bytes, want: bytes, tolerance: float) -> bool:
    try:
        return len(got) < 400 and _close(float(got), float(want), tolerance)
    except ValueError:
        return False


def _number(of: Tree) -> int | float | complex | None:
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
    return None


def _close(got: complex, want: complex, tolerance: float | None) -> bool:
    if got == want:
        return True
    if got != got or want != want:
        return got != got and want != want
    if tolerance is None or (type(got) is not float and type(want) is not float and type(got) is not complex and type(want) is not complex):
        return False
    try:
        difference, size = abs(got - want), abs(want)
    except OverflowError:  # an int beyond every float
        return False
    return bool(difference <= tolerance * max(1.0, size) and difference != math.inf)


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
        found = got.get("s", got.get("z"))
        return type(found) is list and len(found) == len(body) and sorted(map(_key, found)) == sorted(map(_key, body))
    found = got.get("d")
    if tag != "d" or type(found) is not list or len(found) != len(body) or any(type(pair) is not list or len(pair) != 2 for pair in found):
        return False
    wanted = {_key(k): v for k, v in body}
    values = {_key(k): v for k, v in found}
    return values.keys() == wanted.keys() and all(equal(values[k], v, tolerance) for k, v in wanted.items())


def _key(of: Tree) -> str:
    """One text for all equal keys (1, 1.0 and True are one key); a text, because Python salts its hash."""
    number = _number(of)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, int):
        return hex(number)
    if type(of) is list:
        return f"t[{','.join(map(_key, of))}]"  # a list is a tuple of the same elements, as everywhere here
    if type(of) is dict and len(of) == 1:
        ((tag, body),) = of.items()
        if tag == "d" and type(body) is list:
            return f"d[{','.join(sorted(f'{_key(pair)}' for pair in body))}]"
        if type(body) is list:
            return f"s[{','.join(sorted(map(_key, body)))}]" if tag in "sz" else f"{tag}[{','.join(map(_key, body))}]"
    return dump(of)
