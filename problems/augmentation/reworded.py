"""Reword a statement by rules: synonyms and phrases that are equivalent in programming tasks.

Programs and tests stay the same. Words and short phrases change; the order of sentences and the
content do not. Code, calls and quoted texts are left unchanged. The rules do not understand
sentences, so the table has only words with one meaning in such texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from problems.augmentation.draft import Draft, change_prose
from problems.schema import Problem

MIN_RULES = 2  # minimum number of rules that apply
GROUPS = (  # members are interchangeable
    "integers / whole numbers",
    "largest / greatest / biggest",
    "determine whether / check whether / decide whether",
    "determine if / check if / decide if",
    "calculate / compute / work out",
    "in ascending order / from the smallest to the largest",
    "in descending order / from the largest to the smallest",
    "greater than / larger than",
    "less than / smaller than",
    "otherwise / in all other cases",
    "appears / occurs",
    "appear / occur",
    "the sum of / the total of",
    "for each / for every",
    "for an empty list / where the list is empty",
    "for an empty text / where the text is empty",
    "equal to / the same as",
    "you are given / you get",
    "must be / has to be",
    "at the end / in the last place",
    "at the beginning / at the start",
    "consecutive / successive",
)
ONE_WAY = (  # not always valid in the other direction
    (r"\bwrite a (?:python )?function to\b", ("implement a function to", "program a function to")),
    (
        r"\bwrite a (?:python )?function (?:that|which)\b",
        ("implement a function that", "define a function which"),
    ),
    (r"(?:(?<=^)|(?<=\. ))Write(?= \x00)", ("Implement", "Program", "Define")),
    (r"\bit returns\b", ("its result is", "what it returns is")),
    (r"\bwhich returns\b", ("whose result is", "returning")),
    (r"\bwhich tells\b", ("which says", "which finds out")),
    (r"\bthe text\b", ("the string",)),
    (r"\bthe string\b", ("the text",)),
    (r"\b0 or more\b", ("at least 0", "not negative")),
    (r"\bis at least 1\b", ("is 1 or more", "is never less than 1")),
    (r"\ball the\b", ("all of the",)),
    (r"\bremove\b", ("take out", "drop")),
    (r"\bin the order in which\b", ("in the same order as",)),
    (r"\bfor example\b", ("for instance",)),
)


def mutate(problem: Problem, _: Sequence[Problem], rng: random.Random) -> Draft | str:
    changes: list[str] = []
    statement = change_prose(problem.statement, lambda prose: _reword(prose, rng, changes))
    if len(changes) < MIN_RULES:
        return f"fewer than {MIN_RULES} of the rules apply to its words"
    first = problem
    return Draft(
        kind="reworded",
        parents=(first,),
        statement=statement,
        entry_point=str(first.entry_point),
        solutions=first.solutions,
        tests=first.tests,
        starter_code=first.starter_code,
        change="; ".join(changes),
    )


def _reword(prose: str, rng: random.Random, changes: list[str]) -> str:
    """Apply every rule once to the original text; no rule changes another rule's output."""
    spans: list[tuple[int, int, str]] = []
    for pattern, others in _RULES:
        for match in re.finditer(pattern, prose, re.IGNORECASE):
            start, end = match.span()
            if all(end <= a or b <= start for a, b, _ in spans):
                other = rng.choice(others)
                spans.append(
                    (start, end, other[0].upper() + other[1:] if match[0][0].isupper() else other)
                )
    for start, end, other in sorted(spans, reverse=True):
        changes.insert(0, f"{prose[start:end]} → {other}")
        prose = prose[:start] + other + prose[end:]
    return prose


def _rules() -> list[tuple[str, tuple[str, ...]]]:
    rules = list(ONE_WAY)
    for group in GROUPS:
        members = group.split(" / ")
        rules += [
            (rf"\b{member}\b", tuple(other for other in members if other != member))
            for member in members
        ]
    return sorted(rules, key=lambda rule: -len(rule[0]))  # the longest phrase first


_RULES = _rules()
