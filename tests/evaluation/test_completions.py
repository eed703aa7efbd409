"""Files of completions are read in the formats of other tools."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.completions import Completion, read, write
from problems.columns import ProblemError


def lines(path: Path, *rows: dict[str, Any] | str) -> Path:
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def test_samples_of_a_task_are_numbered_in_file_order(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "a.jsonl.gz",
        *(
            {"task_id": task, "completion": text}
            for task, text in (("HumanEval/0", "x"), ("HumanEval/1", "x"), ("HumanEval/0", "y"))
        ),
        "",
    )
    assert [(each.task_id, each.sample) for each in read(file)] == [
        ("HumanEval/0", 0),
        ("HumanEval/1", 0),
        ("HumanEval/0", 1),
    ]


def test_the_harness_chooses_between_solution_and_completion(
    tmp_path: Path,
) -> None:
    file = lines(
        tmp_path / "a.jsonl", {"task_id": "HumanEval/0", "completion": "c", "solution": "s"}
    )
    assert read(file) == [Completion("HumanEval/0", 0, "s", whole=True)]
    assert read(file, prefer="completion") == [Completion("HumanEval/0", 0, "c", whole=False)]


def test_livecodebench_files_have_a_list_of_programs_per_task(tmp_path: Path) -> None:
    file = tmp_path / "codes.json"
    file.write_text(json.dumps([{"question_id": "abc301_a", "code_list": ["p", "q"]}]))
    assert [(each.task_id, each.sample, each.text) for each in read(file)] == [
        ("abc301_a", 0, "p"),
        ("abc301_a", 1, "q"),
    ]


def test_a_folder_of_programs_is_read(tmp_path: Path) -> None:
    for number in (10, 2):
        (tmp_path / "Mbpp_3").mkdir(exist_ok=True)
        (tmp_path / "Mbpp_3" / f"{number}.py").write_text(f"# {number}")
    assert read(tmp_path) == [
        Completion("Mbpp/3", 2, "# 2", whole=True),
        Completion("Mbpp/3", 10, "# 10", whole=True),
    ]


@pytest.mark.parametrize("name", ["back.jsonl", "back.jsonl.gz"])
def test_written_completions_can_be_read(tmp_path: Path, name: str) -> None:
    completions = [
        Completion("HumanEval/0", 0, "ä\u2028\n", whole=False, tokens=3, cut=True, seconds=0.5),
        Completion("HumanEval/1", 4, "\ud800", whole=True),
    ]
    write(tmp_path / name, completions)
    assert read(tmp_path / name) == completions


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"task_id": "HumanEval/0", "completion": "retu', "invalid JSON"),
        ({"task_id": "HumanEval/0"}, "neither 'solution' nor 'completion'"),
        ({"task_id": "HumanEval/0", "completion": ["a"]}, "key 'completion' of HumanEval/0"),
        ({"completion": "a"}, "key 'task_id'"),
        ("[1]", "not an object"),
        ("[" * 100_000, "invalid JSON"),
    ],
)
def test_a_broken_row_raises_an_error_or_is_skipped(
    tmp_path: Path, row: dict[str, Any] | str, message: str
) -> None:
    file = lines(tmp_path / "a.jsonl", {"task_id": "HumanEval/1", "completion": "x"}, row)
    with pytest.raises(ProblemError, match=rf"a\.jsonl: line 2: .*{message}"):
        read(file)
    errors: list[str] = []
    assert [each.task_id for each in read(file, broken=errors)] == ["HumanEval/1"]
    assert "line 2" in errors[0]


def test_a_repeated_sample_number_is_refused(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "a.jsonl",
        *({"task_id": "HumanEval/1", "completion": "x", "sample": 0} for _ in range(2)),
    )
    with pytest.raises(ProblemError, match=r"line 2.*sample 0.*HumanEval/1.*line 1"):
        read(file)


def test_a_truncated_compressed_file_is_refused(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "a.jsonl.gz",
        *({"task_id": f"HumanEval/{at}", "completion": "x" * at} for at in range(100)),
    )
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ProblemError, match=r"a\.jsonl\.gz"):
        read(file)


def row(task: int, text: str, **keys: int) -> dict[str, Any]:
    return {"task_id": f"HumanEval/{task}", "completion": text} | keys


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([row(0, "x"), row(1, "y"), row(0, "x")], r"line 3.*line 1"),
        ([row(0, "x"), row(1, "y"), row(0, "x"), row(1, "y")], r"line 3.*line 1"),
        ([row(0, "x"), row(0, "y"), row(0, "x"), row(1, "a"), row(1, "a")], r"line 3.*line 1"),
    ],
)
def test_a_repeated_row_is_named(tmp_path: Path, rows: list[dict[str, Any]], named: str) -> None:
    file = lines(tmp_path / "a.jsonl", *rows)
    with pytest.raises(ProblemError, match=named):
        read(file)
    broken: list[str] = []
    assert len(read(file, broken=broken)) + len(broken) == len(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [row(0, "x", sample=0), row(0, "x", sample=1), row(1, "y", sample=0)],
        [row(0, "x"), row(0, "x"), row(1, "a"), row(1, "b")],  # samples may be equal
        [row(0, "x"), row(0, "z"), row(1, "a")],
    ],
)
def test_equal_samples_are_read(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert len(read(lines(tmp_path / "a.jsonl", *rows))) == len(rows)
