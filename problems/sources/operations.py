"""The operations of the embedded family.

Each has wordings, code, equivalent code, and a typical mistake. No slip is the correct code of
another operation: unlearning it here would unlearn it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "words", "nums", "num", "table"]


@dataclass(frozen=True)
class Operation:
    """One step from `takes` to `gives`.

    `code` and `other` are expressions in `x` with the same meaning; `slip` is a common mistake, or
    ''.
    """

    name: str
    takes: Kind
    gives: Kind
    wordings: tuple[str, ...]
    code: str
    other: str
    slip: str = ""


def _op(
    name: str, takes: Kind, gives: Kind, wordings: str, code: str, other: str, slip: str = ""
) -> Operation:
    return Operation(name, takes, gives, tuple(wordings.split(" / ")), code, other, slip)


# One constant per operation: a model of this size takes long to learn to bind free numbers, and
# that is not the aim here.
OPERATIONS: tuple[Operation, ...] = (
    # text
    _op("lower", "text", "text", "write it in lower case / turn capitals into small letters",
        "x.lower()", "x.casefold()"),
    _op("backwards", "text", "text", "read it backwards / reverse the text", "x[::-1]",
        "''.join(reversed(x))"),
    _op("split", "text", "words", "split it into words / take its words", "x.split()",
        "list(x.split())"),
    _op("letters", "text", "table", "count each letter / map each letter to its count",
        "{c: x.count(c) for c in x if c.isalpha()}",
        "{c: len([d for d in x if d == c]) for c in filter(str.isalpha, x)}"),
    # words
    _op("long", "words", "words",
        "keep words longer than 3 letters / drop words of up to 3 letters",
        "[w for w in x if len(w) > 3]", "list(filter(lambda w: len(w) > 3, x))",
        "[w for w in x if len(w) >= 3]"),
    _op("short", "words", "words",
        "keep words shorter than 5 letters / drop words of 5 letters or more",
        "[w for w in x if len(w) < 5]", "list(filter(lambda w: len(w) < 5, x))",
        "[w for w in x if len(w) <= 5]"),
    _op("alphabetic", "words", "words", "sort the words / put the words in alphabetical order",
        "sorted(x)", "sorted(x, key=str)"),
    _op("by_length", "words", "words",
        "sort by length / order from the shortest word to the longest", "sorted(x, key=len)",
        "sorted(x, key=lambda w: len(w))", "sorted(x, key=len, reverse=True)"),
    _op("once", "words", "words", "drop repeated words / keep each word once",
        "list(dict.fromkeys(x))", "[w for i, w in enumerate(x) if w not in x[:i]]"),
    _op("join", "words", "text", "join them with spaces / make one text of them", "' '.join(x)",
        "' '.join(w for w in x)", "''.join(x)"),
    _op("lengths", "words", "nums",
        "take the length of each word / replace each word by its length", "[len(w) for w in x]",
        "list(map(len, x))"),
    _op("tally", "words", "table", "count each word / map each word to how often it occurs",
        "{w: x.count(w) for w in x}", "{w: sum(v == w for v in x) for w in x}"),
    # numbers
    _op("above", "nums", "nums", "keep numbers above 3 / drop numbers up to 3",
        "[n for n in x if n > 3]", "list(filter(lambda n: n > 3, x))", "[n for n in x if n >= 3]"),
    _op("below", "nums", "nums", "keep numbers below 5 / drop numbers from 5 up",
        "[n for n in x if n < 5]", "list(filter(lambda n: n < 5, x))", "[n for n in x if n <= 5]"),
    _op("even", "nums", "nums", "keep the even numbers / keep numbers that 2 divides",
        "[n for n in x if n % 2 == 0]", "[n for n in x if not n % 2]"),
    _op("odd", "nums", "nums", "keep the odd numbers / keep numbers with remainder 1 by 2",
        "[n for n in x if n % 2 == 1]", "[n for n in x if n % 2]"),
    _op("double", "nums", "nums", "double each number / multiply each number by 2",
        "[n * 2 for n in x]", "[n + n for n in x]"),
    _op("less", "nums", "nums", "subtract 3 from each / lower each number by 3",
        "[n - 3 for n in x]", "[-3 + n for n in x]", "[3 - n for n in x]"),
    _op("size", "nums", "nums", "drop the signs / take absolute values", "[abs(n) for n in x]",
        "list(map(abs, x))", "[-n for n in x]"),
    _op("up", "nums", "nums", "sort upwards / order from small to large", "sorted(x)",
        "sorted(x, key=lambda n: n)"),
    _op("down", "nums", "nums", "sort downwards / order from large to small",
        "sorted(x, reverse=True)", "sorted(x)[::-1]", "sorted(x, reverse=False)"),
    _op("turn", "nums", "nums", "reverse the list / turn the order around", "x[::-1]",
        "list(reversed(x))"),
    _op("first", "nums", "nums", "take the first 3 / keep only the leading 3", "x[:3]",
        "[n for i, n in enumerate(x) if i < 3]"),
    _op("skip", "nums", "nums", "skip the first 2 / leave out the leading 2", "x[2:]",
        "[n for i, n in enumerate(x) if i >= 2]", "x[1:]"),
    _op("last", "nums", "nums", "take the last 2 / keep only the final 2", "x[-2:]",
        "x[::-1][:2][::-1]", "x[:-2]"),
    _op("sum", "nums", "num", "add them up / take the total", "sum(x)", "sum(n for n in x)"),
    _op("largest", "nums", "num", "take the largest, 0 if none / find the maximum, 0 if none",
        "max(x, default=0)", "max(x) if x else 0", "max(x)"),
    _op("smallest", "nums", "num", "take the smallest, 0 if none / find the minimum, 0 if none",
        "min(x, default=0)", "min(x) if x else 0"),
    _op("how_many", "nums", "num", "count them / tell how many there are", "len(x)",
        "sum(1 for n in x)"),
    _op("histogram", "nums", "table", "count each number / map each number to how often it occurs",
        "{n: x.count(n) for n in x}", "{n: sum(m == n for m in x) for n in x}"),
    # one number
    _op("digits", "num", "nums", "list its digits / take its digits",
        "[int(d) for d in str(abs(x))]", "list(map(int, str(abs(x))))"),
    _op("digit_sum", "num", "num", "add its digits / take the digit sum",
        "sum(int(d) for d in str(abs(x)))", "sum(map(int, str(abs(x))))"),
    _op("next", "num", "num", "add 1 / go one up", "x + 1", "1 + x"),
    # tables
    _op("keys", "table", "words", "list its keys in order / sort its keys", "sorted(map(str, x))",
        "sorted(str(k) for k in x)", "[str(k) for k in x]"),
    _op("values", "table", "nums", "list its values in order / sort its values",
        "sorted(x.values())", "sorted(x[k] for k in x)", "list(x.values())"),
    _op("repeated", "table", "table", "keep entries above 1 / drop entries up to 1",
        "{k: v for k, v in x.items() if v > 1}", "{k: x[k] for k in x if x[k] > 1}",
        "{k: v for k, v in x.items() if v >= 1}"),
    _op("top", "table", "num",
        "take its highest value, 0 if none / find the highest value, 0 if none",
        "max(x.values(), default=0)", "max(x.values()) if x else 0"),
)  # fmt: skip
BY_NAME = {operation.name: operation for operation in OPERATIONS}
