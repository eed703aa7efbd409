"""Curation removes gated, duplicate, secret and poor problems, each once and with a reason."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.cleaning.contamination import GatedIndex
from problems.cleaning.curation import curate, licence_counts, licences
from problems.cleaning.duplicates import duplicates, find, marks, rank
from problems.cleaning.settings import Curation
from problems.cleaning.sketch import sketch
from problems.columns import ProblemError
from problems.dataset.evidence import evidence_of, read_suspects, write_evidence
from problems.funnel import Removed, Stage, funnel
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import normal_form, shape

LONG = (
    "Write a function to find the three largest integers of a given nested list and return "
    "them in ascending order"
)


def toy(
    key: str, statement: str | None = None, solution: str | None = None, **changes: Any
) -> Problem:
    solution = solution or f"def f(x):\n    return x + {sum(key.encode())}\n"
    tests = ({"args": [1], "expected": key},)
    problem = Problem(
        f"toy/{key}",
        "toy",
        statement or f"Now add {key}.",
        "call",
        tests,
        "f",
        solutions=(solution,),
        licence="MIT",
    )
    return dataclasses.replace(problem, **changes)


def reasons(problems: list[Problem], gated: list[Problem]) -> dict[str, str]:
    return {
        row.problem_id: f"{row.reason}: {row.detail}" for row in curate(problems, gated).removed
    }


def test_gated_problems_and_their_copies_are_removed() -> None:
    gated = toy("g", LONG, gated=True)
    assert reasons([gated, toy("copy", LONG.upper()), toy("other")], []).keys() == {
        "toy/g",
        "toy/copy",
    }


SOLUTION = (
    "def f(grid):\n    best = []\n    for row in grid:\n        best.extend(row)\n"
    "    return sorted(sorted(best)[-3:])\n"
)
RENAMED = (
    "def top(m: list): # same\n    'Doc.'\n    out=[]\n    for x in m:\n        out.extend(x)\n"
    "    return sorted((sorted(out))[-3:])\n"
)
TESTS = tuple(
    {
        "args": [[[value, 5, value + 9], [2 * value]]],
        "expected": sorted([value, 5, value + 9, 2 * value])[-3:],
    }
    for value in range(3, 7)
)


@pytest.mark.parametrize(
    ("copy", "how"),
    [
        (toy("c", "  " + LONG.replace(" ", "\n")), "same statement"),
        (toy("c", f"An old exercise: {LONG.lower()}, please."), "words in a row"),
        (toy("c", solution=f"def f(v):\n    # {LONG}\n    return v\n"), "words in a row"),
        (toy("c", solution=RENAMED, tests=TESTS[:1]), "same solution"),
        (toy("c", tests=TESTS[::-1]), "same tests"),
    ],
)
def test_a_copy_of_a_gated_problem_is_removed_with_evidence(
    copy: Problem, how: str, tmp_path: Path
) -> None:
    gated = toy("g", LONG, solution=SOLUTION, tests=TESTS, gated=True)
    curated = curate([copy], [gated])
    leaks = {overlap.kind: overlap for overlap in curated.overlaps if overlap.leak}
    assert (leaks[how].problem_id, leaks[how].gated_id) == (
        "toy/c",
        "toy/g",
    )
    assert not curated.problems
    write_evidence(evidence_of(curated), tmp_path)
    [report] = json.loads((tmp_path / "contamination.json").read_text(encoding="utf-8"))
    assert report["removed"]
    assert {row["gated_id"] for row in report["resembles"]} == {"toy/g"}
    assert (
        "<mark>" in (tmp_path / "contamination.html").read_text(encoding="utf-8")
        or how == "same solution"
    )
    assert read_suspects(tmp_path) == {"toy": []}


def test_a_benchmark_task_similar_to_a_kept_problem_is_listed() -> None:
    gated = [
        toy("g", "Write a function to find the perimeter of a square.", gated=True),
        toy("h", LONG, gated=True, source="other", problem_id="other/h"),
    ]
    curated = curate(
        [toy("c", "Write a function to find the perimeter of a regular square.")], gated
    )
    assert [problem.problem_id for problem in curated.problems] == ["toy/c"]
    assert curated.suspects == {
        "other": [],
        "toy": [{"task": "toy/g", "problem_id": "toy/c", "how": "near statement 0.71"}],
    }


@pytest.mark.parametrize(
    "other",
    [
        "Write a function to find the smallest integer of a list",
        "Write a python function to find the sum of the three largest integers",
        "Sort it now.",
    ],
)
def test_a_shared_beginning_is_no_overlap(other: str) -> None:
    index = GatedIndex([toy("g", LONG), toy("h", "Write a function to find the sum")])
    assert not [overlap for overlap in index.overlaps([toy("o", other)]) if overlap.leak]


def test_statements_that_differ_in_a_sign_are_no_duplicates() -> None:
    assert not duplicates([toy("1", "Keep all x < 3."), toy("2", "Keep all x > 3.")]).groups


def test_the_held_out_one_of_two_duplicates_is_kept() -> None:
    teaching, judging = toy("a", "Add one more."), toy("b", "add one  more.", split="heldout")
    curated = curate([teaching, judging], [])
    assert [problem.problem_id for problem in curated.problems] == ["toy/b"]
    [removed] = curated.removed
    assert (removed.problem_id, removed.reason) == ("toy/a", "duplicate")
    assert "toy/b" in removed.detail
    assert "heldout" in removed.detail


def test_equal_solutions_and_tests_make_a_duplicate() -> None:
    first = toy(
        "1",
        "Add one.",
        "def f(x): return x+1",
        tests=({"args": [1], "expected": 2}, {"args": [2], "expected": 3}),
    )
    second = toy(
        "2",
        "Increase.",
        "def more(number):\n    # more\n    return number + 1",
        tests=first.tests[::-1],
    )
    third = toy("3", "Grow.", "def f(x): return x+1", tests=first.tests[:1])
    (group,) = duplicates([first, second, third]).groups
    assert (group.kept, group.others[0].problem_id, group.others[0].how) == (
        "toy/1",
        "toy/2",
        "same solutions and tests",
    )
    assert len(group.others) == 1


MODULE = """import math
SCALE = 10

