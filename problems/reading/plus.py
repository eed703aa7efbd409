"""Tests of EvalPlus: a completion must return what the canonical solution returns.

This applies to every input (arXiv:2305.01210). There are two tests per task, with base inputs and
plus inputs, so that one run gives both scores. A test contains the inputs and the canonical
solution. It runs in the test process, so that no expected value gets near the program.

Floats are compared as upstream does: exactly, else within `atol` (1e-6 from the first float on if a
task names none) plus 1e-7 of the value. One difference: upstream's time limit is per input, here it
is per test.
"""

from __future__ import annotations

from typing import Any

from sandbox.styles.source_text import literal

TEMPLATE = """from copy import deepcopy
from math import inf, nan

SPACE = {{"__name__": "canonical"}}
exec({canonical!r}, SPACE)
INPUTS = {inputs}


def floats(value):
    return isinstance(value, float) or (isinstance(value, (list, tuple)) and all(isinstance(item, float) for item in value))


def near(got, expected, atol):
    if isinstance(expected, (list, tuple)):
        return isinstance(got, (list, tuple)) and len(got) == len(expected) and all(near(g, e, atol) for g, e in zip(got, expected))
    if not isinstance(got, (int, float, complex)) or not isinstance(expected, (int, float, complex)):
        return False
    return got == expected or abs(got - expected) <= atol + 1e-7 * abs(expected)


def check(candidate):
    atol = {atol!r}
    for args in INPUTS:
        expected = SPACE[{entry_point!r}](*deepcopy(args))
        got = candidate(*deepcopy(args))
        exact = bool({same})
        if atol == 0 and floats(expected):
            atol = 1e-6
        assert exact or (atol != 0 and type(got) is type(expected) and near(got, expected, atol))
"""  # noqa: E501


def plus_test(
    canonical: str, entry_point: str, inputs: list[Any], atol: float, same: str = "got == expected"
) -> dict[str, str]:
    """Return an `assert` test.

    inputs: one sequence of arguments each; same: an expression over got, expected, args and atol
    that accepts a result.
    """
    return {
        "source": TEMPLATE.format(
            canonical=canonical,
            inputs=literal(inputs),
            atol=atol,
            entry_point=entry_point,
            same=same,
        )
    }
