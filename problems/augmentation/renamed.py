"""Rename the function, its parameters and variables; the statement follows.

Tests stay the same, except for arguments passed by name. A name that the statement may also use as
an English word ("puts rolls on trays") is kept, because replacing it might change the meaning.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence

from problems.augmentation.draft import CALL, Draft, function, reason_unchangeable
from problems.augmentation.names import Unclear, all_names, fresh, own_names, parameters, renamed
from problems.schema import Problem
from problems.syntax import parse

ENTRIES = (
    "work_out",
    "answer_for",
    "task",
    "run_it",
    "respond",
    "figure_out",
    "do_step",
    "process",
)
PARAMETERS = ("p", "q", "r", "u", "v", "w")
VARIABLES = (
    "item",
    "part",
    "mark",
    "spot",
    "kept",
    "seen",
    "unit",
    "pile",
    "side",
    "turn",
    "load",
    "cell",
    "hold",
    "edge",
    "rest",
    "size",
    "way",
)
CODE = rf"```.*?```|`[^`]*`|{CALL}"
VERBS = "is|has|holds|gives|contains|tells|says"


def mutate(problem: Problem, _: Sequence[Problem], rng: random.Random) -> Draft | str:
    if why := reason_unchangeable(problem):
        return why
    entry = str(problem.entry_point)
    functions = {source: node for source in problem.solutions if (node := function(source, entry))}
    first = parameters(next(iter(functions.values())))
    used_names = {name for source in functions for name in all_names(parse(source))} | set(
        re.findall(r"\w+", problem.statement + problem.starter_code)
    )
    if not _is_code(entry, problem.statement):
        return "its function's name is also a word of the statement"
    entry_name = fresh(rng.choice(ENTRIES), used_names)
    pool = [fresh(name, used_names) for name in rng.sample(PARAMETERS, len(PARAMETERS))]
    parameter_names = {
        old: pool.pop() if pool and _is_code(old, problem.statement) else old for old in first
    }
    solutions = []
    for source, node in functions.items():
        if len(own := parameters(node)) == len(first):
            by_place = {
                old: parameter_names[theirs] for old, theirs in zip(own, first, strict=True)
            }
            try:
                solutions.append(
                    renamed(
                        source,
                        by_place
                        | _variables(parse(source), {entry, *own}, set(used_names), rng)
                        | {entry: entry_name},
                    )
                )
            except Unclear:
                continue
    if not solutions:
        return "no solution whose names can be changed for sure"
    names = {entry: entry_name} | parameter_names
    statement = _follow(problem.statement, names)
    tests = tuple(
        {k: _by_name(v, names) if k == "kwargs" else v for k, v in test.items()}
        for test in problem.tests
    )
    if " ".join(statement.split()) == " ".join(problem.statement.split()):
        return "its statement names nothing that changes: it would be a copy"
    change = ", ".join(f"{old} → {new}" for old, new in names.items() if old != new)
    return Draft(
        kind="renamed",
        parents=(problem,),
        statement=statement,
        entry_point=entry_name,
        solutions=tuple(solutions),
        tests=tests,
        starter_code=_follow(problem.starter_code, names),
        change=change,
    )


def _variables(
    tree: ast.Module, excluded: set[str], used_names: set[str], rng: random.Random
) -> dict[str, str]:
    pool = rng.sample(VARIABLES, len(VARIABLES))
    return {
        old: fresh(pool[at % len(pool)], used_names)
        for at, old in enumerate(name for name in own_names(tree) if name not in excluded)
    }


def _is_code(name: str, statement: str) -> bool:
    """Return whether each occurrence of the name means the name, not an English word.

    It looks like a name, is in code, or is followed by a verb like "is".
    """
    if len(name) == 1 and name not in "aAI":
        return True
    if "_" in name or not name.isalpha() or name[1:] != name[1:].lower():
        return True
    code = [match.span() for match in re.finditer(CODE, statement, re.DOTALL)]
    for match in _occurrences(name, statement):
        is_name = re.match(rf"\s(?:{VERBS})\b", statement[match.end() :]) and not re.search(
            r"\b(?:an?|the|each|every)\s$", statement[: match.start()], re.I
        )
        if not is_name and not any(start <= match.start() < end for start, end in code):
            return False
    return True


def _occurrences(name: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?<![\w'’.]){re.escape(name)}(?!\w|['’]\w{{2}})", text))


def _follow(text: str, names: dict[str, str]) -> str:
    replacements = sorted(
        ((match.span(), new) for old, new in names.items() for match in _occurrences(old, text)),
        reverse=True,
    )
    for (start, end), new in replacements:
        text = text[:start] + new + text[end:]
    return text


def _by_name(kwargs: dict[str, object], names: dict[str, str]) -> dict[str, object]:
    return {names.get(key, key): value for key, value in kwargs.items()}
