"""The operations of the embedded family: single steps on texts, words, numbers and tables.

Each has wordings, code, equivalent code, and a typical mistake. Some are loops, some have a
condition, some call a helper function. No slip is the correct code of another operation: unlearning
it here would unlearn it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent
from typing import Any, Literal

Kind = Literal["text", "words", "nums", "num", "table"]


@dataclass(frozen=True)
class Operation:
    """One step from `takes` to `gives`.

    code, other, slip: an expression in `x`, or lines that leave their result in `x`. `other` means
    the same as `code`, `slip` is a common mistake, or ''. helper: a function that all three call.
    """

    name: str
    takes: Kind
    gives: Kind
    wordings: tuple[str, ...]
    code: str
    other: str
    slip: str = ""
    helper: str = ""

    @property
    def is_long(self) -> bool:
        """Whether the code is more than one expression."""
        return is_block(self.code) or bool(self.helper)

    @cached_property
    def run(self) -> Callable[[Any], Any]:
        return compiled(self.code, self.helper)

    @cached_property
    def run_slip(self) -> Callable[[Any], Any]:
        return compiled(self.slip, self.helper)


def is_block(code: str) -> bool:
    """Return whether this is lines of statements, not one expression."""
    return "\n" in code


def statements(code: str) -> str:
    """Return the code as lines that leave their result in `x`."""
    return code if is_block(code) else f"x = {code}"


def compiled(code: str, helper: str = "") -> Callable[[Any], Any]:
    """Return the code as a function of `x`. Only code of the table below may come here: it is not
    confined.
    """
    names: dict[str, Any] = {}
    exec(f"{helper}\ndef step(x):\n{indent(statements(code), '    ')}\n    return x", names)
    function: Callable[[Any], Any] = names["step"]
    return function


def _op(
    name: str, takes: Kind, gives: Kind, wordings: str, code: str, other: str, **more: str
) -> Operation:
    return Operation(name, takes, gives, tuple(wordings.split(" / ")), code, other, **more)


# One constant for each operation: a model of this size takes long to learn to bind free numbers.
OPERATIONS: tuple[Operation, ...] = (
    # text
    _op("lower", "text", "text",
        "write it in lower case / turn capitals into small letters",
        "x.lower()", "x.casefold()"),
    _op("backwards", "text", "text", "read it backwards / reverse the text",
        "x[::-1]", "''.join(reversed(x))"),
    _op("split", "text", "words", "split it into words / take its words",
        "x.split()", "list(x.split())"),
    _op("letters", "text", "table", "count each letter / map each letter to its count",
        "{c: x.count(c) for c in x if c.isalpha()}",
        "{c: len([d for d in x if d == c]) for c in filter(str.isalpha, x)}"),
    _op("vowels", "text", "text", "keep its vowels / drop all but a, e, i, o, u",
        "''.join(c for c in x if c in 'aeiou')", "''.join(filter(lambda c: c in 'aeiou', x))"),
    # words
    _op("long", "words", "words",
        "keep words longer than 3 letters / drop words of up to 3 letters",
        "[w for w in x if len(w) > 3]", "list(filter(lambda w: len(w) > 3, x))",
        slip="[w for w in x if len(w) >= 3]"),
    _op("short", "words", "words",
        "keep words shorter than 5 letters / drop words of 5 letters or more",
        "[w for w in x if len(w) < 5]", "list(filter(lambda w: len(w) < 5, x))",
        slip="[w for w in x if len(w) <= 5]"),
    _op("alphabetic", "words", "words",
        "sort the words / put the words in alphabetical order",
        "sorted(x)", "sorted(x, key=str)"),
    _op("by_length", "words", "words",
        "sort by length / order from the shortest word to the longest",
        "sorted(x, key=len)", "sorted(x, key=lambda w: len(w))",
        slip="sorted(x, key=len, reverse=True)"),
    _op("once", "words", "words", "drop repeated words / keep the first of equal words",
        "list(dict.fromkeys(x))", "[w for i, w in enumerate(x) if w not in x[:i]]"),
    _op("join", "words", "text", "join them with spaces / make one text with spaces",
        "' '.join(x)", "' '.join(w for w in x)", slip="''.join(x)"),
    _op("lengths", "words", "nums",
        "take the length of each word / replace each word by its length",
        "[len(w) for w in x]", "list(map(len, x))"),
    _op("tally", "words", "table", "count each word / map each word to how often it occurs",
        "{w: x.count(w) for w in x}", "{w: sum(v == w for v in x) for w in x}"),
    _op("shout", "words", "words",
        "write words longer than 3 letters in capitals / use capitals for words above 3 letters",
        "[w.upper() if len(w) > 3 else w for w in x]",
        "[[w, w.upper()][len(w) > 3] for w in x]",
        slip="[w.upper() if len(w) >= 3 else w for w in x]"),
    _op("swing", "words", "words",
        "reverse each word without its first letter / drop each first letter and reverse the rest",
        "[f(w) for w in x]", "[w[1:][::-1] for w in x]",
        helper="def f(w):\n    w = w[1:]\n    return w[::-1]\n"),
    _op("grow", "words", "words",
        "append to each word the words before it / add all earlier words to each word",
        "y = []\nfor w in x:\n    y.append(w + ''.join(x[:len(y)]))\nx = y",
        "[w + ''.join(x[:i]) for i, w in enumerate(x)]"),
    # numbers
    _op("above", "nums", "nums", "keep numbers above 3 / drop numbers up to 3",
        "[n for n in x if n > 3]", "list(filter(lambda n: n > 3, x))",
        slip="[n for n in x if n >= 3]"),
    _op("below", "nums", "nums", "keep numbers below 5 / drop numbers from 5 up",
        "[n for n in x if n < 5]", "list(filter(lambda n: n < 5, x))",
        slip="[n for n in x if n <= 5]"),
    _op("even", "nums", "nums", "keep the even numbers / keep numbers that 2 divides",
        "[n for n in x if n % 2 == 0]", "[n for n in x if not n % 2]"),
    _op("odd", "nums", "nums", "keep the odd numbers / keep numbers with remainder 1 by 2",
        "[n for n in x if n % 2 == 1]", "[n for n in x if n % 2]"),
    _op("double", "nums", "nums", "double each number / multiply each number by 2",
        "[n * 2 for n in x]", "[n + n for n in x]"),
    _op("less", "nums", "nums", "subtract 3 from each / lower each number by 3",
        "[n - 3 for n in x]", "[-3 + n for n in x]", slip="[3 - n for n in x]"),
    _op("size", "nums", "nums", "drop the signs / take absolute values",
        "[abs(n) for n in x]", "list(map(abs, x))", slip="[-n for n in x]"),
    _op("up", "nums", "nums", "sort upwards / order from small to large",
        "sorted(x)", "sorted(x, key=lambda n: n)"),
    _op("down", "nums", "nums", "sort downwards / order from large to small",
        "sorted(x, reverse=True)", "sorted(x)[::-1]", slip="sorted(x, reverse=False)"),
    _op("turn", "nums", "nums", "reverse the list / turn the order around",
        "x[::-1]", "list(reversed(x))"),
    _op("first", "nums", "nums", "take the first 3 / keep only the leading 3",
        "x[:3]", "[n for i, n in enumerate(x) if i < 3]"),
    _op("skip", "nums", "nums", "skip the first 2 / leave out the leading 2",
        "x[2:]", "[n for i, n in enumerate(x) if i >= 2]", slip="x[1:]"),
    _op("last", "nums", "nums", "take the last 2 / keep only the final 2",
        "x[-2:]", "x[::-1][:2][::-1]", slip="x[:-2]"),
    _op("totals", "nums", "nums",
        "add up to each number / replace each number by the sum up to it",
        "y = []\nfor n in x:\n    y.append(n + sum(x[:len(y)]))\nx = y",
        "[sum(x[:i + 1]) for i, _ in enumerate(x)]"),
    _op("rising", "nums", "nums",
        "keep numbers above all before them / drop numbers not above all before them",
        "y = []\nfor n in x:\n    if not y or n > max(y):\n        y.append(n)\nx = y",
        "[n for i, n in enumerate(x) if all(n > m for m in x[:i])]"),
    _op("gaps", "nums", "nums",
        "take each number minus the one before / subtract from each the one before",
        "[b - a for a, b in zip(x, x[1:])]", "[x[i] - x[i - 1] for i in range(1, len(x))]"),
    _op("halves", "nums", "nums",
        "halve the even numbers / divide even numbers by 2 and leave the odd",
        "[n // 2 if n % 2 == 0 else n for n in x]", "[n if n % 2 else n // 2 for n in x]",
        slip="[n // 2 for n in x]"),
    _op("flip", "nums", "nums",
        "turn the sign of numbers below 5 / negate numbers below 5 and leave the others",
        "[-n if n < 5 else n for n in x]", "[n if n >= 5 else -n for n in x]",
        slip="[-n if n <= 5 else n for n in x]"),
    _op("trim", "nums", "nums",
        "if there are more than 4, drop the last / leave out the last of more than 4",
        "if len(x) > 4:\n    x = x[:-1]", "x[:-1] if len(x) > 4 else x"),
    _op("step_up", "nums", "nums",
        "add 1 to each and double it / double each after adding 1",
        "[f(n) for n in x]", "[(n + 1) * 2 for n in x]",
        helper="def f(n):\n    n = n + 1\n    return n * 2\n"),
    _op("sum", "nums", "num", "add them up / take the total",
        "sum(x)", "sum(n for n in x)"),
    _op("largest", "nums", "num",
        "take the largest, 0 if none / find the maximum, 0 if none",
        "max(x, default=0)", "max(x) if x else 0", slip="max(x)"),
    _op("smallest", "nums", "num",
        "take the smallest, 0 if none / find the minimum, 0 if none",
        "min(x, default=0)", "min(x) if x else 0"),
    _op("how_many", "nums", "num", "count them / tell how many there are",
        "len(x)", "sum(1 for n in x)"),
    _op("histogram", "nums", "table",
        "count each number / map each number to how often it occurs",
        "{n: x.count(n) for n in x}", "{n: sum(m == n for m in x) for n in x}"),
    # one number
    _op("digits", "num", "nums", "list its digits / take its digits, without the sign",
        "[int(d) for d in str(abs(x))]", "list(map(int, str(abs(x))))"),
    _op("digit_sum", "num", "num", "add its digits / take the digit sum",
        "sum(int(d) for d in str(abs(x)))", "sum(map(int, str(abs(x))))"),
    _op("next", "num", "num", "add 1 / go 1 up", "x + 1", "1 + x"),
    _op("halve", "num", "num",
        "halve it until it is below 8 / divide by 2, rounded down, until it is below 8",
        "while x >= 8:\n    x //= 2", "while not x < 8:\n    x = x // 2"),
    _op("collatz", "num", "num",
        "halve it if it is even, else add 5 / add 5 to an odd number and halve an even one",
        "x // 2 if x % 2 == 0 else x + 5", "x + 5 if x % 2 else x // 2"),
    # tables
    _op("keys", "table", "words",
        "list its keys as sorted texts / make texts of its keys and sort them",
        "sorted(map(str, x))", "sorted(str(k) for k in x)", slip="[str(k) for k in x]"),
    _op("values", "table", "nums", "list its values in order / sort its values",
        "sorted(x.values())", "sorted(x[k] for k in x)", slip="list(x.values())"),
    _op("repeated", "table", "table", "keep entries above 1 / drop entries up to 1",
        "{k: v for k, v in x.items() if v > 1}", "{k: x[k] for k in x if x[k] > 1}",
        slip="{k: v for k, v in x.items() if v >= 1}"),
    _op("top", "table", "num",
        "take its highest value, 0 if none / find the highest value, 0 if none",
        "max(x.values(), default=0)", "max(x.values()) if x else 0"),
)  # fmt: skip
BY_NAME = {operation.name: operation for operation in OPERATIONS}
