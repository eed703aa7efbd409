"""Nothing gated, doubled or secret gets through, and every problem that does not get through is counted once, with a reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.curation import curate, duplicates
from problems.funnel import Removed, Stage, funnel
from problems.gating import contamination_report, overlaps
from problems.schema import Problem
from problems.secrets import secret_in
from problems.sources.registry import load
from problems.syntax import normal_form

LONG = "Write a function to find the three largest integers of a given nested list and return them in ascending order"


def toy(key: str, statement: str | None = None, solution: str | None = None, **changes: Any) -> Problem:
    solution = solution or f"def f(x):\n    return x + {sum(key.encode())}\n"
    problem = Problem(f"toy/{key}", "toy", statement or f"Add {key}.", "call", ({"args": [1], "expected": key},), "f", solutions=(solution,))
    return dataclasses.replace(problem, **changes)


def reasons(problems: list[Problem], gated: list[Problem]) -> dict[str, str]:
    return {row.problem_id: f"{row.reason}: {row.detail}" for row in curate(problems, gated).removed}


def test_what_is_gated_never_gets_through_and_guards_the_rest() -> None:
    gated = toy("g", LONG, gated=True)
    assert reasons([gated, toy("copy", LONG.upper()), toy("other")], []).keys() == {"toy/g", "toy/copy"}


@pytest.mark.parametrize(
    ("copy", "how"),
    [
        (toy("c", "  " + LONG.replace(" ", "\n")), "same statement"),
        (toy("c", f"An old exercise: {LONG.lower()}, please."), "13 words in a row"),
        (toy("c", solution="def g(a): # the same\n    'Doc.'\n    return  (a - 1)\n"), "same solution"),
    ],
)
def test_a_copy_of_a_gated_problem_is_found_with_the_evidence(copy: Problem, how: str) -> None:
    gated = toy("g", LONG, solution="def g(a):\n    return a - 1", gated=True)
    (found, *_) = overlaps([copy], [gated])
    assert (found.problem_id, found.gated_id) == ("toy/c", "toy/g") and how in [o.kind for o in overlaps([copy], [gated])]
    assert "| toy/c | toy/g |" in contamination_report([found])


@pytest.mark.parametrize(
    "other",
    ["Write a function to find the smallest integer of a list", "Write a python function to find the sum of the three largest integers", "Sort."],
)
def test_a_shared_opening_is_no_overlap(other: str) -> None:
    assert overlaps([toy("o", other)], [toy("g", LONG), toy("h", "Write a function to find the sum")]) == []


def test_statements_that_differ_in_a_sign_are_two() -> None:
    assert duplicates([toy("1", "Keep all x < 3."), toy("2", "Keep all x > 3.")]) == []


def test_of_two_equal_problems_the_one_that_judges_is_kept() -> None:
    teaching, judging = toy("a", "Add."), toy("b", "add. ", split="heldout")
    curated = curate([teaching, judging], [])
    assert [problem.problem_id for problem in curated.kept] == ["toy/b"]
    assert curated.removed == [Removed("toy/a", "duplicate", "same statement as toy/b, which is kept")]


def test_equal_solutions_and_tests_are_a_duplicate_whatever_the_wording() -> None:
    first = toy("1", "Add one.", "def f(x): return x+1", tests=({"args": [1], "expected": 2}, {"args": [2], "expected": 3}))
    second = toy("2", "Increase.", "def f(x):\n    # more\n    return x + 1", tests=first.tests[::-1])
    third = toy("3", "Grow.", "def f(x): return x+1", tests=first.tests[:1])
    (group,) = duplicates([first, second, third])
    assert (group.kept, group.others, group.same) == ("toy/1", ("toy/2",), "solutions and tests")


def test_duplicates_of_duplicates_are_one_group() -> None:
    a, b = toy("a", "One."), toy("b", "one.", "def f(x): return 7")
    c = toy("c", "Other.", "def f(x): return 7", tests=b.tests)
    (group,) = duplicates([c, a, b])
    assert {group.kept, *group.others} == {"toy/a", "toy/b", "toy/c"} and group.same == "solutions and tests or statement"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mail jane.doe+x@corp-mail.de now", "an e-mail address"),
        ("key AKIAIOSFODNN7EXAMPLE", "an AWS access key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("ghp_" + "a1" * 18, "a GitHub token"),
        ("postgres://admin:hunter2@db.corp.net/x", "a password in an address"),
    ],
)
def test_a_secret_is_found_in_any_text_and_not_repeated(text: str, what: str) -> None:
    for column, problem in {
        "statement": toy("s", text),
        "solutions": toy("s", solution=f"x = '{text}'"),
        "tests": toy("s", tests=({"args": [text], "expected": 1},)),
        "extra": toy("s", extra={"note": text}),
    }.items():
        assert secret_in(problem) == (what, column)
        assert text not in str(curate([problem], []).removed)


@pytest.mark.parametrize("text", ["user@example.com", "a@b.test", "m = a @ b.T", "@decorator.name", "sk-learn", "https://docs.python.org:443/x"])
def test_what_only_looks_like_a_secret_is_left(text: str) -> None:
    assert secret_in(toy("s", text)) is None


def test_layout_comments_and_docstrings_are_not_meaning_but_names_are() -> None:
    plain = "def f(x):\n    return 'a'"
    assert normal_form(plain) == normal_form('"""Doc."""\ndef f( x ) :\n  "Doc."\n  # why\n  return "a"\n')
    assert normal_form(plain) != normal_form(plain.replace("f(", "g(")) and normal_form("no  python") == "no python"


letters = st.sampled_from("abcdef")
sets = st.lists(
    st.builds(toy, key=st.uuids().map(str), statement=st.sampled_from(["One", "Two", LONG, "x@y.org"]), solution=letters, gated=st.booleans()),
    max_size=12,
    unique_by=lambda problem: problem.problem_id,
)


@settings(deadline=None)
@given(sets, sets)
def test_every_problem_is_kept_or_removed_once_and_the_kept_are_clean(problems: list[Problem], gated: list[Problem]) -> None:
    curated = curate(problems, gated)
    assert sorted([p.problem_id for p in curated.kept] + [r.problem_id for r in curated.removed]) == sorted(p.problem_id for p in problems)
    assert sum(curated.stage.reasons.values()) == curated.stage.came_in - curated.stage.went_out
    again = curate(curated.kept, gated)
    assert again.kept == curated.kept and not again.removed


@given(st.lists(st.sampled_from(["gated", "duplicate", None])))
def test_the_funnel_shows_every_reason_and_adds_up(fates: list[str | None]) -> None:
    removed = tuple(Removed(f"p/{number}", fate, "a | b") for number, fate in enumerate(fates) if fate)
    stage = Stage("curated", len(fates), fates.count(None), removed)
    counts = [int(row.split("|")[4]) for row in funnel([stage]).splitlines()[2:]]
    assert counts[0] == sum(counts[1:]) == len(removed)


def test_a_stage_that_lost_a_problem_is_refused() -> None:
    with pytest.raises(ValueError, match="stage curated: 3 in, but 1 out and 1 removed"):
        Stage("curated", 3, 1, (Removed("p/1", "gated"),))


def test_mbpp_holds_copies_of_its_own_gated_tasks(data: Callable[[str], Path]) -> None:
    mbpp = load("mbpp", data("mbpp")).problems
    curated = curate(mbpp, [problem for name in ("mbpp_sanitized",) for problem in load(name, data("mbpp")).problems])
    assert dict(curated.stage.reasons) == {"gated": 670, "overlaps a gated problem": 11, "secret or personal data": 1} and len(curated.kept) == 292
    assert ("mbpp/704", "mbpp/248") in {(o.problem_id, o.gated_id) for o in curated.overlaps}
