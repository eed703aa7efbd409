"""Problems of production: each way to poison a training with them is shut."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.augmentation.draft import reason_not_parent
from problems.cleaning.curation import curate
from problems.dataset.splits import HELDOUT, VALIDATION, with_parts
from problems.production import SOURCE, capped, is_production
from problems.reading.place import Place
from problems.schema import Problem
from problems.sources.registry import load
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox

STATEMENT = "Write a function that returns its argument times two, also for negative numbers."
RIGHT = ("def f(x):\n    return x * 2", "def f(x):\n    return x + x")
CASES = [{"args": [x], "kwargs": {}, "expected": 2 * x} for x in (0, 1, 3, -5)]


def row(**changes: Any) -> dict[str, Any]:
    task = {"problem_id": "production/a", "statement": STATEMENT, "style": "call"}
    return task | {"entry_point": "f", "tests": CASES, "key": "k"} | changes


def read(folder: Path, rows: Sequence[dict[str, Any]], *samples: str) -> list[Problem]:
    """Return the problems of a file as `ratchet data production` writes it."""
    file, programs = folder / "problems.jsonl", folder / "samples.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    lines = [{"problem_id": rows[0]["problem_id"], "completion": text} for text in samples]
    programs.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return load(SOURCE, Place(file, samples=programs if samples else None)).problems


def made(key: str, number: int, **changes: Any) -> Problem:
    problem = Problem(
        f"{SOURCE}/{key}-{number:03d}", SOURCE, f"Task {key} {number}", "call", ({"args": []},), "f"
    )
    return replace(problem, extra={"key": key}, **changes)


def test_a_row_brings_no_solution_no_split_and_no_samples(tmp_path: Path) -> None:
    trusted = {"solutions": ["def f(x): return 0"], "split": "demonstrations", "licence": "MIT"}
    [problem] = read(tmp_path, [row(**trusted, samples=list(RIGHT), limits={"cpu_s": 99.0})])
    assert (problem.solutions, problem.samples, problem.split) == ((), (), "train")
    assert (problem.source, problem.extra) == (SOURCE, {"key": "k"})


def test_tests_that_are_code_are_refused(tmp_path: Path) -> None:
    source = "def check(candidate):\n    assert True"
    assert not read(tmp_path, [row(style="assert", tests=[{"source": source}])])


@pytest.mark.parametrize(
    ("expected", "samples", "reason"),
    [
        (2, RIGHT, None),
        (2, (), "no reference solution"),
        (2, RIGHT[:1], "samples do not agree"),
        (7, RIGHT, "samples do not agree"),  # a poisoned test: no solver's program passes it
    ],
    ids=["agreeing", "without samples", "one sample", "wrong test"],
)
def test_the_tests_of_a_request_count_only_if_samples_agree_under_them(
    tmp_path: Path, sandbox: Sandbox, expected: int, samples: Sequence[str], reason: str | None
) -> None:
    cases = [*CASES[:1], {"args": [1], "kwargs": {}, "expected": expected}, *CASES[2:]]
    problems = read(tmp_path, [row(tests=cases)], *samples)
    config = Verification(mutants=4, repeats=1)
    verified = verify(problems, sandbox, tmp_path / "journal.jsonl", config)
    assert [one.reason for one in verified.removed] == ([reason] if reason else [])
    assert [one.extra["verified_by"] for one in verified.problems] == ([] if reason else ["solver"])


@pytest.mark.parametrize("request_text", ["{}", "Complete this function:\n\n```python\n{}```"])
def test_a_benchmark_task_that_a_client_sends_does_not_enter_training(
    tmp_path: Path, data: Callable[[str], Path], request_text: str
) -> None:
    tasks = load("humaneval", data("humaneval")).problems[:20]
    texts = [request_text.format(task.statement) for task in tasks]
    rows = [row(problem_id=f"production/{n}", statement=text) for n, text in enumerate(texts)]
    sent = [replace(each, solutions=RIGHT) for each in read(tmp_path, rows)]
    assert len(sent) == 20
    assert not curate(sent, tasks).problems


def test_a_secret_that_reached_the_file_is_removed(tmp_path: Path) -> None:
    secret = row(statement=f"{STATEMENT} Log in with ghp_{'a1B2' * 9}.")
    [removed] = curate(read(tmp_path, [secret]), []).removed
    assert removed.reason == "secret or personal data"
    assert "ghp_" not in removed.detail


@given(
    st.integers(0, 60),
    st.lists(st.sampled_from("abc"), max_size=40),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_production_never_exceeds_its_share(others: int, keys: list[str], share: float) -> None:
    ours = [made(key, number) for number, key in enumerate(keys)]
    problems = [*ours, *(Problem(f"x/{n}", "x", "", "call", ()) for n in range(others))]
    kept = capped(problems, share)
    count = sum(map(is_production, kept))
    assert count <= share * len(kept) + 1e-6
    assert len(kept) - count == others
    full = count + 1 > share * (len(kept) + 1) + 1e-6
    assert full or count == len(ours)


def test_a_flood_of_one_key_leaves_room_for_the_others() -> None:
    flood = [made("a", number) for number in range(100)]
    problems = [*flood, made("b", 1), made("c", 1)]
    others = [Problem(f"x/{n}", "x", "", "call", ()) for n in range(95)]
    kept = Counter(each.extra["key"] for each in capped([*problems, *others], 0.05)[: -len(others)])
    assert kept == {"a": 3, "b": 1, "c": 1}


def test_production_never_becomes_validation_or_held_out() -> None:
    problems = with_parts([made("a", number) for number in range(40)], [VALIDATION, HELDOUT])
    assert {problem.split for problem in problems} == {"train"}


def test_of_two_equal_problems_that_of_production_goes() -> None:
    many = made("a", 1, statement=STATEMENT, tests=tuple(CASES), solutions=RIGHT, licence="own")
    few = replace(many, problem_id="x/1", source="x", tests=tuple(CASES[:2]), extra={})
    assert [each.problem_id for each in curate([many, few], []).problems] == ["x/1"]


def test_nothing_is_derived_from_production() -> None:
    assert reason_not_parent(made("a", 1)) == "from production"
