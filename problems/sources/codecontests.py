"""CodeContests (Li et al. 2022, arXiv:2203.07814; CC-BY-4.0). Validation and test splits are gated.

Tasks of Codeforces and other sites, in two forms. Upstream's form (`deepmind/code_contests` on the
hub; tested on a hand-made file of its schema) has tests as dicts of lists (public, private and
generated) and solutions with a language, where 3 means Python 3. The other form is a sample of 300
tasks with one Python solution and about ten tests each; it was tested completely.

Upstream splits by date: validation starts on 15 July 2021. So a task of a Codeforces contest from
that date on (`problems.cleaning.gating`) is gated in either form.

Outputs are compared as upstream's harness does (execution/tester_sandboxer.cc), but the case of
letters counts where a test expects words that the statement does not contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from problems.cleaning.gating import is_gated_contest
from problems.columns import ProblemError
from problems.reading.input_output import Tests, python_3, stdio_tests
from problems.reading.source import SPLIT, Row, Source, has, text
from problems.reading.stated import prescribes_words
from problems.schema import Problem
from sandbox.protocol import Limits

LICENCE = "CC-BY-4.0"
LIMITS = Limits.of_work(10.0, memory_mb=512)
PYTHON_3 = (3, "PYTHON3")
PARTS = ("train", "valid", "validation", "test")


def convert(row: Row, where: str) -> Problem:
    """Convert a row of either form."""
    return _sampled(row, where) if "id" in row else _upstream(row, where)


def _sampled(row: Row, where: str) -> Problem:
    key = text(row, "id", where)
    tests = row.get("tests")
    if not isinstance(tests, list) or not all(
        isinstance(test, Mapping) and {"input", "output"} <= set(test) for test in tests
    ):
        raise ProblemError(
            "key 'tests' is no list of objects with input and output", "fetch the file again", where
        )
    tests = stdio_tests(
        [test["input"] for test in tests], [test["output"] for test in tests], where
    )
    # Sections of a page about the task.
    parts = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text(row, "description", where), re.M | re.S)
    )
    statement = parts.get("Description", "").strip()
    tags = tuple(
        line.removeprefix("- ").replace(" ", "-")
        for line in parts.get("Categories", "").split("\n")
        if line.startswith("- ")
    )
    return _problem(
        key,
        statement,
        tests,
        visible=0,
        solutions=(text(row, "solution", where),),
        tags=tags,
        gated=is_gated_contest(key),
        extra={},
    )


def _upstream(row: Row, where: str) -> Problem:
    name, split = text(row, "name", where), row.get(SPLIT)
    if split not in PARTS:
        raise ProblemError(
            f"the split is {split!r}",
            "name the file as upstream does: train, valid or test with something behind",
            where,
        )
    public, private, generated = (
        _tests(row, key, where) for key in ("public_tests", "private_tests", "generated_tests")
    )
    inputs, outputs = ([*public[i], *private[i], *generated[i]] for i in (0, 1))
    tests = stdio_tests(inputs, outputs, where)
    solutions = _column(row, "solutions", ("language", "solution"), where)
    python = [source for language, source in zip(*solutions, strict=True) if language in PYTHON_3]
    extra = {
        "name": name,
        "rating": row.get("cf_rating") or None,
        "upstream_tests": len(inputs),
        "upstream_solutions": len(python),
    }
    key = re.sub(r"\W+", "_", name.lower()).strip("_")
    tags = tuple(str(tag) for tag in row.get("cf_tags") or () if tag)
    visible = min(len(public[0]), len(tests))
    return _problem(
        key,
        text(row, "description", where).strip(),
        tests,
        visible=visible,
        solutions=python_3(python),
        tags=tags,
        gated=split != "train",
        extra=extra,
    )


def _problem(
    key: str,
    statement: str,
    tests: Tests,
    *,
    visible: int,
    solutions: tuple[str, ...],
    tags: tuple[str, ...],
    gated: bool,
    extra: dict[str, Any],
) -> Problem:
    problem = Problem(
        problem_id=f"codecontests/{key}",
        source="codecontests",
        statement=statement,
        style="stdio",
        tests=tests,
        solutions=solutions,
        visible_tests=visible,
        limits=LIMITS,
        tags=tuple(dict.fromkeys(("codecontests", *tags))),
        split="heldout" if gated else "train",
        licence=LICENCE,
        gated=gated,
        compare="tokens",
        extra=extra,
    )
    return replace(problem, compare="loose") if prescribes_words(problem) else problem


def _tests(row: Row, key: str, where: str) -> tuple[list[Any], list[Any]]:
    return _column(row, key, ("input", "output"), where)


def _column(row: Row, key: str, names: tuple[str, str], where: str) -> tuple[list[Any], list[Any]]:
    """Return two lists of equal length from upstream's dict of lists; empty if there is none."""
    value = row.get(key) or {name: [] for name in names}
    first, second = (
        (value.get(name) for name in names) if isinstance(value, Mapping) else (None, None)
    )
    if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
        raise ProblemError(
            f"key {key!r} is no object of two lists {' and '.join(names)} of one length",
            "fetch the file again",
            where,
        )
    return first, second


CODECONTESTS = Source(
    "codecontests",
    "CodeContests; its validation and test splits gated",
    convert,
    "deepmind/code_contests",
    by_split=True,
    fits=lambda row: (
        has(row, "description", "public_tests", "private_tests")
        or has(row, "id", "cluster", "description", "tests")
    ),
)
