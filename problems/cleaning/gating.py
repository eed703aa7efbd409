"""What is for evaluation only: which tasks are gated, judged by a task's name over all releases and by what it asks, never by a row's word.

MBPP is gated by task over all releases: its test tasks 11 to 510, and every id that is in a release of MBPP+ or in sanitized MBPP, whatever its split
(108 of the 378 tasks of MBPP+ v0.2.0 lie in MBPP's train range). MBPP+ v0.1.0 had 399 tasks; its list is not at hand, but it was taken from sanitized
MBPP, so all 427 sanitized ids are gated, which is more than needed by a few. HumanEval(+), BigCodeBench and LiveCodeBench are gated whole, APPS and
TACO by split, LeetCodeDataset and CodeContests by split and, as upstream splits them by date, by date. `gated_ids.json` holds the lists,
`gated_statements.json` hashes of what the tasks of the sets at hand ask, so that a copy under another name is known though the set is not there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from problems.cleaning.normalize import folded
from problems.schema import Problem

IDS = Path(__file__).with_name("gated_ids.json")
STATEMENTS = Path(__file__).with_name(
    "gated_statements.json"
)  # made by measurements/gated_statements.py
MBPP_TEST = range(11, 511)
LEETCODE_SINCE = "2024-07-01"  # upstream's test split
LEETCODE_FIRST = 3200  # the question's number of about that day, for a row without a date
CONTEST_FIRST = 1548  # of Codeforces: CodeContests' validation split begins on 15 July 2021
NAMING = (
    "task_id",
    "id",
    "problem_id",
    "question_id",
    "name",
    "slug",
    "titleSlug",
    "title_slug",
    "key",
    "url",
    "parents",
    "made_from",
)
WORD = re.compile(r"[^\W_]+")
MENTION = re.compile(
    (
        r"human[-_ "
        r"]?eval|mbpp|bigcode[-_]?bench|live[-_]?code[-_]?bench|code[-_]?contests|(?<![a-z])(?:apps|taco)/test"
    ),
    re.I,
)
NUMBERED = re.compile(
    r"(human[-_ ]?eval|mbpp|bigcode[-_]?bench)(?:[^/#]*[/#]|[-_ +a-z]*[-_ ])(\d+)(?![\w.])", re.I
)
UNSEEN = re.compile(r"live[-_]?code[-_]?bench[^/]*/.+|(?<![a-z])(?:apps|taco)/test[-/].+", re.I)
CONTEST = re.compile(r"code[-_]?contests[^/]*/(\d+)_[a-z]", re.I)


@cache
def gated_mbpp() -> frozenset[int]:
    """All gated task numbers of MBPP."""
    return frozenset(MBPP_TEST).union(*_listed("mbpp").values())


@cache
def gated_leetcode() -> frozenset[str]:
    """The test tasks of LeetCodeDataset, by their names in an address of the site."""
    return frozenset().union(*_listed("leetcode").values())


def is_gated_mbpp(task: int) -> bool:
    return task in gated_mbpp()


def is_gated_leetcode(slug: str, date: str = "", number: str = "") -> bool:
    """By name, by date (ISO), or where there is none by the question's number."""
    late = date >= LEETCODE_SINCE if date else number.isdecimal() and int(number) >= LEETCODE_FIRST
    return late or slug in gated_leetcode()


def is_gated_contest(name: str) -> bool:
    """A Codeforces task, `1575_A. Another Sorting Problem` or as an id, of a contest that CodeContests does not train on."""
    number = re.match(r"(\d+)_[A-Za-z]", name)
    return number is not None and int(number[1]) >= CONTEST_FIRST


def gated_as(problem: Problem) -> str | None:
    """The gated task that this problem, or one that it was made from, is; None where nothing says so.

    Read are the id, what naming columns there are in `extra`, and the statement, whatever the source is called and whatever its row claims.
    """
    named = next((task for name in _names(problem) if (task := _gated_name(name))), None)
    known = gated_statements()
    return (
        named
        or known.get(words_hash(problem.statement))
        or known.get(words_hash(folded(problem.statement)))
    )


def words_hash(statement: str) -> str:
    """Of its words in their order, without case, layout and signs."""
    return hashlib.sha256(
        " ".join(WORD.findall(statement.lower())).encode("utf-8", "surrogatepass")
    ).hexdigest()[:12]


@cache
def gated_statements() -> dict[str, str]:
    """Hash of what a gated task asks -> in words what it is."""
    lists: dict[str, list[str]] = (
        json.loads(STATEMENTS.read_text(encoding="utf-8")) if STATEMENTS.exists() else {}
    )
    return {
        found: f"a task of {benchmark}, by its statement"
        for benchmark, hashes in lists.items()
        for found in hashes
    }


def _names(problem: Problem) -> Iterator[str]:
    yield folded(problem.problem_id)
    for key in NAMING:
        value: Any = problem.extra.get(key)
        for name in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(name, str):
                yield folded(name)


def _gated_name(name: str) -> str | None:
    if MENTION.search(name):
        for found in NUMBERED.finditer(name):
            benchmark = re.sub(r"[^a-z]", "", found[1].lower())
            if benchmark != "mbpp" or is_gated_mbpp(int(found[2])):
                return f"{benchmark}/{found[2]}"
        if unseen := UNSEEN.search(name):
            return unseen[0]
        if (contest := CONTEST.search(name)) and int(contest[1]) >= CONTEST_FIRST:
            return contest[0]
    return next(
        (f"leetcode/{part}" for part in name.lower().split("/") if part in gated_leetcode()), None
    )


def _listed(benchmark: str) -> dict[str, list[Any]]:
    lists: dict[str, list[Any]] = json.loads(IDS.read_text(encoding="utf-8"))[benchmark]
    return lists
