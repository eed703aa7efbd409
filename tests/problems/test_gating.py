"""Gated tasks are recognized by name and statement, whatever the row claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from problems.cleaning.curation import curate
from problems.cleaning.gating import (
    gated_as,
    gated_leetcode,
    is_gated_contest,
    is_gated_leetcode,
    is_gated_mbpp,
)
from problems.reading.place import Place
from problems.schema import Problem
from problems.sources.registry import load


def named(problem_id: str, **extra: Any) -> Problem:
    tests = ({"args": [1], "kwargs": {}, "expected": 1},)
    return Problem(
        problem_id,
        problem_id.split("/")[0],
        "Return the number that is given.",
        "call",
        tests,
        "f",
        licence="own",
        extra=extra,
    )


@pytest.mark.parametrize(
    "name",
    [
        "mbpp/11",
        "mine/Mbpp/11",
        "mbppplus/602",
        "mine/mbpp_11",
        "mbpp2/11",
        "mine/mbpp-11-renamed",
        "humaneval/0",
        "mine/HumanEval/163",
        "mine/human_eval_3",
        "humanevalplus/5",
        "mine/BigCodeBench/1139",
        "bigcodebench_hard/3",
        "livecodebench/abc301_a",
        "x/LiveCodeBench_v6/2784",
        "leetcode/shortest-distance-after-road-addition-queries-i",
        "mine/eat-pizzas",
        "codecontests/1575_a_another",
        "x/code_contests/1549_B. Gregor",
        "apps/test-0001",
        "taco/test-0a1b2c3d4e5f",
    ],
)
def test_a_gated_task_is_recognized_by_its_name(name: str) -> None:
    assert gated_as(named(name))
    assert gated_as(named("mine/1", task_id=name))
    assert gated_as(named("mine/1", parents=["mine/2", name]))
    assert [removed.reason for removed in curate([named(name)], []).removed] == ["gated"]


@pytest.mark.parametrize(
    "name",
    [
        "mbpp/601",
        "mine/mbpp_601",
        "mbpp/601-11",
        "mine/11",
        "leetcode_train/two-sum",
        "codecontests/1041_e_tree",
        "apps/train-0001",
        "taco/train-0a1b2c3d4e5f",
        "embedded/train/0123456789ab",
        "mine/apps-and-tests",
        "mine/evaluate human speech",
    ],
)
def test_ungated_names_are_not_gated(name: str) -> None:
    assert gated_as(named(name)) is None


def test_a_custom_row_cannot_claim_to_be_ungated(tmp_path: Path) -> None:
    row = {
        "statement": "Double it.",
        "style": "call",
        "entry_point": "f",
        "tests": [{"args": [2], "expected": 4}],
        "gated": False,
        "split": "train",
    }
    rows = [
        row | {"id": "mbpp/11"},
        row | {"id": "a", "task_id": "HumanEval/3"},
        row | {"id": "mbpp/601"},
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [(p.gated, p.split) for p in load("mine", tmp_path / "mine.jsonl").problems] == [
        (True, "heldout"),
        (True, "heldout"),
        (False, "train"),
    ]


def test_a_custom_file_of_a_known_source_is_gated_by_task(tmp_path: Path) -> None:
    row = {
        "text": "Add one.",
        "code": "def f(x):\n    return x + 1",
        "test_list": ["assert f(1) == 2"],
        "gated": False,
    }
    (tmp_path / "x.jsonl").write_text(
        "\n".join(json.dumps(row | {"task_id": task}) for task in (11, 602, 601)), encoding="utf-8"
    )
    assert [problem.gated for problem in load("mbpp", tmp_path / "x.jsonl").problems] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "Write a function to find the shared elements from the given two lists.",  # MBPP+ 2
        "  write a function to find the SHARED elements, from the given two lists",
        # Cyrillic letters, a zero-width space and a full-width letter
        "Wr\u0456te \u0430 function to f\u200bind the \uff53hared elements from the given "
        "two lists.",
    ],
)
def test_a_copy_of_a_gated_task_is_recognized_by_its_statement(statement: str) -> None:
    assert "mbpp_sanitized" in (gated_as(replace(named("mine/1"), statement=statement)) or "")


@pytest.mark.slow
def test_a_gated_benchmark_under_another_name_is_gated(data: Callable[[str], Path]) -> None:
    mbpp = Place(
        data("mbpp") / "mbpp.jsonl",
        columns={"statement": "text", "solutions": "code", "tests": "test_list"},
        constants={"style": "assert"},
    )
    prompts = {"statement": "prompt", "solutions": "canonical_solution", "tests": "test"}
    humaneval = Place(
        data("humaneval") / "HumanEval.jsonl.gz", columns=prompts, constants={"style": "assert"}
    )
    assert all(problem.gated for problem in load("mine", humaneval).problems)
    loaded = load("mine", mbpp).problems
    assert not [
        p.extra["task_id"] for p in loaded if is_gated_mbpp(p.extra["task_id"]) and not p.gated
    ]
    assert not all(p.gated for p in loaded)


def test_leetcode_is_gated_by_name_date_and_number() -> None:
    assert len(gated_leetcode()) == 228
    assert is_gated_leetcode("eat-pizzas")
    assert is_gated_leetcode("new", date="2024-07-01")
    assert not is_gated_leetcode("old", date="2024-06-30", number="9999")
    assert is_gated_leetcode("new", number="3243")
    assert not is_gated_leetcode("old", number="2831")


def test_a_contest_is_gated_by_its_number() -> None:
    assert is_gated_contest("1548_A. Web")
    assert not is_gated_contest("1547_G. How")
    assert not is_gated_contest("p02345 AtCoder")
