"""Small edits of a program leave its canonical form as it was."""

from __future__ import annotations

import pytest

from problems.cleaning.canonical import canonical
from problems.syntax import code_tokens

EDITS = [
    ("return a < b", "return b > a"),
    ("return a * 2", "return 2 * a"),
    ("return not (a and not b)", "return b or not a"),
    ("a += b\n    return a", "a = a + b\n    return a"),
    ("result = a + b\n    return result", "return a + b"),
    (
        "if a:\n        return b\n    else:\n        return a",
        "if not a:\n        return a\n    return b",
    ),
    ("return b if a <= 3 else a", "if 3 < a:\n        return a\n    return b"),
    ("if a in b:\n        return True\n    return False", "return a in b"),
    ("limit = 7\n    return a % limit", "return a % 7"),
    ("log = []\n    log.append(a)\n    return b", "return b"),
    (
        "total = 0\n    for i in range(len(a)):\n        total += a[i]\n    return total",
        "s = 0\n    for n, x in enumerate(a):\n        s = x + s\n    return s",
    ),
    (
        "i = 0\n    while i < b:\n        print(a)\n        i += 1\n    return a",
        "for step in range(b):\n        print(a)\n    return a",
    ),
    (
        "out = []\n    for x in a:\n        if x > b:\n            out.append(x)\n    return out",
        "return list(filter(lambda y: b < y, a))",
    ),
    (
        "n = 0\n    for x in a:\n        if x > b:\n            n += x\n    return n",
        "return sum([y for y in a if b < y])",
    ),
    (
        "for x in a:\n        if x == b:\n            return False\n    return True",
        "return not any(x == b for x in a)",
    ),
    ("if len(a) == 0:\n        return b\n    return a % 2 != 1", "return a % 2 == 0 if a else b"),
    ("a, b = 3, 4\n    return a - b", "a = 3\n    b = 4\n    return a - b"),
    ("c = list(a)\n    c.sort(key=len)\n    return c", "return sorted(a, key=len)"),
    ("try:\n        return a[b]\n    except KeyError:\n        raise", "return a[b]"),
    (
        "while True:\n        if a > b:\n            break\n        a = a * 2\n    return a",
        "while not a > b:\n        a *= 2\n    return a",
    ),
    (
        "if a:\n        c = b\n    elif b:\n        c = 1\n    else:\n        c = 9\n    return c",
        "if a:\n        return b\n    return 1 if b else 9",
    ),
    (
        "def last(x):\n        return x[-1]\n    return sorted(a, key=last)",
        "return sorted(a, key=lambda pair: pair[-1])",
    ),
    ("def part(x, y):\n        return x % y\n    return part(a, b)", "return a % b"),
    (
        "for pair in a:\n        x, y = pair\n        print(x - y)\n    return b",
        "for x, y in a:\n        print(x - y)\n    return b",
    ),
]


@pytest.mark.parametrize(("one", "other"), EDITS)
def test_an_edit_is_undone(one: str, other: str) -> None:
    first, second = (f"def f(a, b):\n    {body}\n" for body in (one, other))
    assert code_tokens(canonical(first)) == code_tokens(canonical(second))  # names aside


@pytest.mark.parametrize(
    ("one", "other"),
    [("return a < b", "return a > b"), ("return a - b", "return b - a"), ("return a", "return b")],
)
def test_another_meaning_is_another_form(one: str, other: str) -> None:
    first, second = (f"def f(a, b):\n    {body}\n" for body in (one, other))
    assert canonical(first) != canonical(second)


def test_a_function_that_only_calls_another_is_left_out() -> None:
    inner = "def f(a):\n    return a + 1\n"
    assert canonical(f"{inner}\ndef g(b):\n    return f(b)\n") == canonical(inner)


def test_a_variable_named_like_a_builtin_is_a_variable() -> None:
    assert canonical("def f(max):\n    return max") == canonical("def g(x):\n    return x")


def test_text_that_is_no_python_stays() -> None:
    assert canonical("int f() { return 1; }") == "int f() { return 1; }"