def total(values):
    result = 0
    for value in values:
        result = result + SCALE * value
    return result

def spread(values):
    low, high = math.inf, -math.inf
    for value in values:
        low, high = min(low, value), max(high, value)
    return high - low
"""


def test_functions_of_one_module_are_different_problems() -> None:
    statement = "Read the values of a sensor and compute the {} of all of them in one pass."
    problems = [
        toy(name, statement.format(name), MODULE, entry_point=name) for name in ("total", "spread")
    ]
    assert reasons(problems, []) == {}
    copy = dataclasses.replace(problems[0], problem_id="toy/z", statement="Sum up the values.")
    assert list(reasons([*problems, copy], [])) == ["toy/z"]


def test_duplicates_of_duplicates_form_one_group() -> None:
    a, b = toy("a", "One."), toy("b", "one.", "def f(x): return 7")
    c = toy("c", "Other.", "def f(x): return 7", tests=b.tests)
    (group,) = duplicates([c, a, b]).groups
    assert group.kept == "toy/a"
    assert {(m.problem_id, m.like, m.how) for m in group.others} == {
        ("toy/b", "toy/a", "same statement"),
        ("toy/c", "toy/b", "same solutions and tests"),
    }


def test_a_reworded_copy_is_a_near_duplicate() -> None:
    reworded = [
        "Return the sum of the numbers in a list between the indices",
        "Write a function to calculate sum of the numbers in a list between indices",
    ]
    other = [
        "Write a function to calculate the product of the numbers in a list between the indices"
    ]
    (group,) = duplicates([toy(str(at), text) for at, text in enumerate(reworded + other)]).groups
    assert (group.kept, [member.problem_id for member in group.others]) == ("toy/0", ["toy/1"])


def test_composed_problems_are_compared_only_exactly() -> None:
    parts: dict[str, Any] = {"extra": {"composition": "sort"}}
    one, two = (
        toy("1", "Sort the given words, then drop the first one.", **parts),
        toy("2", "Sort given words, then drop the first one.", **parts),
    )
    assert not duplicates([one, two]).groups
    assert duplicates(
        [dataclasses.replace(one, extra={}), dataclasses.replace(two, extra={})]
    ).groups


def test_a_licence_outside_the_list_is_refused() -> None:
    problems = [
        toy("1"),
        toy("2", licence="GPL-3.0"),
        toy("3", licence="unknown"),
        toy("4", licence="mit"),
    ]
    assert {
        problem: reason.split(":")[0] for problem, reason in reasons(problems, []).items()
    } == dict.fromkeys(["toy/2", "toy/3"], "licence refused")
    assert licences(licence_counts(problems), Curation(licences=("MIT",))) == [
        ("toy", "GPL-3.0", 1, False),
        ("toy", "MIT", 1, True),
        ("toy", "mit", 1, True),
        ("toy", "unknown", 1, False),
    ]


def test_curating_duplicate_ids_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"'toy/s' .* 0 .* 1"):
        curate([toy("s"), toy("s")], [])


def test_the_normal_form_ignores_layout_but_not_names() -> None:
    plain = "def f(x):\n    return 'a'"
    assert normal_form(plain) == normal_form(
        '"""Doc."""\ndef f( x ) :\n  "Doc."\n  # why\n  return "a"\n'
    )
    assert normal_form(plain) != normal_form(plain.replace("f(", "g("))
    assert normal_form("no  python") == "no python"


def test_the_shape_of_a_program_ignores_names() -> None:
    assert shape(SOLUTION) == shape(RENAMED) != shape(SOLUTION.replace("[-3:]", "[:3]"))
    assert shape("def f(x): return sorted(x)") != shape("def f(x): return list(x)")
    assert shape("def f(x): return 'x'") != shape("def f(y): return 'y'")


letters = st.sampled_from("abcdef")
sets = st.lists(
    st.builds(
        toy,
        key=st.uuids().map(str),
        statement=st.sampled_from(
            ["Now one", "Then take two", LONG, "write to x@y.org", LONG[:60], f"{LONG} too"]
        ),
        solution=letters,
        gated=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda problem: problem.problem_id,
)


@pytest.mark.slow
@given(sets, sets)
def test_every_problem_is_kept_or_removed_exactly_once(
    problems: list[Problem], gated: list[Problem]
) -> None:
    curated = curate(problems, gated)
    assert sorted(
        [p.problem_id for p in curated.problems] + [r.problem_id for r in curated.removed]
    ) == sorted(p.problem_id for p in problems)
    assert sum(curated.stage.reasons.values()) == curated.stage.came_in - curated.stage.went_out
    again = curate(curated.problems, gated)
    assert again.problems == curated.problems
    assert not again.removed


@given(st.lists(st.sampled_from(["gated", "duplicate", None])))
def test_the_funnel_adds_up(fates: list[str | None]) -> None:
    removed = tuple(
        Removed(f"p/{number}", fate, "a | b") for number, fate in enumerate(fates) if fate
    )
    stage = Stage("curated", len(fates), fates.count(None), removed)
    counts = [int(row.split("|")[4]) for row in funnel([stage]).splitlines()[2:]]
    assert counts[0] == sum(counts[1:]) == len(removed)


def test_a_stage_with_wrong_counts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"curated: 3 .* 1 .* 1 "):
        Stage("curated", 3, 1, (Removed("p/1", "gated"),))


@pytest.mark.slow
@given(sets, st.randoms())
def test_curation_does_not_depend_on_the_order_of_problems(
    problems: list[Problem], random: Any
) -> None:
    shuffled = problems[:]
    random.shuffle(shuffled)
    assert curate(problems, []) == curate(shuffled, [])


@pytest.mark.slow
@given(sets)
def test_duplicates_are_found_equally_from_independent_marks(problems: list[Problem]) -> None:
    ordered = sorted(problems, key=rank)
    marked = marks(ordered, alone=False)
    apart = find(
        marked,
        lambda places: sketch([ordered[place] for place in places], exact=False),
        lambda places: {place: ordered[place] for place in places},
    )
    assert tuple(apart.groups(marked)) == duplicates(problems).groups


@pytest.mark.slow
def test_mbpp_contains_copies_of_its_gated_tasks(data: Callable[[str], Path]) -> None:
    mbpp = load("mbpp", data("mbpp")).problems
    curated = curate(mbpp, load("mbpp_sanitized", data("mbpp")).problems)
    assert dict(curated.stage.reasons) == {
        "gated": 673,
        "overlaps a gated problem": 20,
        "secret or personal data": 2,
    }
    assert len(curated.problems) == 279
    assert ("mbpp/542", "mbpp/732") in {
        (o.problem_id, o.gated_id) for o in curated.overlaps if o.leak
    }


def test_an_original_is_kept_before_its_derivative() -> None:
    derivative = dataclasses.replace(
        toy("original"),
        problem_id="augmented/copy",
        source="augmented",
        extra={"parents": ["toy/original"]},
    )
    more = dataclasses.replace(
        derivative, tests=(*derivative.tests, {"args": [2], "expected": "more"})
    )
    [group] = duplicates([more, toy("original")]).groups
    assert group.kept == "toy/original"
    assert group.why


def test_an_example_block_does_not_hide_a_copy() -> None:
    text = "Return how often the most frequent word of a sentence occurs in it, ignoring case."
    dressed = f"{text}\n\nExample 1:\n\nInput: s = 'a A b'\nOutput: 2\n\nConstraints:\n1 <= len(s)"
    copies = [toy("plain", text), toy("dressed", dressed)]
    assert [row.reason for row in curate(copies, []).removed] == ["duplicate"]
    gated = dataclasses.replace(toy("gated", dressed), gated=True)
    assert [row.reason for row in curate(copies[:1], [gated]).removed] == [
        "overlaps a gated problem"
    ]


def test_a_part_of_a_long_statement_is_a_copy() -> None:
    rest = " ".join(f"The case {word} is of its own kind." for word in "abcdefghijklmnop")
    gated = toy("g", f"{LONG}. {rest}", gated=True)
    assert [each.reason for each in curate([toy("c", LONG)], [gated]).removed] == [
        "overlaps a gated problem"
    ]
