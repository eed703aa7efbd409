"""Drafts: what every kind of augmentation returns, and which problems can be changed at all."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts.hashing import hash_text
from problems.encoding import dumps
from problems.production import is_production
from problems.schema import Problem
from problems.syntax import tree_of

SOURCE = "augmented"
CALL = r"\b[A-Za-z_]\w*\([^()]*\)"
PROTECTED = re.compile(
    rf"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|^\s*>>>.*$|{CALL}",
    re.DOTALL | re.MULTILINE,
)
SHOWS = re.compile(
    r"->|=>|==|>>>|\bexamples?\b|\be\.g\.|\bfor instance\b|\bsuch as\b|\binput\s*:|\boutput\s*:",
    re.IGNORECASE,
)
# a call with a literal argument
LITERALS = re.compile(r"\b[A-Za-z_]\w*\(\s*(?:[\[({\"'\d-]|True\b|False\b|None\b)")


@dataclass(frozen=True)
class Draft:
    """A future problem. Its tests have inputs only: its solutions will compute the outputs."""

    kind: str
    parents: tuple[Problem, ...]
    statement: str
    entry_point: str
    solutions: tuple[str, ...]
    tests: tuple[dict[str, Any], ...]
    starter_code: str = ""
    differs: bool = False  # the parent's solutions must fail its tests
    change: str = ""  # description of the change


Mutation = Callable[[Problem, Sequence[Problem], random.Random], Draft | str]
"""Returns a draft derived from this problem, or the reason why there is none. The second
argument holds all problems that it may be combined with, in order of the ids.
"""


def problem_of(
    draft: Draft, tests: Sequence[dict[str, Any]], solutions: Sequence[str], outputs_by: str
) -> Problem:
    """Return the problem that a draft becomes with these tests.

    It has the licence and the split of its parents, which share both.
    """
    first = draft.parents[0]
    key = hash_text(
        dumps([draft.kind, [p.problem_id for p in draft.parents], draft.statement, draft.solutions])
    )[:12]
    origin = {
        "parents": [p.problem_id for p in draft.parents],
        "made_by": f"augmentation/{draft.kind}",
        "change": draft.change,
    }
    packages = sorted({name for parent in draft.parents for name in parent.packages})
    extra = origin | ({"packages": packages} if packages else {}) | {"outputs_by": outputs_by}
    return replace(
        first,
        problem_id=f"{SOURCE}/{draft.kind}/{key}",
        source=SOURCE,
        statement=draft.statement,
        tests=tuple(tests),
        entry_point=draft.entry_point,
        starter_code=draft.starter_code,
        solutions=tuple(solutions),
        visible_tests=min(first.visible_tests, max(0, len(tests) - 1)),
        tags=tuple(dict.fromkeys(tag for parent in draft.parents for tag in parent.tags)),
        extra=extra,
    )


def reason_not_parent(problem: Problem) -> str:
    """Return why a problem is never a parent, for any kind, or ''."""
    if problem.gated:
        return "gated"
    if problem.split != "train":
        return f"of part {problem.split}"
    if "composition" in problem.extra or problem.parents:
        return "made of others already"
    if is_production(problem):
        return "from production"
    return ""


def reason_unchangeable(problem: Problem) -> str:
    """Return why the programs cannot be changed here, or ''."""
    if problem.kind.shared or not problem.kind.has_entry_point:
        return f"style {problem.style}: there is no function to change"
    if not problem.entry_point or not problem.entry_point.isidentifier():
        return "its entry point is a method"
    if not any(function(source, problem.entry_point) for source in problem.solutions):
        return "no solution defines its entry point as a function"
    return ""


def reason_outputs_fixed(problem: Problem) -> str:
    """Return why other outputs cannot be computed, or would contradict the statement, or ''."""
    if (why := reason_unchangeable(problem)) or problem.kind.is_code:
        return why or f"style {problem.style}: its tests hold their values as code"
    if problem.checker:
        return "its answers are judged by a program of its own"
    return (
        "its statement shows examples, which would be wrong"
        if shows_examples(problem.statement)
        else ""
    )


def function(source: str, name: str) -> ast.FunctionDef | None:
    """Return the top-level function of that name, if there is exactly one."""
    tree = tree_of(source)
    functions = [
        node
        for node in (tree.body if tree else ())
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    return functions[0] if len(functions) == 1 else None


def shows_examples(statement: str) -> bool:
    """Return whether the statement shows an output for some input.

    Such an example becomes wrong as soon as the outputs change.
    """
    return bool(SHOWS.search(statement) or LITERALS.search(statement))


def change_prose(statement: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the prose of the statement only: code, calls and quoted texts stay."""
    protected: list[str] = []

    def hide(match: re.Match[str]) -> str:
        protected.append(match[0])
        return f"\x00{len(protected) - 1}\x00"

    return re.sub(
        r"\x00(\d+)\x00",
        lambda match: protected[int(match[1])],
        change(PROTECTED.sub(hide, statement)),
    )


def inputs_of(problem: Problem) -> tuple[dict[str, Any], ...]:
    return tuple(
        {key: value for key, value in test.items() if key != "expected"} for test in problem.tests
    )
