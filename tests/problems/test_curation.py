"""Nothing gated, doubled or secret gets through, and every problem that does not get through is counted once, with a reason."""

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
from problems.cleaning.curation import Curation, curate, licences
from problems.cleaning.duplicates import duplicates, grouped, marks, rank
from problems.cleaning.quality import fault
from problems.cleaning.secrets import secret_in
from problems.cleaning.similarity import sketch
from problems.columns import ProblemError
from problems.dataset.evidence import read_suspects, write_evidence
from problems.funnel import Removed, Stage, funnel
from problems.schema import Problem
from problems.sources.registry import load
from problems.syntax import normal_form, shape

LONG = "Write a function to find the three largest integers of a given nested list and return them in ascending order"


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


def test_what_is_gated_never_gets_through_and_guards_the_rest() -> None:
    gated = toy("g", LONG, gated=True)
    assert reasons([gated, toy("copy", LONG.upper()), toy("other")], []).keys() == {
        "toy/g",
        "toy/copy",
    }


ANSWER = "def f(grid):\n    best = []\n    for row in grid:\n        best.extend(row)\n    return sorted(sorted(best)[-3:])\n"
RENAMED = "def top(m: list): # same\n    'Doc.'\n    out=[]\n    for x in m:\n        out.extend(x)\n    return sorted((sorted(out))[-3:])\n"
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
        (toy("c", solution=RENAMED, tests=TESTS[:1]), "same solution"),
        (toy("c", tests=TESTS[::-1]), "same tests"),
    ],
)
def test_a_copy_of_a_gated_problem_is_found_with_the_evidence(
    copy: Problem, how: str, tmp_path: Path
) -> None:
    gated = toy("g", LONG, solution=ANSWER, tests=TESTS, gated=True)
    curated = curate([copy], [gated])
    found = {overlap.kind: overlap for overlap in curated.overlaps if overlap.leak}
    assert (found[how].problem_id, found[how].gated_id) == ("toy/c", "toy/g") and not curated.kept
    write_evidence(curated, tmp_path)
    [report] = json.loads((tmp_path / "contamination.json").read_text(encoding="utf-8"))
    assert report["removed"] and {row["gated_id"] for row in report["resembles"]} == {"toy/g"}
    assert "| toy/c | toy/g |" in (tmp_path / "contamination.md").read_text(encoding="utf-8")
    assert (
        "<mark>" in (tmp_path / "contamination.html").read_text(encoding="utf-8")
        or how == "same solution"
    )
    assert read_suspects(tmp_path) == {"toy": []}


def test_a_task_that_a_kept_problem_resembles_is_on_its_benchmarks_list() -> None:
    gated = [
        toy("g", "Write a function to find the perimeter of a square.", gated=True),
        toy("h", LONG, gated=True, source="other", problem_id="other/h"),
    ]
    curated = curate(
        [toy("c", "Write a function to find the perimeter of a regular square.")], gated
    )
    assert [problem.problem_id for problem in curated.kept] == ["toy/c"]
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
def test_a_shared_opening_is_no_overlap(other: str) -> None:
    index = GatedIndex([toy("g", LONG), toy("h", "Write a function to find the sum")])
    assert not [overlap for overlap in index.overlaps([toy("o", other)]) if overlap.leak]


def test_statements_that_differ_in_a_sign_are_two() -> None:
    assert not duplicates([toy("1", "Keep all x < 3."), toy("2", "Keep all x > 3.")]).groups


def test_of_two_equal_problems_the_one_that_judges_is_kept() -> None:
    teaching, judging = toy("a", "Add one more."), toy("b", "add one  more.", split="heldout")
    curated = curate([teaching, judging], [])
    assert [problem.problem_id for problem in curated.kept] == ["toy/b"]
    assert curated.removed == [
        Removed("toy/a", "duplicate", "same statement as toy/b; toy/b is kept: of part heldout")
    ]


def test_equal_solutions_and_tests_are_a_duplicate_whatever_the_wording_and_the_names() -> None:
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
    ) and len(group.others) == 1


def test_duplicates_of_duplicates_are_one_group() -> None:
    a, b = toy("a", "One."), toy("b", "one.", "def f(x): return 7")
    c = toy("c", "Other.", "def f(x): return 7", tests=b.tests)
    (group,) = duplicates([c, a, b]).groups
    assert group.kept == "toy/a" and {(m.problem_id, m.like, m.how) for m in group.others} == {
        ("toy/b", "toy/a", "same statement"),
        ("toy/c", "toy/b", "same solutions and tests"),
    }


