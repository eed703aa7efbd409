"""Read tests and solutions in the format of competition datasets.

Inputs are next to outputs, solutions are in many languages, and lists are JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from problems.columns import ProblemError
from problems.reading.source import Row, text
from problems.syntax import tree_of
from sandbox.reading import shown

MAX_SOLUTIONS = 5  # upstream has up to hundreds per problem, and each is run several times
MAX_TESTS = 100
METHODS = "class Solution"
# These sites provide these imports to methods implicitly. The builtins come last: `pow` of math and
# of operator takes two arguments.
IMPORTS = """from typing import *
from functools import *
from collections import *
from itertools import *
from heapq import *
from bisect import *
from copy import *
from string import *
from operator import *
from math import *
from builtins import *
import collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string
"""

CONSTANTS = ("True", "False", "None")
# The text of a constant, or the constant itself.
TEXT_OR_CONSTANT = """\
def check(args, got, expected, **kwargs):
    return bool(got == expected or (got is None or got is True or got is False)
                and str(got) == expected)
"""

EITHER = """\
def check(args, got, expected, **kwargs):
    got = list(got) if isinstance(got, tuple) else got
    return bool(got == expected or got == expected[0])
"""
AS_UPSTREAM = (EITHER, TEXT_OR_CONSTANT)

Tests = tuple[dict[str, Any], ...]


def parsed(row: Row, key: str, where: str, empty: Any) -> Any:
    """Return the value of the JSON text under `key`, or `empty` for an empty text.

    Raises ProblemError naming the key.
    """
    written = text(row, key, where)
    if not written.strip():
        return empty
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ProblemError(
            f"key {key!r} holds no JSON text ({error})"[:200], "fetch the file again", where
        ) from error


def stdio_tests(inputs: Any, outputs: Any, where: str) -> Tests:
    """Return tests from pairs of texts; a list is a text's lines, and null an empty input.

    Raises ProblemError if an input has no output.
    """
    return tuple(
        {"stdin": "" if stdin is None else _lines(stdin, where), "stdout": _lines(expected, where)}
        for stdin, expected in _pairs(inputs, outputs, where)
    )


def call_tests(inputs: Any, outputs: Any, where: str) -> Tests:
    """Return tests from pairs of argument lists and results."""
    pairs = _pairs(inputs, outputs, where)
    if not all(isinstance(stdin_or_args, list) for stdin_or_args, _ in pairs):
        raise ProblemError(
            "inputs of a function that are no lists of arguments", "fetch the file again", where
        )
    return tuple(
        {"args": stdin_or_args, "kwargs": {}, "expected": expected}
        for stdin_or_args, expected in pairs
    )


def as_upstream(tests: Tests) -> tuple[Tests, str | None]:
    """Return tests of calls as upstream's harness reads them, and its checker.

    JSON has text keys only: digits as keys of the first argument or of the result are integers. If
    every result is a list of one element, the list and the element are accepted; if every result is
    the text of a Python constant, such as "True", the text and the constant are.
    """
    read = tuple(
        test
        | {
            "args": [*map(_with_numbers, test["args"][:1]), *test["args"][1:]],
            "expected": _with_numbers(test["expected"]),
        }
        for test in tests
    )
    return read, _either(read)


def _either(tests: Sequence[Mapping[str, Any]]) -> str | None:
    results = [test["expected"] for test in tests]
    if all(isinstance(result, str) and result in CONSTANTS for result in results):
        return TEXT_OR_CONSTANT
    single = all(isinstance(result, list) and len(result) == 1 for result in results)
    return EITHER if single else None


def python_3(sources: Iterable[str], prompt: str = "") -> tuple[str, ...]:
    """Return the first few different solutions that are valid Python 3, each after the prompt.

    Upstream mixes Python 3 and Python 2.
    """
    programs = dict[str, None]()
    for source in sources:
        if len(programs) == MAX_SOLUTIONS:
            break
        program = f"{prompt}{source}".replace("\r\n", "\n")
        if tree_of(program):
            programs[program] = None
    return tuple(programs)


def entry_point(name: str, *codes: str) -> str:
    """Return how a test calls the function: as a method if the first of the codes that defines it,
    starter code or solution, has upstream's class.
    """
    defines = re.compile(rf"\bdef\s+{re.escape(name)}\s*\(")
    code = next(filter(defines.search, codes), "\n".join(codes))
    return f"Solution().{name}" if METHODS in code else name


def _with_numbers(value: Any) -> Any:
    """Return an object, also one in a list of one, with integers as keys if all are digits."""
    if isinstance(value, list) and len(value) == 1:
        return [_with_numbers(value[0])]
    if isinstance(value, dict) and value and all(re.fullmatch(r"-?\d+", key) for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def _pairs(inputs: Any, outputs: Any, where: str) -> list[tuple[Any, Any]]:
    """Return each input with its output. Some rows of TACO have more outputs than inputs; upstream
    ignores these outputs.
    """
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) > len(outputs):
        raise ProblemError(
            "inputs and outputs are not two lists with an output for each input",
            "fetch the file again",
            where,
        )
    if not inputs:
        raise ProblemError("there are no tests", "a problem needs one at least", where)
    return list(zip(inputs, outputs, strict=False))[:MAX_TESTS]


def _lines(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    raise ProblemError(
        f"an input or output of a program is {shown(value)}",
        "expected text, or a list of lines",
        where,
    )


def tests_of(record: Any, where: str, *codes: str) -> tuple[str, str | None, Tests, str | None]:
    """Return style, entry point, tests and checker of an `input_output` object.

    codes: starter code and solutions. Raises ProblemError if it is not an object.
    """
    if not isinstance(record, dict):
        raise ProblemError(
            f"key 'input_output' is {shown(record)}",
            "expected an object with inputs and outputs",
            where,
        )
    inputs, outputs, name = (
        record.get("inputs", []),
        record.get("outputs", []),
        record.get("fn_name"),
    )
    if name is None:
        return "stdio", None, stdio_tests(inputs, outputs, where), None
    return "call", entry_point(str(name), *codes), *as_upstream(call_tests(inputs, outputs, where))
