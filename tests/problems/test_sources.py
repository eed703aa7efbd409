"""Every row of a source is a problem or is rejected with place, reason and fix."""

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

from problems.catalogue import add_source, read_sources, remove_source
from problems.cleaning.gating import gated_mbpp
from problems.columns import ProblemError
from problems.reading.own import overlooked
from problems.reading.place import Place
from problems.schema import read_parquet, write_parquet
from problems.sources.registry import load
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

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


def test_plain_asserts_become_tests_of_a_candidate(
    tmp_path: Path,
) -> None:
    tests = ["assert f(1) == 2", "assert f(2) == math.floor(4.5)"]
    [problem] = load("mine", lines(tmp_path / "mine.jsonl", ASSERT | {"tests": tests})).problems
    first, second = (test["source"] for test in problem.tests)
    assert "def check(candidate):\n    assert candidate(1) == 2" in first
    assert "import math" in second


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
def test_invalid_asserts_are_rejected_with_an_example(tmp_path: Path, tests: list[Any]) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", ASSERT | {"tests": tests})).rejected
    assert "tests: test 0 " in bad.reason
    assert r'{"source": "def check(candidate):\n    assert candidate(1) == 2"}' in bad.fix


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.json", "mine.csv", "mine.parquet"])
def test_a_pointer_of_git_lfs_is_named(tmp_path: Path, name: str) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (tmp_path / name).write_text(pointer)
    with pytest.raises(ProblemError, match=r"Git LFS .*: fetch them with `git lfs pull`"):
        load("mine", Place(tmp_path / name))


def test_text_tests_of_a_call_are_rejected_with_an_example(tmp_path: Path) -> None:
    [bad] = load(
        "mine", lines(tmp_path / "mine.jsonl", GOOD | {"tests": ["assert f(1) == 2"]})
    ).rejected
    assert '{"args": [1], "expected": 2}' in bad.fix


@pytest.mark.parametrize(("missing", "written"), [("statement", "prompt"), ("tests", "test")])
def test_a_missing_column_is_suggested_from_similar_names(
    tmp_path: Path, missing: str, written: str
) -> None:
    row = {key: value for key, value in GOOD.items() if key != missing} | {written: GOOD[missing]}
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", row)).rejected
    assert f"column {missing} " in bad.reason
    assert f"'{written}'" in bad.reason


def test_input_and_output_keys_are_rejected_with_the_right_names(tmp_path: Path) -> None:
    row = GOOD | {"style": "stdio", "tests": [{"input": "1", "output": "2"}]}
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", row)).rejected
    assert all(part in bad.reason for part in ("tests[0]", "'stdin'", "'input'"))


