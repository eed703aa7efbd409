"""Compose two problems: the first one's output is the second one's input.

The tests decide what fits: all outputs of f must be within the inputs of g in type, size and
length, because a statement's conditions ("an integer from 0 to 511") exist only in prose. The new
statement contains both statements, in order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from artifacts.parsing import parse
from problems.augmentation.draft import Draft, function, inputs_of, reason_unchangeable
from problems.augmentation.names import Unclear, all_names, fresh, parameters, renamed, top_names
from problems.schema import Problem

PAIRS = 3  # maximum number of solutions of a composed problem
PARTNERS = 64  # number of other problems considered


def mutate(problem: Problem, pool: Sequence[Problem], rng: random.Random) -> Draft | str:
    if why := _unfit(problem):
        return why
    values = [test["expected"] for test in problem.tests]
    partners = rng.sample(pool, min(PARTNERS, len(pool)))
    fitting = [
        partner
        for partner in partners
        if partner.problem_id != problem.problem_id
        and _compatible(problem, partner)
        and _accepts(partner, values)
        and not _unfit(partner)
    ]
    if not fitting:
        return "no other problem takes what it gives"
    other = rng.choice(fitting)
    first, second = str(problem.entry_point), str(other.entry_point)
    entry = f"{first}_then_{second}"
    programs = [
        program
        for one, two in zip(*_paired(problem, other), strict=True)
        if (program := _joined(one, two, first, second, entry))
    ]
    if not programs:
        return "no solutions of the two that fit into one program"
    call = f"{entry}({', '.join(_named(problem))})"
    statement = (
        f"Write {call}, which does two things, one after the other. What the first gives, the "
        "second is called with; return what comes of it.\n\n"
        f"First, as {first}: {problem.statement.strip()}\n\nThen, as {second}: "
        f"{other.statement.strip()}"
    )
    return Draft(
        "composed",
        (problem, other),
        statement,
        entry,
        tuple(programs),
        inputs_of(problem),
        change=f"{second} after {first}",
    )


def covered(value: Any, seen: Sequence[Any]) -> bool:
    """Return whether a value is within the values seen.

    It must have the same type and be between the least and the greatest number. It must be at least
    as long as the shortest, and of equal length if at least three values were seen and all have one
    length. The same applies to its items.
    """
    like = [example for example in seen if type(example) is type(value)]
    if not like or value is None or isinstance(value, (bool, complex)):
        return bool(like)
    if isinstance(value, (int, float)):
        return bool(min(like) <= value <= max(like))
    lengths = sorted(map(len, like))
    if len(value) < lengths[0] or (len(lengths) > 2 and lengths[0] == lengths[-1] != len(value)):
        return False
    if isinstance(value, dict):
        keys, inner = (
            [key for example in like for key in example],
            [inner for example in like for inner in example.values()],
        )
        return all(covered(key, keys) for key in value) and all(
            covered(example, inner) for example in value.values()
        )
    return isinstance(value, (str, bytes)) or all(
        covered(item, [inner for example in like for inner in example]) for item in value
    )


def _unfit(problem: Problem) -> str:
    if why := reason_unchangeable(problem):
        return why
    if (
        problem.kind.is_code
        or problem.checker
        or problem.compare != "exact"
        or problem.tolerance is not None
    ):
        return "its answers are not compared exactly, value by value"
    return ""


def _accepts(other: Problem, values: Sequence[Any]) -> bool:
    """Return whether the problem takes one argument and accepts all these values."""
    if any(len(test.get("args", ())) != 1 or test.get("kwargs") for test in other.tests):
        return False
    accepted = [test["args"][0] for test in other.tests]
    return all(covered(value, accepted) for value in values)


def _compatible(one: Problem, two: Problem) -> bool:
    """Return whether licence and split are the same; otherwise a composition breaks one of them."""
    return (one.licence, one.split) == (two.licence, two.split)


def _paired(one: Problem, two: Problem) -> tuple[list[str], list[str]]:
    """Pair the nth solution of one with the nth of the other; the shorter list starts again."""
    first_sources = [source for source in one.solutions if function(source, str(one.entry_point))]
    second_sources = [source for source in two.solutions if function(source, str(two.entry_point))]
    count = min(PAIRS, max(len(first_sources), len(second_sources)))
    return [first_sources[at % len(first_sources)] for at in range(count)], [
        second_sources[at % len(second_sources)] for at in range(count)
    ]


def _joined(one: str, two: str, first: str, second: str, entry: str) -> str | None:
    """Join both programs and a call of the second on the first one's result.

    Top-level names that both use are changed in the second program.
    """
    trees = parse(one), parse(two)
    used_names = all_names(trees[0]) | all_names(trees[1]) | {entry}
    shared = {
        name: fresh(name, used_names) for name in sorted(top_names(trees[1]) & all_names(trees[0]))
    }
    node = function(one, first)
    assert node
    if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.defaults:
        return None
    try:
        second_source = renamed(two, shared) if shared else two.rstrip() + "\n"
    except Unclear:
        return None
    arguments = ", ".join(parameters(node))
    return (
        f"{one.rstrip()}\n\n\n{second_source}\n\ndef {entry}({arguments}):\n    return "
        f"{shared.get(second, second)}({first}({arguments}))\n"
    )


def _named(problem: Problem) -> list[str]:
    node = next(
        node for source in problem.solutions if (node := function(source, str(problem.entry_point)))
    )
    return parameters(node)
