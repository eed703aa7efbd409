"""Every row of a source becomes a problem or is rejected by place, reason and mend; the real sets load whole."""

from __future__ import annotations

import ast
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from problems.catalogue import add_source, listed, remove_source
from problems.cleaning.gating import gated_mbpp
from problems.columns import ProblemError
from problems.schema import read_parquet, write_parquet
from problems.sources.own import overlooked
from problems.sources.place import Place
from problems.sources.registry import SOURCES, load

GOOD = {
    "id": "a",
    "statement": "Double it.",
    "style": "call",
    "entry_point": "f",
    "tests": [{"args": [2], "expected": 4}],
    "rating": 3,
}
MBPP_ROW = {
    "task_id": 601,
    "text": "Add one.",
    "code": "def f(x):\r\n\treturn x + 1",
    "test_list": ["assert f(1) == 2"],
    "test_setup_code": "",
}


def lines(path: Path, *rows: dict[str, Any] | str | bytes) -> Path:
    texts = [
        row
        if isinstance(row, bytes)
        else (row if isinstance(row, str) else json.dumps(row)).encode()
        for row in rows
    ]
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


ASSERT = GOOD | {
    "style": "assert",
    "solutions": ["import math\ndef f(x):\n    return 2 * math.floor(x)"],
}


def test_plain_asserts_of_ones_own_become_tests_of_a_candidate_with_the_solutions_imports(
    tmp_path: Path,
) -> None:
    tests = ["assert f(1) == 2", "assert f(2) == math.floor(4.5)"]
    [problem] = load("mine", lines(tmp_path / "mine.jsonl", ASSERT | {"tests": tests})).problems
    first, second = (test["source"] for test in problem.tests)
    assert (
        "def check(candidate):\n    assert candidate(1) == 2" in first and "import math" in second
    )


@pytest.mark.parametrize(
    "tests",
    [
        ["f(1) == 2"],
        ["assert g(1)"],
        ["assert f(1"],
        ["import os\nassert f(1)"],
        ["assert f(1)", {"source": "x"}],
    ],
)
def test_texts_that_are_no_asserts_about_the_function_are_refused_with_a_test_to_copy(
    tmp_path: Path, tests: list[Any]
) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", ASSERT | {"tests": tests})).rejected
    assert (
        bad.reason.startswith("column tests: test 0 is a text")
        and r'{"source": "def check(candidate):\n    assert candidate(1) == 2"}' in bad.mend
    )


def test_texts_as_tests_of_a_call_are_refused_with_a_test_to_copy(tmp_path: Path) -> None:
    [bad] = load(
        "mine", lines(tmp_path / "mine.jsonl", GOOD | {"tests": ["assert f(1) == 2"]})
    ).rejected
    assert bad.mend == 'write each as an object, e.g. {"args": [1], "expected": 2}'


@pytest.mark.parametrize(
    ("missing", "written", "said"),
    [
        ("statement", "prompt", "there is 'prompt', did you mean statement?"),
        ("tests", "test", "there is 'test', did you mean tests?"),
    ],
)
def test_a_column_that_is_missing_is_looked_for_under_another_name(
    tmp_path: Path, missing: str, written: str, said: str
) -> None:
    row = {key: value for key, value in GOOD.items() if key != missing} | {written: GOOD[missing]}
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", row)).rejected
    assert bad.reason == f"column {missing} is missing: {said}"


def test_a_test_with_input_and_output_is_told_what_they_are_called_here(tmp_path: Path) -> None:
    row = GOOD | {"style": "stdio", "tests": [{"input": "1", "output": "2"}]}
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", row)).rejected
    assert bad.reason == "column tests: test 0 lacks 'stdin': it has 'input', did you mean stdin?"


def test_a_key_that_is_nearly_a_column_is_seen_only_where_the_column_is_empty(
    tmp_path: Path,
) -> None:
    rows = (
        GOOD | {"solution": "x", "license": "MIT"},
        GOOD
        | {
            "id": "b",
            "solution": "x",
            "solutions": ["def f(x):\n    return 2 * x"],
            "licence": "MIT",
        },
    )
    found = [
        overlooked(problem)
        for problem in load("mine", lines(tmp_path / "mine.jsonl", *rows)).problems
    ]
    assert found == [[("solution", "solutions"), ("license", "licence")], []]


def test_broken_json_is_placed_by_the_files_line_and_the_column(tmp_path: Path) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", GOOD, '{"id" 1}')).rejected
    assert bad.row.endswith("line 2") and bad.reason.endswith("at column 7")


def test_an_unknown_part_is_told_what_each_is_for(tmp_path: Path) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", GOOD | {"split": "test"})).rejected
    assert (
        bad.reason == 'column split is a text "test"'
        and "validation (chooses checkpoints), heldout (gates" in bad.mend
    )