def test_similar_keys_are_overlooked_only_for_empty_columns(
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
    similar = [
        overlooked(problem)
        for problem in load("mine", lines(tmp_path / "mine.jsonl", *rows)).problems
    ]
    assert similar == [[("solution", "solutions"), ("license", "licence")], []]


def test_broken_json_is_located_by_line_and_column(tmp_path: Path) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", GOOD, '{"id" 1}')).rejected
    assert bad.row.endswith("line 2")
    assert bad.reason.endswith("at column 7")


def test_an_unknown_split_is_rejected_with_the_known_ones(tmp_path: Path) -> None:
    [bad] = load("mine", lines(tmp_path / "mine.jsonl", GOOD | {"split": "test"})).rejected
    assert 'split is a text "test"' in bad.reason
    assert all(split in bad.fix for split in ("train", "validation", "heldout"))


def test_custom_rows_become_problems(tmp_path: Path) -> None:
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
    ]
    assert not loaded.rejected
    assert loaded.problems[0].extra == {"rating": 3}
    assert loaded.problems[1].tests[0]["args"] == [(1,)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"id": "x",', "broken JSON"),
        (b'{"id": "\xe9"}', "byte 8 is not UTF-8"),
        ("[1]", "list [1]"),
        ("NaN", "NaN"),
        ("[" * 100_000, "JSON"),
        ({k: v for k, v in GOOD.items() if k != "statement"}, "statement is missing"),
        ({k: v for k, v in GOOD.items() if k != "id"}, "problem_id is missing"),
        ({k: v for k, v in GOOD.items() if k != "entry_point"}, "entry_point is missing"),
        (GOOD | {"id": "x", "tests": "none"}, 'tests is a text "none"'),
        (GOOD | {"id": "x", "tests": []}, "column tests is a list []"),
        (GOOD | {"id": "x", "tests": [{"args": {"$bytes": "?"}, "expected": 1}]}, "column tests:"),
        (GOOD | {"id": "x", "limits": {"wall": 3}}, "column limits"),
        (
            GOOD | {"id": "x", "style": "assert", "tests": [{"source": "assert f(1"}]},
            "tests: test 0 ",
        ),
        (
            GOOD | {"id": "x", "style": "assert", "tests": [{"source": "assert f(1)"}]},
            "check(candidate)",
        ),
        (GOOD, "'mine/a'"),
        (GOOD | {"id": "x", "statement": "\ud800"}, "statement is a text"),
    ],
)
def test_a_bad_row_is_rejected_with_its_line(tmp_path: Path, row: Any, reason: str) -> None:
    path = lines(tmp_path / "mine.jsonl", GOOD, row, GOOD | {"id": "z"})
    loaded = load("mine", path)
    assert [problem.problem_id for problem in loaded.problems] == [
        "mine/a",
        "mine/z",
    ]
    assert len(loaded.problems) + len(loaded.rejected) == 3
    (rejected,) = loaded.rejected
    assert rejected.row == f"{path}: line 2"
    assert reason in rejected.reason
    assert rejected.fix


def test_rows_before_a_truncated_gzip_end_are_kept(tmp_path: Path) -> None:
    whole = gzip.compress(
        b"\n".join(
            json.dumps(GOOD | {"id": str(number), "statement": f"{number**7}"}).encode()
            for number in range(2000)
        )
    )
    (tmp_path / "mine.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    loaded = load("mine", tmp_path)
    assert len(loaded.problems) > 100
    assert len(loaded.rejected) == 1


def test_a_json_list_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps([GOOD, 3]))
    assert len(load("mine", tmp_path).problems) == 1
    (tmp_path / "mine.json").write_text('[{"id": 1},\n {]')
    assert "at line 2 column 3" in load("mine", tmp_path).rejected[0].reason


def test_a_parquet_written_by_ratchet_is_a_source(tmp_path: Path) -> None:
    problems = load("mine", lines(tmp_path / "mine.jsonl", GOOD)).problems
    write_parquet(problems, tmp_path / "mine.parquet")
    assert (
        load("mine", tmp_path / "mine.parquet").problems
        == problems
        == read_parquet(tmp_path / "mine.parquet")
    )


def test_a_missing_path_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        load("mbpp", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"mbpp\.jsonl"):
        load("mbpp", tmp_path)


def test_an_unknown_source_without_a_path_is_refused() -> None:
    with pytest.raises(
        ProblemError,
        match=r"'mbbp'.*embedded, .*mbpp",
    ):
        load("mbbp")


def test_an_unreachable_hub_is_refused_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import datasets
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(
        ProblemError,
        match=r"google-research-datasets/mbpp .*--path",
    ):
        load("mbpp")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task_id": "x"}, "'task_id' is a text \"x\""),
        ({"code": "def f(:"}, "no Python"),
        ({"code": None}, "'code' is null"),
        ({"test_list": ["assert g(1)"]}, r"test_list .*\(f\)"),
        ({"test_list": "assert f(1)"}, "'test_list' is a text"),
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
        raise ProblemError(loaded.rejected[0].reason, loaded.rejected[0].fix)