def test_a_reworded_copy_is_a_near_duplicate_and_another_task_in_the_same_words_is_not() -> None:
    said = [
        "Return the sum of the numbers in a list between the indices",
        "Write a function to calculate sum of the numbers in a list between indices",
    ]
    other = [
        "Write a function to calculate the product of the numbers in a list between the indices"
    ]
    (group,) = duplicates([toy(str(at), text) for at, text in enumerate(said + other)]).groups
    assert (group.kept, [member.problem_id for member in group.others]) == ("toy/0", ["toy/1"])


def test_problems_composed_of_parts_are_compared_exactly_alone() -> None:
    parts: dict[str, Any] = {"extra": {"composition": "sort"}}
    one, two = (
        toy("1", "Sort the given words, then drop the first one.", **parts),
        toy("2", "Sort given words, then drop the first one.", **parts),
    )
    assert not duplicates([one, two]).groups
    assert duplicates(
        [dataclasses.replace(one, extra={}), dataclasses.replace(two, extra={})]
    ).groups


def test_a_licence_that_is_not_allowed_is_refused_and_listed() -> None:
    problems = [
        toy("1"),
        toy("2", licence="GPL-3.0"),
        toy("3", licence="unknown"),
        toy("4", licence="mit"),
    ]
    assert {
        problem: reason.split(":")[0] for problem, reason in reasons(problems, []).items()
    } == dict.fromkeys(["toy/2", "toy/3"], "licence refused")
    assert licences(problems, Curation(licences=("MIT",))) == [
        ("toy", "GPL-3.0", 1, False), ("toy", "MIT", 1, True), ("toy", "mit", 1, True), ("toy", "unknown", 1, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (toy("q", "https://example.com/17 ![](x.png) 42"), "no statement"),
        (toy("q", "Sort."), "statement too short"),
        (toy("q", "word " * 5000), "statement too long"),
        (toy("q", "Напишите функцию, которая складывает два числа."), "not in English"),
        (
            toy(
                "q",
                "Escribe una función "
                + "que devuelve la suma de los números pares de una lista " * 3,
            ),
            "not in English",
        ),
        (toy("q", solution=f"x = '{'a' * 20_000}'"), "solution too long"),
        (
            toy("q", f"Write f as in this program:\n{ANSWER}", solution=ANSWER),
            "the answer is given away",
        ),
        (toy("q", starter_code=ANSWER, solution=ANSWER), "the answer is given away"),
        (toy("q", visible_tests=1), "the answer is given away"),
    ],
)
def test_a_poor_problem_goes_with_its_reason(problem: Problem, reason: str) -> None:
    assert curate([problem], []).removed[0].reason == reason


def test_real_statements_are_english_and_give_nothing_away(data: Callable[[str], Path]) -> None:
    problems = [
        problem
        for name in ("mbpp", "humaneval", "leetcode")
        for problem in load(name, data(name)).problems
    ]
    assert [
        problem.problem_id
        for problem in problems
        if fault(problem, least_words=3, most_characters=20_000, english=True)
    ] == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mail jane.doe+x@corp-mail.de now", "an e-mail address"),
        ("key AKIAIOSFODNN7EXAMPLE", "AWS Access Key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("ghp_" + "a1" * 18, "GitHub Token"),
        ("postgres://admin:hunter2@db.corp.net/x", "a password in an address"),
        ("call +49 30 901820 today", "a telephone number"),
        ("call (202) 456-1111 today", "a telephone number"),
        ("open /home/mmustermann/thesis.tex", "a name in a path"),
    ],
)
def test_a_secret_is_found_in_any_text_and_not_repeated(text: str, what: str) -> None:
    for column, problem in {
        "statement": toy("s", text),
        "solutions": toy("s", solution=f"x = '{text}'"),
        "tests": toy("s", tests=({"args": [text], "expected": 1},)),
        "extra": toy("s", extra={"note": text}),
        "checker": dataclasses.replace(toy("s"), checker=f"# {text}"),
        "tags": dataclasses.replace(toy("s"), tags=("easy", text)),
    }.items():
        assert secret_in(problem) == (what, column)
        assert text not in str(curate([problem], []).removed)