def test_rows_of_ones_own_become_problems(tmp_path: Path) -> None:
    loaded = load(
        "mine",
        lines(
            tmp_path / "mine.jsonl",
            GOOD,
            GOOD | {"id": "b", "tests": [{"args": [{"$tuple": [1]}], "expected": 2}]},
        ),
    )
    assert [problem.problem_id for problem in loaded.problems] == [
        "mine/a",
        "mine/b",
    ] and not loaded.rejected
    assert loaded.problems[0].extra == {"rating": 3} and loaded.problems[1].tests[0]["args"] == [
        (1,)
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"id": "x",', "broken JSON"),
        (b'{"id": "\xe9"}', "byte 8 is not UTF-8"),
        ("[1]", "a list [1] instead of an object"),
        ("NaN", "a number NaN instead of an object"),
        ("[" * 100_000, "JSON that cannot be read"),
        ({k: v for k, v in GOOD.items() if k != "statement"}, "column statement is missing"),
        ({k: v for k, v in GOOD.items() if k != "id"}, "column problem_id is missing"),
        ({k: v for k, v in GOOD.items() if k != "entry_point"}, "column entry_point is missing"),
        (GOOD | {"id": "x", "tests": "none"}, 'column tests is a text "none"'),
        (GOOD | {"id": "x", "tests": []}, "column tests is a list []"),
        (GOOD | {"id": "x", "tests": [{"args": {"$bytes": "?"}, "expected": 1}]}, "column tests:"),
        (GOOD | {"id": "x", "limits": {"wall": 3}}, "column limits"),
        (
            GOOD | {"id": "x", "style": "assert", "tests": [{"source": "assert f(1"}]},
            "column tests: test 0 is no Python",
        ),
        (
            GOOD | {"id": "x", "style": "assert", "tests": [{"source": "assert f(1)"}]},
            "column tests: test 0 defines no check(candidate)",
        ),
        (GOOD, "problem_id 'mine/a' is also at"),
        (GOOD | {"id": "x", "statement": "\ud800"}, "column statement is a text"),
    ],
)
def test_a_bad_row_is_rejected_with_its_line_and_the_others_go_on(
    tmp_path: Path, row: Any, reason: str
) -> None:
    path = lines(tmp_path / "mine.jsonl", GOOD, row, GOOD | {"id": "z"})
    loaded = load("mine", path)
    assert [problem.problem_id for problem in loaded.problems] == [
        "mine/a",
        "mine/z",
    ] and loaded.rows == 3
    (rejected,) = loaded.rejected
    assert rejected.row == f"{path}: line 2" and reason in rejected.reason and rejected.mend


@pytest.mark.slow
def test_a_row_of_a_hundred_megabytes_is_rejected(tmp_path: Path) -> None:
    loaded = load(
        "mine",
        lines(tmp_path / "mine.jsonl", b'{"statement": "' + b"x" * 100_000_000 + b'"}', GOOD),
    )
    assert len(loaded.problems) == 1 and "a row of 95 MiB" in loaded.rejected[0].reason


def test_a_cut_off_gzip_keeps_what_was_read(tmp_path: Path) -> None:
    whole = gzip.compress(
        b"\n".join(
            json.dumps(GOOD | {"id": str(number), "statement": f"{number**7}"}).encode()
            for number in range(2000)
        )
    )
    (tmp_path / "mine.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    loaded = load("mine", tmp_path)
    assert len(loaded.problems) > 100 and "cannot be read on" in loaded.rejected[0].reason


def test_a_json_list_is_read_and_a_broken_one_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps([GOOD, 3]))
    assert len(load("mine", tmp_path).problems) == 1
    (tmp_path / "mine.json").write_text('[{"id": 1},\n {]')
    assert "at line 2 column 3" in load("mine", tmp_path).rejected[0].reason


def test_a_parquet_that_ratchet_wrote_is_a_source(tmp_path: Path) -> None:
    problems = load("mine", lines(tmp_path / "mine.jsonl", GOOD)).problems
    write_parquet(problems, tmp_path / "mine.parquet")
    assert (
        load("mine", tmp_path / "mine.parquet").problems
        == problems
        == read_parquet(tmp_path / "mine.parquet")
    )