SETS = [("mbpp", 974), ("mbpp_sanitized", 427), ("humaneval", 164), ("codecontests", 300)]
SETS_PLUS = [("mbppplus", 378), ("humanevalplus", 164), ("leetcode", 228)]  # they have many inputs
FULLY_GATED = ("mbpp_sanitized", "mbppplus", "humaneval", "humanevalplus")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [*SETS, *(pytest.param(*each, marks=pytest.mark.slow) for each in SETS_PLUS)]
)
def test_a_real_set_loads_completely(data: Callable[[str], Path], name: str, count: int) -> None:
    loaded = load(name, data(name.removesuffix("_sanitized")))
    assert len(loaded.problems) == count
    assert loaded.rejected == []
    if name in FULLY_GATED:
        assert {(problem.gated, problem.split) for problem in loaded.problems} == {
            (True, "heldout")
        }
    for problem in loaded.problems:
        assert problem.statement.strip()
        assert problem.solutions
        assert problem.entry_point or problem.style == "stdio"
        for test in problem.tests if problem.style == "assert" else ():
            ast.parse(test["source"])


@pytest.mark.slow
def test_no_ungated_mbpp_task_is_in_a_reported_release(
    data: Callable[[str], Path],
) -> None:
    open_tasks = {p.extra["task_id"] for p in load("mbpp", data("mbpp")).problems if not p.gated}
    plus = {p.extra["task_id"] for p in load("mbppplus", data("mbppplus")).problems}
    sanitized = {p.extra["task_id"] for p in load("mbpp_sanitized", data("mbpp")).problems}
    assert not open_tasks & (plus | sanitized | set(range(11, 511)))
    assert len([task for task in plus if 601 <= task <= 974]) == 108
    assert gated_mbpp() == plus | sanitized | set(range(11, 511))


def test_an_added_source_is_listed_until_removed(tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", GOOD)
    add_source(tmp_path, "mine", path)
    add_source(tmp_path, "mbpp", None)
    assert read_sources(tmp_path) == {"mbpp": Place(), "mine": Place(path)}
    remove_source(tmp_path, "mine")
    assert read_sources(tmp_path) == {"mbpp": Place()}


def test_a_source_needs_a_valid_name_and_path(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"'\.\./x'"):
        add_source(tmp_path, "../x", tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        add_source(tmp_path, "mine", tmp_path / "nowhere")
    with pytest.raises(ProblemError, match="'mine'"):
        add_source(tmp_path, "mine", None)
    with pytest.raises(ProblemError, match="'mine'"):
        remove_source(tmp_path, "mine")


def test_a_broken_source_list_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "sources.json").write_text("[")
    with pytest.raises(ProblemError, match=r"sources\.json: "):
        read_sources(tmp_path)


ADDER = """
import sys; from pathlib import Path; from problems.catalogue import add_source
home, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True); sys.stdin.readline()
for number in range(20):
    add_source(home, f"{name}_{number}", home / "own.jsonl")
"""


@pytest.mark.slow
def test_two_processes_can_add_sources_at_once(tmp_path: Path) -> None:
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
    assert [adder.wait() for adder in adders] == [0, 0]
    assert len(read_sources(tmp_path)) == 40


@pytest.mark.parametrize(
    "tests",
    [
        "from solution import add\n\ndef test_sum():\n    assert add(1, 2) == 3\n",
        "from solution import add\n\nclass TestAdd:\n    @classmethod\n    def setup_class(cls):\n"
        "        cls.two = 2\n\n    def test_sum(self):\n        assert add(1, self.two) == 3\n",
    ],
)
def test_a_pytest_module_is_a_style_of_tests(tmp_path: Path, sandbox: Sandbox, tests: str) -> None:
    solution = "def add(a, b):\n    return a + b"
    row = {"id": "a", "statement": "Add.", "style": "pytest", "tests": tests}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {"solutions": [solution]}))
    problem = load("mine", tmp_path / "rows.jsonl").problems[0]
    verdicts = [each.verdict for each in sandbox.run([problem.job(solution, "a")])]
    assert verdicts == [Verdict.AC]