@pytest.mark.parametrize("text", [
        "user@example.com", "a@b.test", "m = a @ b.T", "@decorator.name", "sk-learn", "https://docs.python.org:443/x", "123-456-7890",
        "+1 202-555-0143", "/home/user/Documents/../Pictures", "/home//foo/", "+12345678901234567", "abcdefghijklmnopqrstuvwxyzabcdefghij",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_is_left(text: str) -> None:
    assert secret_in(toy("s", text)) is None


@pytest.mark.parametrize("unit", ["a.", "//", "eyJ", "a:", "://", "+1 "])
def test_a_long_text_that_repeats_itself_is_searched_in_time(unit: str) -> None:
    assert secret_in(toy("s", unit * (300_000 // len(unit)) + " mail jane.doe@corp-mail.de")) == (
        "an e-mail address",
        "statement",
    )


def test_an_id_that_comes_twice_is_refused_by_name() -> None:
    with pytest.raises(ProblemError, match="problem_id 'toy/s' is in rows 0 and 1"):
        curate([toy("s"), toy("s")], [])


def test_layout_comments_and_docstrings_are_not_meaning_but_names_are() -> None:
    plain = "def f(x):\n    return 'a'"
    assert normal_form(plain) == normal_form(
        '"""Doc."""\ndef f( x ) :\n  "Doc."\n  # why\n  return "a"\n'
    )
    assert (
        normal_form(plain) != normal_form(plain.replace("f(", "g("))
        and normal_form("no  python") == "no python"
    )


def test_a_program_has_the_same_shape_whatever_its_author_calls_things() -> None:
    assert shape(ANSWER) == shape(RENAMED) != shape(ANSWER.replace("[-3:]", "[:3]"))
    assert shape("def f(x): return sorted(x)") != shape("def f(x): return list(x)") and shape(
        "def f(x): return 'x'"
    ) != shape("def f(y): return 'y'")


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


@given(sets, sets)
def test_every_problem_is_kept_or_removed_once_and_the_kept_are_clean(
    problems: list[Problem], gated: list[Problem]
) -> None:
    curated = curate(problems, gated)
    assert sorted(
        [p.problem_id for p in curated.kept] + [r.problem_id for r in curated.removed]
    ) == sorted(p.problem_id for p in problems)
    assert sum(curated.stage.reasons.values()) == curated.stage.came_in - curated.stage.went_out
    again = curate(curated.kept, gated)
    assert again.kept == curated.kept and not again.removed


@given(st.lists(st.sampled_from(["gated", "duplicate", None])))
def test_the_funnel_shows_every_reason_and_adds_up(fates: list[str | None]) -> None:
    removed = tuple(
        Removed(f"p/{number}", fate, "a | b") for number, fate in enumerate(fates) if fate
    )
    stage = Stage("curated", len(fates), fates.count(None), removed)
    counts = [int(row.split("|")[4]) for row in funnel([stage]).splitlines()[2:]]
    assert counts[0] == sum(counts[1:]) == len(removed)


def test_a_stage_that_lost_a_problem_is_refused() -> None:
    with pytest.raises(ValueError, match="stage curated: 3 in, but 1 out and 1 removed"):
        Stage("curated", 3, 1, (Removed("p/1", "gated"),))


@given(sets, st.randoms())
def test_the_order_of_the_problems_does_not_matter(problems: list[Problem], random: Any) -> None:
    shuffled = problems[:]
    random.shuffle(shuffled)
    assert curate(problems, []) == curate(shuffled, [])


@given(sets)
def test_marks_that_know_of_no_other_problem_give_the_same_groups(problems: list[Problem]) -> None:
    ordered = sorted(problems, key=rank)
    apart = grouped(
        marks(ordered, alone=False),
        lambda places: sketch([ordered[place] for place in places], exact=False),
        lambda places: {place: ordered[place] for place in places},
    )
    assert apart == duplicates(problems)


@pytest.mark.slow
def test_mbpp_holds_copies_of_its_own_gated_tasks(data: Callable[[str], Path]) -> None:
    mbpp = load("mbpp", data("mbpp")).problems
    curated = curate(mbpp, load("mbpp_sanitized", data("mbpp")).problems)
    assert (
        dict(curated.stage.reasons)
        == {"gated": 673, "overlaps a gated problem": 20, "secret or personal data": 1}
        and len(curated.kept) == 280
    )
    assert ("mbpp/542", "mbpp/732") in {
        (o.problem_id, o.gated_id) for o in curated.overlaps if o.leak
    }


def test_of_two_that_are_the_same_the_original_stays_and_what_was_made_of_it_goes() -> None:
    made = dataclasses.replace(
        toy("original"),
        problem_id="augmented/copy",
        source="augmented",
        extra={"parents": ["toy/original"]},
    )
    more = dataclasses.replace(made, tests=(*made.tests, {"args": [2], "expected": "more"}))
    [group] = duplicates([more, toy("original")]).groups
    assert group.kept == "toy/original" and group.why == "not made of another"
