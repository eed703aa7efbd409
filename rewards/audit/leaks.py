"""Whether a text gives a solution away.

Texts are compared without white space, quotes and parentheses, so that layout does not hide a copy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import islice

from problems.schema import Problem
from problems.syntax import normal_form, tree_of
from problems.verification.plain_cases import PlainCase, plain_cases

MIN_LINE, MIN_COPY = 8, 30  # characters of a line that tells, and of a copy
MAX_LINES = 300  # of a solution that are looked for
SHARE = 0.75  # of the solution's telling characters
MIN_TESTS = 2  # hidden tests whose answers the statement must show
LAYOUT = str.maketrans("", "", "'\"()")
NEAR = 40  # characters between a call and its result
COMMON = re.compile(
    r"^(import|from|def|class|return$|#|set-|else|try|echo$|cd|mkdir|fi$|done|if__name__|exit|"
    r"python3?-?$|apt|pip|source|with|pass$)"
)


def squeezed(text: str) -> str:
    return "".join(text.translate(LAYOUT).split())


def telling_lines(source: str) -> list[str]:
    """Return the lines of a solution that no other program is likely to have, squeezed."""
    lines = dict.fromkeys(map(squeezed, source.splitlines()))
    telling = (line for line in lines if len(line) >= MIN_LINE and not COMMON.match(line))
    return list(islice(telling, MAX_LINES))


def copied(lines: Sequence[str], text: str) -> float:
    """Return the share of the solution's characters that a text has, 0 for too little to tell."""
    total, inside = sum(map(len, lines)), squeezed(text)
    found = sum(len(line) for line in lines if line in inside)
    return found / total if total and found >= MIN_COPY else 0.0


def line_set(text: str) -> frozenset[str]:
    return frozenset(map(squeezed, text.splitlines()))


def copied_lines(lines: Sequence[str], inside: frozenset[str]) -> float:
    """Like `copied`, of a text's lines as a set: only whole lines count."""
    found = sum(len(line) for line in lines if line in inside)
    return found / sum(map(len, lines)) if found >= MIN_COPY else 0.0


def body_lines(source: str, entry_point: str | None) -> list[str]:
    """Return the telling lines of the entry point's body, or of the whole program, without
    docstrings and comments.
    """
    if (tree := tree_of(source)) is None:
        return telling_lines(source)
    name = (entry_point or "").partition("().")[0]
    kinds = (ast.FunctionDef, ast.ClassDef)
    own = [node for node in tree.body if isinstance(node, kinds) and node.name == name]
    body = [part for node in own for part in node.body] or tree.body
    said = [part for part in body if not _is_text(part)]
    try:
        return telling_lines("\n".join(map(ast.unparse, said)))
    except RecursionError:
        return telling_lines(source)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def row_leak(problem: Problem) -> str:
    """Return how statement or starter code give the answer away; "" if they do not."""
    for number, solution in enumerate(problem.solutions, 1):
        lines, whole = body_lines(solution, problem.entry_point), squeezed(solution)
        for where, text in (("statement", problem.statement), ("starter", problem.starter_code)):
            if problem.starter_code and normal_form(problem.starter_code) == normal_form(solution):
                return f"the starter code is solution {number}"
            all_of_it = len(whole) >= MIN_LINE and whole in squeezed(text)
            if (share := max(float(all_of_it), copied(lines, text))) >= SHARE:
                return f"the {where} has {share:.0%} of solution {number}"
    hidden = list(plain_cases(problem))[problem.visible_tests :]
    # A statement shows the first tests of some sources, all of which then count as visible.
    inside = squeezed(problem.statement)
    shown = [_answered(case, problem.entry_point or "", inside) for case in hidden]
    telling = [each for each in shown if each is not None]
    if len(telling) >= max(MIN_TESTS, len(hidden) / 2) and all(telling):
        return f"the statement has the answers of {len(telling)} of {len(hidden)} hidden tests"
    return ""


def _answered(case: PlainCase, entry_point: str, inside: str) -> bool | None:
    """Return whether a text has a test's result after its input; None if both are too short to
    tell.
    """
    given = squeezed(
        ", ".join(each if isinstance(each, str) else repr(each) for each in case.given)
    )
    value = squeezed(case.expected if isinstance(case.expected, str) else repr(case.expected))
    texts = [text for text in (given, squeezed(entry_point) + given) if text]
    texts = [text for text in texts if len(text) + len(value) >= MIN_LINE]
    places = [match.end() for text in texts for match in re.finditer(re.escape(text), inside)]
    found = any(value in inside[place : place + NEAR + len(value)] for place in places)
    return found if texts else None


def _written(value: object) -> str:
    return value if isinstance(value, str) else repr(value)
