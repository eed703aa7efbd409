"""Decide which tasks are for evaluation only.

A task is gated by its name in any release, and by its statement, never by what its row claims.

MBPP is gated by task number over all releases: its test tasks 11 to 510, and every id in a release
of MBPP+ or in sanitized MBPP, whatever its split (108 of the 378 tasks of MBPP+ v0.2.0 are in
MBPP's train range). MBPP+ v0.1.0 had 399 tasks. Its list is not available, but it was taken from
sanitized MBPP, so all 427 sanitized ids are gated, a few more than needed.

HumanEval(+), BigCodeBench and LiveCodeBench are gated completely; APPS and TACO by split;
LeetCodeDataset and CodeContests by split and also by date, since upstream splits them by date.
`gated_ids.json` holds the lists. `gated_statements.json` holds hashes of the statements of the
available datasets, so that a copy under another name is recognized even without the dataset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_text
from problems.cleaning.normalize import normalize
from problems.schema import Problem

IDS = Path(__file__).with_name("gated_ids.json")
# Written by measurements/gated_statements.py.
STATEMENTS = Path(__file__).with_name("gated_statements.json")
MBPP_TEST = range(11, 511)
LEETCODE_SINCE = "2024-07-01"  # start of upstream's test split
LEETCODE_FIRST = 3200  # question number of about that day, for rows without a date
CONTEST_FIRST = 1548  # Codeforces contest: CodeContests' validation split begins on 15 July 2021
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
    """Return all gated task numbers of MBPP."""
    return frozenset(MBPP_TEST).union(*_listed("mbpp").values())


@cache
def gated_leetcode() -> frozenset[str]:
    """Return the test tasks of LeetCodeDataset, by their names in the site's URLs."""
    return frozenset().union(*_listed("leetcode").values())


def is_gated_mbpp(task: int) -> bool:
    return task in gated_mbpp()


def is_gated_leetcode(slug: str, date: str = "", number: str = "") -> bool:
    """Return whether a task is gated: by name, by date (ISO), or without a date by number."""
    late = date >= LEETCODE_SINCE if date else number.isdecimal() and int(number) >= LEETCODE_FIRST
    return late or slug in gated_leetcode()


def is_gated_contest(name: str) -> bool:
    """Return whether CodeContests does not train on the contest of a Codeforces task.

    The name is like `1575_A. Another Sorting Problem`, or an id.
    """
    number = re.match(r"(\d+)_[A-Za-z]", name)
    return number is not None and int(number[1]) >= CONTEST_FIRST


def gated_as(problem: Problem) -> str | None:
    """Return the gated task that this problem is or was derived from, or None if unknown.

    Checks the id, the naming columns in `extra`, and the statement, whatever the source's name and
    the row's claims.
    """
    task = next((task for name in _names(problem) if (task := _gated_name(name))), None)
    known = gated_statements()
    return (
        task
        or known.get(words_hash(problem.statement))
        or known.get(words_hash(normalize(problem.statement)))
    )


def words_hash(statement: str) -> str:
    """Hash the words of a statement in their order, without case, layout and punctuation."""
    return hash_text(" ".join(WORD.findall(statement.lower())))[:12]


@cache
def gated_statements() -> dict[str, str]:
    """Map the hash of a gated task's statement to a description of the task."""
    lists: dict[str, list[str]] = (
        json.loads(STATEMENTS.read_text(encoding="utf-8")) if STATEMENTS.exists() else {}
    )
    return {
        statement_hash: f"a task of {benchmark}, by its statement"
        for benchmark, hashes in lists.items()
        for statement_hash in hashes
    }


def _names(problem: Problem) -> Iterator[str]:
    yield normalize(problem.problem_id)
    for key in NAMING:
        value: Any = problem.extra.get(key)
        for name in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(name, str):
                yield normalize(name)


def _gated_name(name: str) -> str | None:
    if MENTION.search(name):
        for match in NUMBERED.finditer(name):
            benchmark = re.sub(r"[^a-z]", "", match[1].lower())
            if benchmark != "mbpp" or is_gated_mbpp(int(match[2])):
                return f"{benchmark}/{match[2]}"
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
