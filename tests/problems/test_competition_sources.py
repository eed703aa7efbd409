"""APPS, TACO, LiveCodeBench and CodeContests in upstream's schema, with rows made by hand."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from problems.reading.livecodebench import only_text
from problems.schema import Problem
from problems.sources.registry import load
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

APPS: dict[str, Any] = {
    "problem_id": 0,
    "question": "Read n, print its double.",
    "difficulty": "interview",
    "url": "https://example.org/1",
    "starter_code": "",
    "solutions": json.dumps(
        ["print 2 * input()", "print(2 * int(input()))", "n = int(input())\nprint(n + n)"]
    ),
    "input_output": json.dumps({"inputs": ["2\n", ["3"]], "outputs": ["4\n", "6"]}),
}
METHOD = APPS | {
    "problem_id": 1,
    "question": "Return the sum of a list, for each list that you are given.",
    "starter_code": "class Solution:\n    def total(self, nums: List[int]) -> int:\n        ",
    "solutions": json.dumps(
        ["class Solution:\n    def total(self, nums: List[int]) -> int:\n        return sum(nums)"]
    ),
    "input_output": json.dumps(
        {"fn_name": "total", "inputs": [[[1, 2]], [[]]], "outputs": [[3], [0]]}
    ),
}
TACO = {key: value for key, value in APPS.items() if key != "problem_id"} | {
    "tags": "['Number theory']",
    "skill_types": "[]",
    "name": None,
}
CASES = [{"input": "5", "output": "10", "testtype": "stdin"}]
LIVE: dict[str, Any] = {
    "question_title": "Double",
    "question_content": "Read n, print its double.",
    "platform": "atcoder",
    "question_id": "abc301_a",
    "contest_id": "abc301",
    "contest_date": "2023-05-13T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "metadata": "{}",
    "public_test_cases": json.dumps([{"input": "2", "output": "4", "testtype": "stdin"}]),
    "private_test_cases": json.dumps(CASES),
}
LISTS = {"input": ["2\n"], "output": ["4\n"]}
CONTEST: dict[str, Any] = {
    "name": "1041_E. Double",
    "description": "Read n, print its double.",
    "public_tests": LISTS,
    "private_tests": {"input": ["3\n"], "output": ["6\n"]},
    "generated_tests": {"input": [], "output": []},
    "difficulty": 11,
    "cf_rating": 1200,
    "cf_tags": ["math", ""],
    "solutions": {
        "language": [1, 2, 3, 3],
        "solution": [
            "print 2*input()",
            "int main(){}",
            "print(2 * int(input()))",
            "print(2 * int(input()))",
        ],
    },
}


def read(folder: Path, source: str, name: str, *rows: dict[str, Any]) -> list[Problem]:
    (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    loaded = load(source, folder / name)
    assert not loaded.rejected, loaded.rejected
    return loaded.problems


def refused(folder: Path, source: str, name: str, row: dict[str, Any]) -> str:
    (folder / name).write_text(json.dumps(row), encoding="utf-8")
    [rejected] = load(source, folder / name).rejected
    return rejected.reason


def packed(value: Any) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def test_apps_has_programs_and_methods_with_python_3_solutions(
    tmp_path: Path,
) -> None:
    program, method = read(tmp_path, "apps", "train.jsonl", APPS, METHOD)
    assert (program.problem_id, program.style, program.split, program.gated) == (
        "apps/train-0000",
        "stdio",
        "train",
        False,
    )
    assert program.solutions == (
        "print(2 * int(input()))",
        "n = int(input())\nprint(n + n)",
    )
    assert program.tests[1] == {"stdin": "3", "stdout": "6"}
    assert (method.style, method.entry_point) == ("call", "Solution().total")
    # the result may be the list or its element, as upstream's harness takes them
    assert method.tests[0] == {"args": [[1, 2]], "kwargs": {}, "expected": [3]}
    assert method.checker


def test_a_solution_shows_a_method_where_apps_has_no_starter_code(tmp_path: Path) -> None:
    [method] = read(tmp_path, "apps", "train.jsonl", METHOD | {"starter_code": ""})
    assert method.entry_point == "Solution().total"


def test_references_of_every_source_pass_in_the_sandbox(tmp_path: Path, sandbox: Sandbox) -> None:
    problems = [
        *read(tmp_path, "apps", "train.jsonl", APPS, METHOD),
        *read(tmp_path, "codecontests", "train.jsonl", CONTEST),
    ]
    jobs = [problem.job(problem.solutions[0], problem.problem_id) for problem in problems]
    assert [report.verdict for report in sandbox.run(jobs)] == [Verdict.AC] * 3


def test_a_test_split_is_gated_and_an_unknown_split_is_refused(tmp_path: Path) -> None:
    [apps], [taco] = (
        read(tmp_path, source, "test.jsonl", row)
        for source, row in (("apps", APPS), ("taco", TACO))
    )
    assert apps.gated
    assert taco.gated
    assert apps.split == taco.split == "heldout"
    assert apps.problem_id == "apps/test-0000"
    assert "None" in refused(tmp_path, "apps", "mine.jsonl", APPS)
    assert "'valid'" in refused(tmp_path, "taco", "valid.jsonl", TACO)


def test_a_taco_id_depends_on_the_statement(tmp_path: Path) -> None:
    [first] = read(tmp_path, "taco", "train-00000.jsonl", TACO)
    [second] = read(
        tmp_path, "taco", "train-00000.jsonl", TACO | {"question": "Read n, print its half."}
    )
    assert first.problem_id != second.problem_id
    assert first.tags == (
        "taco",
        "interview",
        "number-theory",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"input_output": "{"}, "'input_output'"),
        ({"input_output": ""}, "no tests"),
        ({"input_output": "[1]"}, "'input_output'"),
        ({"input_output": '{"inputs": ["1"], "outputs": []}'}, "an output for each input"),
        (
            {"input_output": '{"inputs": [1], "outputs": ["1"]}'},
            "number 1",
        ),
        (
            {"input_output": '{"fn_name": "f", "inputs": [1], "outputs": [1]}'},
            "lists of arguments",
        ),
        ({"question": None}, "'question'"),
        ({"solutions": 3}, "'solutions'"),
    ],
)
def test_a_bad_row_of_apps_names_its_key(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    assert reason in refused(tmp_path, "apps", "train.jsonl", APPS | change)


def test_livecodebench_is_gated_and_its_packed_tests_are_read(tmp_path: Path) -> None:
    plain, unpacked = (
        read(tmp_path, "livecodebench", "test.jsonl", LIVE | {"private_test_cases": cases})
        for cases in (json.dumps(CASES), packed(json.dumps(CASES)))
    )
    [problem] = unpacked
    assert plain == unpacked
    assert problem.gated
    assert problem.visible_tests == 1
    assert problem.tests == ({"stdin": "2", "stdout": "4"}, {"stdin": "5", "stdout": "10"})
    assert problem.compare == "tokens"


def test_arguments_of_a_livecodebench_method_are_read_line_by_line(tmp_path: Path) -> None:
    cases = [{"input": '[1, 2]\n"a"', "output": "3", "testtype": "functional"}]
    row = LIVE | {
        "metadata": '{"func_name": "f"}',
        "starter_code": "class Solution:\n    def f(self, x, y):",
        "private_test_cases": packed(json.dumps(cases)),
    }
    [problem] = read(tmp_path, "livecodebench", "test.jsonl", row | {"public_test_cases": "[]"})
    assert problem.entry_point == "Solution().f"
    assert problem.tests == ({"args": [[1, 2], "a"], "kwargs": {}, "expected": 3},)


class Attack:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "it ran"
    reason = refused(
        tmp_path,
        "livecodebench",
        "test.jsonl",
        LIVE | {"private_test_cases": packed(Attack(marker))},
    )
    assert "a pickle" in reason
    assert not marker.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_text_of_a_pickle_is_read_in_every_protocol(protocol: int) -> None:
    written = '[{"input": "é\\n"}]' * 50
    assert only_text(pickle.dumps(written, protocol)) == written


@pytest.mark.parametrize("value", [["a"], b"a", 3, ("a", "b"), {"a": "b"}])
def test_a_pickle_of_anything_but_text_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a pickle"):
        only_text(pickle.dumps(value))


@pytest.mark.parametrize(
    "broken",
    [
        "?",
        packed(json.dumps(CASES))[:-8],
        base64.b64encode(zlib.compress(b"x")).decode(),
        packed("{"),
    ],
)
def test_broken_packed_tests_are_a_bad_row(tmp_path: Path, broken: str) -> None:
    assert "'private_test_cases'" in refused(
        tmp_path, "livecodebench", "test.jsonl", LIVE | {"private_test_cases": broken}
    )


def test_codecontests_is_read_in_its_upstream_schema(tmp_path: Path) -> None:
    [problem] = read(tmp_path, "codecontests", "train-00000-of-00039.jsonl", CONTEST)
    assert problem.problem_id == "codecontests/1041_e_double"
    assert not problem.gated
    assert problem.visible_tests == 1
    assert problem.solutions == ("print(2 * int(input()))",)
    assert [test["stdout"] for test in problem.tests] == ["4\n", "6\n"]


@pytest.mark.parametrize(
    ("asks", "tolerance"),
    [
        ("Your answer is correct if its absolute or relative error does not exceed 10^{-6}.", 1e-6),
        ("The relative or absolute error of each number mustn't exceed 10 - 9.", 1e-9),
        ("It has an absolute value of at most 10 - 3 more. Print 10-4.", None),
    ],
)
def test_the_tolerance_of_codecontests_is_read_from_the_statement(
    tmp_path: Path, asks: str, tolerance: float | None
) -> None:
    [problem] = read(
        tmp_path, "codecontests", "train.jsonl", CONTEST | {"description": f"Double it. {asks}"}
    )
    assert problem.tolerance == tolerance


def test_codecontests_is_gated_by_split_and_by_contest(tmp_path: Path) -> None:
    late = CONTEST | {"name": "1575_A. Another Sorting Problem"}
    assert all(
        read(tmp_path, "codecontests", f"{split}.jsonl", CONTEST)[0].gated
        for split in ("valid", "test")
    )
    assert read(tmp_path, "codecontests", "train.jsonl", late)[0].gated
    assert "None" in refused(tmp_path, "codecontests", "mine.jsonl", CONTEST)
    assert "'public_tests'" in refused(
        tmp_path, "codecontests", "train.jsonl", CONTEST | {"public_tests": {"input": ["1"]}}
    )


@pytest.mark.slow
def test_the_train_split_of_leetcode_loads_except_picture_tasks(
    data: Callable[[str], Path],
) -> None:
    loaded = load("leetcode_train", data("leetcode"))
    assert len(loaded.problems) + len(loaded.rejected) == 1570
    assert not any(problem.gated for problem in loaded.problems)
    assert all("asks for nothing" in rejected.reason for rejected in loaded.rejected)
