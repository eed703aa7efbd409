"""Change a number in statement and solutions, and compute the outputs again.

The statement must contain the number once, and a solution must use it once. At least two such
solutions must agree on the outputs: with only one, the number in the program often had another
meaning than the one in the statement ("two digits" and a step of 2). A solution without the number
is left out. Statements with examples are rejected, because the examples would become wrong.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence

from artifacts.parsing import parse
from problems.augmentation.draft import Draft, inputs_of, reason_outputs_fixed
from problems.schema import Problem
from problems.syntax import tree_of

WORDS = dict(
    enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
)
MIN_VALUE = 2  # 0 and 1 are rarely a choice of the problem; they mostly belong to counting
STEPS = (-3, -2, -1, 1, 2, 3)


def mutate(problem: Problem, _: Sequence[Problem], rng: random.Random) -> Draft | str:
    if why := reason_outputs_fixed(problem):
        return why
    positions = numbers(problem.statement)
    candidates = [
        number
        for number in sorted(positions)
        if sum(uses(source, number) == 1 for source in problem.solutions) > 1
    ]
    if not candidates:
        return "no number that its statement says once and two solutions use once"
    old = rng.choice(candidates)
    free = [
        new
        for step in STEPS
        if (new := old + step) >= MIN_VALUE
        and new not in positions
        and not any(uses(source, new) for source in problem.solutions)
    ]
    if not free:
        return "no number beside it that is free"
    new = rng.choice(free)
    solutions = tuple(
        _with(source, old, new) for source in problem.solutions if uses(source, old) == 1
    )
    start, end = positions[old]
    word = WORDS[new] if problem.statement[start:end].isalpha() and new in WORDS else str(new)
    statement = problem.statement[:start] + word + problem.statement[end:]
    return Draft(
        kind="constant",
        parents=(problem,),
        statement=statement,
        entry_point=str(problem.entry_point),
        solutions=solutions,
        tests=inputs_of(problem),
        starter_code=problem.starter_code,
        differs=True,
        change=f"{old} → {new}",
    )


def numbers(statement: str) -> dict[int, tuple[int, int]]:
    """Return the whole numbers that occur exactly once, as digits or a word, with positions."""
    positions: dict[int, list[tuple[int, int]]] = {}
    for match in re.finditer(r"(?<![\w.,^*/+-])\d+(?![\w^*/]|[.,]\d)", statement):
        positions.setdefault(int(match[0]), []).append(match.span())
    for value, word in WORDS.items():
        positions.setdefault(value, []).extend(
            match.span() for match in re.finditer(rf"\b{word}\b", statement, re.IGNORECASE)
        )
    anywhere = re.findall(r"\d+", statement)
    return {
        value: places[0]
        for value, places in positions.items()
        if value >= MIN_VALUE
        and len(places) == 1
        and anywhere.count(str(value)) <= 1
        and not statement[places[0][0]].isupper()
    }


def uses(source: str, number: int) -> int:
    """Count the number in the program, including in strings and with a sign."""
    if (tree := tree_of(source)) is None:
        return 0
    return sum(
        _is(node, number) or (isinstance(node, ast.Constant) and node.value == -number)
        for node in ast.walk(tree)
    )


def _is(node: ast.AST, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


def _with(source: str, old: int, new: int) -> str:
    """Replace the number at its own position; the rest of the source stays the same."""
    node = next(node for node in ast.walk(parse(source)) if _is(node, old))
    assert isinstance(node, ast.Constant) and node.end_col_offset is not None
    lines = source.split("\n")
    line = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (
        line[: node.col_offset] + str(new).encode() + line[node.end_col_offset :]
    ).decode()
    return "\n".join(lines)