def test_an_empty_file_is_an_error_not_an_empty_source(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"mine\.jsonl: the file is empty"):
        load("mine", lines(tmp_path / "mine.jsonl"))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist"):
        load("mbpp", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no mbpp\.jsonl or mbpp\.jsonl\.gz in"):
        load("mbpp", tmp_path)


def test_an_unknown_source_without_a_path_is_refused() -> None:
    with pytest.raises(
        ProblemError,
        match=r"unknown source 'mbbp': give its path, or use one of embedded, .*mbpp",
    ):
        load("mbbp")


def test_a_hub_that_cannot_be_reached_says_to_give_a_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import datasets
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(
        ProblemError,
        match=r"hub dataset google-research-datasets/mbpp cannot be read: the hub .*give a local path",
    ):
        load("mbpp")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task_id": "x"}, "key 'task_id' is a text \"x\""),
        ({"code": "def f(:"}, "no Python"),
        ({"code": None}, "key 'code' is null"),
        ({"test_list": ["assert g(1)"]}, "calls none of the functions of code \\(f\\)"),
        ({"test_list": "assert f(1)"}, "expected a list of texts|key 'test_list' is a text"),
    ],
)
def test_a_bad_row_of_mbpp_names_its_key(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    loaded = load(
        "mbpp", lines(tmp_path / "mbpp.jsonl", MBPP_ROW | change, MBPP_ROW | {"task_id": 602})
    )
    assert len(loaded.problems) == 1
    with pytest.raises(ProblemError, match=reason):
        raise ProblemError(loaded.rejected[0].reason, loaded.rejected[0].mend)


SETS = [("mbpp", 974), ("mbpp_sanitized", 427), ("humaneval", 164), ("codecontests", 300)]
SETS_PLUS = [("mbppplus", 378), ("humanevalplus", 164), ("leetcode", 228)]  # their inputs are many


@pytest.mark.parametrize(
    ("name", "count"), [*SETS, *(pytest.param(*each, marks=pytest.mark.slow) for each in SETS_PLUS)]
)
def test_a_real_set_loads_whole(data: Callable[[str], Path], name: str, count: int) -> None:
    loaded = load(name, data(name.removesuffix("_sanitized")))
    assert len(loaded.problems) == count and loaded.rejected == []
    for problem in loaded.problems:
        assert (
            problem.statement.strip()
            and problem.solutions
            and (problem.entry_point or problem.style == "stdio")
        )
        for test in problem.tests if problem.style == "assert" else ():
            ast.parse(test["source"])


def test_no_ungated_task_of_mbpp_is_in_any_release_that_is_reported(
    data: Callable[[str], Path],
) -> None:
    open_tasks = {p.extra["task_id"] for p in load("mbpp", data("mbpp")).problems if not p.gated}
    plus = {p.extra["task_id"] for p in load("mbppplus", data("mbppplus")).problems}
    sanitized = {p.extra["task_id"] for p in load("mbpp_sanitized", data("mbpp")).problems}
    assert not open_tasks & (plus | sanitized | set(range(11, 511)))
    assert len(
        [task for task in plus if 601 <= task <= 974]
    ) == 108 and gated_mbpp() == plus | sanitized | set(range(11, 511))


def test_every_source_that_is_reported_is_gated_throughout(data: Callable[[str], Path]) -> None:
    for name in ("mbpp_sanitized", "mbppplus", "humaneval", "humanevalplus"):
        assert all(
            problem.gated and problem.split == "heldout"
            for problem in load(name, data(name.removesuffix("_sanitized"))).problems
        )


def test_a_source_that_was_added_is_listed_until_it_is_removed(tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", GOOD)
    add_source(tmp_path, "mine", path)
    add_source(tmp_path, "mbpp", None)
    assert listed(tmp_path) == {"mbpp": Place(), "mine": Place(path)}
    remove_source(tmp_path, "mine")
    assert listed(tmp_path) == {"mbpp": Place()}


def test_a_source_is_added_only_under_a_good_name_and_a_real_path(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"'../x' is no name"):
        add_source(tmp_path, "../x", tmp_path)
    with pytest.raises(FileNotFoundError, match="check --path"):
        add_source(tmp_path, "mine", tmp_path / "nowhere")
    with pytest.raises(ProblemError, match="unknown source 'mine'"):
        add_source(tmp_path, "mine", None)
    with pytest.raises(ProblemError, match="'mine' was not added"):
        remove_source(tmp_path, "mine")


def test_a_broken_list_of_sources_says_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "sources.json").write_text("[")
    with pytest.raises(ProblemError, match=r"sources\.json: broken .*remove the file"):
        listed(tmp_path)


def test_the_embedded_source_needs_no_path() -> None:
    assert SOURCES["embedded"].generate is not None


ADDER = """
import sys; from pathlib import Path; from problems.catalogue import add_source
home, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True); sys.stdin.readline()
for number in range(20):
    add_source(home, f"{name}_{number}", home / "own.jsonl")
"""


def test_sources_that_two_processes_add_at_once_are_all_there(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").touch()
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    adders = [
        subprocess.Popen([sys.executable, "-c", ADDER, str(tmp_path), name], **pipes)
        for name in ("one", "two")
    ]
    assert [adder.stdout.readline() for adder in adders if adder.stdout] == ["ready\n"] * 2
    for adder in adders:
        assert adder.stdin
        adder.stdin.write("go\n")
        adder.stdin.flush()
    assert [adder.wait() for adder in adders] == [0, 0] and len(listed(tmp_path)) == 40
