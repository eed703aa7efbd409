"""Folders and tables as `datasets` and pandas write them are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from problems.sources.registry import load

ROW = {"statement": "Double it.", "style": "call", "entry_point": "f"}
TESTS = json.dumps([{"args": [2], "expected": 4}])
SOLUTIONS = json.dumps(["def f(x):\n    return 2 * x"])


def table(key: str, **values: Any) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "tests": TESTS, "solutions": SOLUTIONS} | ROW | values]
    )


def test_json_text_in_a_table_is_read(tmp_path: Path) -> None:
    pq.write_table(table("a", limits='{"wall_s": 3.0}'), tmp_path / "rows.parquet")
    problem = load("mine", tmp_path / "rows.parquet").problems[0]
    assert problem.tests == ({"args": [2], "expected": 4},)
    assert problem.solutions == tuple(json.loads(SOLUTIONS))
    assert problem.limits.wall_s == 3.0


@pytest.mark.parametrize(
    "tests",
    [
        {"args": [[2]], "expected": [4]},
        json.dumps({"args": [[2]], "expected": [4]}),
        json.dumps({"args": {"0": [2]}, "expected": {"0": 4}}),
    ],
)
def test_a_table_of_tests_is_read(tmp_path: Path, tests: Any) -> None:
    pq.write_table(table("a", tests=tests), tmp_path / "rows.parquet")
    assert load("mine", tmp_path).problems[0].tests == ({"args": [2], "expected": 4},)


def test_broken_json_text_names_its_column(tmp_path: Path) -> None:
    pq.write_table(table("a", tests="[1,"), tmp_path / "rows.parquet")
    assert "column tests: broken JSON" in load("mine", tmp_path).rejected[0].reason


@pytest.mark.parametrize("opened", [pa.ipc.new_stream, pa.ipc.new_file])
def test_a_saved_dataset_is_read_from_its_subfolders(tmp_path: Path, opened: Any) -> None:
    for split in ("train", "test"):
        folder = tmp_path / split
        folder.mkdir()
        rows = table(split)
        with opened(str(folder / "data-00000-of-00001.arrow"), rows.schema) as writer:
            writer.write_table(rows)
        (folder / "state.json").write_text("{}")
        (folder / "dataset_info.json").write_text("{}")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "rows.json").write_text("[{}]")
    loaded = load("mine", tmp_path)
    assert [problem.problem_id for problem in loaded.problems] == ["mine/test", "mine/train"]
    assert loaded.rejected == []


def test_a_cut_arrow_file_is_named(tmp_path: Path) -> None:
    rows, file = table("a"), tmp_path / "a.arrow"
    with pa.ipc.new_stream(str(file), rows.schema) as writer:
        writer.write_table(rows)
    file.write_bytes(file.read_bytes()[:200])
    (tmp_path / "b.jsonl").write_text(json.dumps({"id": "b", "tests": json.loads(TESTS)} | ROW))
    assert str(file) in load("mine", tmp_path).rejected[0].row
