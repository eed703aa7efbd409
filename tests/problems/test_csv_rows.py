"""Problems as CSV are those of JSON lines; a bad cell is named by line and column."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.columns import ProblemError
from problems.encoding import decode
from problems.schema import Problem
from problems.sources.registry import load

ROW: dict[str, Any] = {
    "problem_id": "a",
    "statement": 'Double it, "twice".\n\nOr not.',
    "style": "call",
    "entry_point": "f",
    "tests": [{"args": [2], "expected": 4}, {"args": [{"$tuple": [1]}], "expected": None}],
    "solutions": ["def f(x):\n    return 2 * x", "f = lambda x: x + x"],
    "visible_tests": 1,
    "tolerance": 0.5,
    "limits": {"cpu_s": 2},
    "tags": ["a, b"],
    "cluster": "mine",
}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    return path


def as_json_lines(path: Path, rows: list[dict[str, Any]]) -> list[Problem]:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return load("mine", path).problems


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_csv_rows_are_those_of_json_lines(tmp_path: Path, name: str) -> None:
    rows = [ROW, ROW | {"problem_id": "2", "gated": True, "licence": "MIT"}]
    rows = [{**rows[1], **row, "gated": row.get("gated", False)} for row in rows]
    loaded = load("mine", written(tmp_path / name, rows))
    assert not loaded.rejected
    assert len(loaded.problems) == 2
    assert loaded.problems == as_json_lines(tmp_path / "rows.jsonl", rows)


@settings(max_examples=4, deadline=None)
@given(statement=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip))
def test_any_statement_survives_a_csv(
    statement: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = written(tmp_path_factory.mktemp("csv") / "rows.csv", [ROW | {"statement": statement}])
    assert [problem.statement for problem in load("mine", file).problems] == [statement]


def test_an_empty_cell_is_a_missing_value_and_plain_text_a_solution(tmp_path: Path) -> None:
    row = ROW | {"solutions": "def f(x): return 2 * x", "tolerance": "", "licence": ""}
    [problem] = load("mine", written(tmp_path / "rows.csv", [row])).problems
    assert problem.solutions == ("def f(x): return 2 * x",)
    assert (problem.tolerance, problem.licence) == (None, "own")


def test_a_cell_may_be_a_python_literal_as_pandas_writes_lists(tmp_path: Path) -> None:
    row = {
        key: value if isinstance(value, str) else repr(decode(value)) for key, value in ROW.items()
    }
    cells = written(tmp_path / "rows.csv", [row | {"tolerance": "0.5", "visible_tests": "1"}])
    assert load("mine", cells).problems == as_json_lines(tmp_path / "rows.jsonl", [ROW])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('a,s,call,f,"[{""args"": [2]"', "column tests: broken JSON"),
        ("a,s,call,f,\"[{'args': [2], 'args': [3]}]\"", "column tests: broken JSON"),
        ("a,s,call,f", "4 cells for 5 columns"),
        ("a,s,call,f,[]", "column tests is a list"),
        ("a,s,cal,f,[]", "column style"),
        ("a,\udcff,call,f,[]", "column statement is not UTF-8"),
        ('a,s,call,f,"[]"x', "broken CSV"),
    ],
)
def test_a_bad_row_is_named_by_line_and_column(tmp_path: Path, line: str, named: str) -> None:
    file, good = tmp_path / "rows.csv", 'b,s,call,f,"[{""expected"": 1}]"'
    text = f"problem_id,statement,style,entry_point,tests\n{good}\n{line}\n"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    loaded = load("mine", file)
    assert len(loaded.problems) == 1
    [rejected] = loaded.rejected
    assert rejected.row == f"{file}: line 3"
    assert named in rejected.reason
    assert rejected.fix


@pytest.mark.parametrize(("header", "named"), [("a,,b", "column 2"), ("a,b,a", "column a")])
def test_a_header_without_clear_names_is_refused(tmp_path: Path, header: str, named: str) -> None:
    (tmp_path / "rows.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    with pytest.raises(ProblemError, match=re.escape(named)):
        load("mine", tmp_path / "rows.csv")
