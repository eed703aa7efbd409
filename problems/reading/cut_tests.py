"""Leave out tests that a web page shows cut off: "100000\\n1 2 3 4 5 6 7..."."""

from __future__ import annotations

import re
from dataclasses import replace

from problems.columns import ProblemError
from problems.schema import Problem

_CUT = re.compile(r"\w(?:\.\.\.|…)\s*\Z")
_NUMBERS = re.compile(r"\d(?:\.\.\.|…)\s*\Z")
_LIST = re.compile(r"(?:\d+,? +){3}\[?(?:\.\.\.|…)\]?\s*\Z")  # "1 2 3 ..."; not "3 ...", a map
# "5 [...]", "1 2 (truncated)", "[output omitted]", "1 2 ... 40 more items"
_MARK = re.compile(
    r"\d,?\s*\[(?:\.\.\.|…)\]\s*\Z|"
    r"[\[(<](?:[\w.…]+\W+){0,3}(?:truncated|omitted|abbreviated|cut off)\b[^\])>\n]*[\])>]\s*\Z|"
    r"(?:\.\.\.|…)\s*[\[(]?(?:and )?\d+ more\b[^\n]*\Z",
    re.IGNORECASE,
)
LONG = 100  # characters; a shorter text that ends in dots may be meant so


def without_cut_tests(problem: Problem, where: str) -> Problem:
    """Return the problem without cut tests; `extra["cut_tests"]` counts them.

    Dots in other places show that they belong to the data, such as a map. Raises ProblemError if
    no test is left.
    """
    if "stdin" not in problem.kind.keys:
        return problem
    cut = [any(_cut(text) for text in (test["stdin"], test["stdout"])) for test in problem.tests]
    if not any(cut):
        return problem
    kept = tuple(test for test, lost in zip(problem.tests, cut, strict=True) if not lost)
    if not kept:
        raise ProblemError("every test is cut off (...)", "fetch the whole tests", where)
    visible = sum(not lost for lost in cut[: problem.visible_tests])
    extra = problem.extra | {"cut_tests": sum(cut)}
    return replace(problem, tests=kept, visible_tests=visible, extra=extra)


def _cut(text: str) -> bool:
    if _LIST.search(text) or _MARK.search(text):
        return True
    if not _CUT.search(text) or ".." in text.rstrip()[:-3]:
        return False
    return len(text) > LONG or bool(_NUMBERS.search(text))
