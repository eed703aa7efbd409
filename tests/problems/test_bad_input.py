"""Each row of any file is a problem or is rejected with place, reason and fix."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from problems.columns import ProblemError
from problems.reading.source import LoadedRows
from problems.schema import write_parquet
from problems.sources.registry import load

ROW: dict[str, Any] = {
    "id": "a",
    "statement": "Double it.",
    "style": "stdio",
    "tests": [{"stdin": "2", "stdout": "4"}],
}
ROWS = [ROW | {"id": str(number)} for number in range(600)]


def parquet(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def ids(loaded: LoadedRows) -> list[str]:
    return [problem.problem_id.removeprefix("mine/") for problem in loaded.problems]


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ("column checker", {"checker": "def check(:"}),
        ("column tests: test 0", {"style": "unittest", "tests": [{"source": "class T(:"}]}),
    ],
)
def test_code_that_is_no_python_names_its_column(
    tmp_path: Path, column: str, row: dict[str, Any]
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps(ROW | {"entry_point": "f"} | row))
    assert load("mine", file).rejected[0].reason.startswith(f"{column} is no Python")


def test_a_truncated_parquet_is_refused_by_name(tmp_path: Path) -> None:
    file = parquet(tmp_path / "mine.parquet", ROWS)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ProblemError, match=r"mine\.parquet: "):
        load("mine", file)


def test_a_truncated_parquet_in_a_folder_is_one_rejection(tmp_path: Path) -> None:
    half = parquet(tmp_path / "b.parquet", ROWS)
    half.write_bytes(half.read_bytes()[:-20])
    parquet(tmp_path / "a.parquet", ROWS[:2])
    parquet(tmp_path / "c.parquet", ROWS[2:4])
    loaded = load("mine", tmp_path)
    assert ids(loaded) == ["0", "1", "2", "3"]
    assert [rejected.row for rejected in loaded.rejected] == [str(half)]


def test_rows_before_a_broken_part_of_a_parquet_are_read(tmp_path: Path) -> None:
    file = parquet(tmp_path / "mine.parquet", ROWS, row_group_size=300, compression="zstd")
    content = bytearray(file.read_bytes())
    start = pq.ParquetFile(file).metadata.row_group(1).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    file.write_bytes(content)
    loaded = load("mine", file)
    assert 0 < len(loaded.problems) < 600
    assert loaded.rejected[-1].row == f"{file}: after row {len(loaded.problems) - 1}"


def test_wrong_column_types_are_rejected_row_by_row(tmp_path: Path) -> None:
    loaded = load(
        "mine", parquet(tmp_path / "mine.parquet", [row | {"statement": 3} for row in ROWS[:2]])
    )
    assert len(loaded.rejected) == 2
    assert not loaded.problems
    assert all("statement is a number 3" in rejected.reason for rejected in loaded.rejected)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("limits", {"cpu_s": 10**400}),
        ("limits", {"wall_s": float("inf")}),
        ("limits", {"memory_mb": 2**63}),
        ("tolerance", float("inf")),
        ("tolerance", 10**400),
    ],
)
def test_a_number_out_of_range_is_one_bad_row(tmp_path: Path, column: str, value: Any) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(
        "\n".join(json.dumps(row) for row in (ROW | {column: value}, ROW | {"id": "b"})),
        encoding="utf-8",
    )
    loaded = load("mine", file)
    write_parquet(loaded.problems, tmp_path / "out.parquet")
    assert ids(loaded) == ["b"]
    assert loaded.rejected[0].reason.startswith(f"column {column} ")


def test_a_missing_column_is_rejected_row_by_row(tmp_path: Path) -> None:
    loaded = load(
        "mine",
        parquet(tmp_path / "mine.parquet", [{"id": "1", "style": "stdio", "tests": ROW["tests"]}]),
    )
    assert "statement" in loaded.rejected[0].reason
    assert loaded.rejected[0].row.endswith("row 0")


def test_json_in_bytes_of_a_parquet_is_read(tmp_path: Path) -> None:
    row = ROWS[0] | {"tests": json.dumps(ROWS[0]["tests"]).encode()}
    assert load("mine", parquet(tmp_path / "a.parquet", [row])).problems[0].tests


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_key_that_occurs_twice_is_refused(tmp_path: Path, ending: str) -> None:
    tests = '[{"stdin": "1", "stdin": "2", "stdout": "1"}]'
    row, file = ROWS[0] | {"tests": tests}, tmp_path / f"mine.{ending}"
    if ending == "parquet":
        parquet(file, [row])
    elif ending == "csv":
        with file.open("w") as out:
            csv.writer(out).writerows([row.keys(), row.values()])
    else:
        file.write_text(json.dumps(row | {"tests": 0}).replace('"tests": 0', f'"tests": {tests}'))
    assert "the key 'stdin' twice" in load("mine", file).rejected[0].reason


def test_dates_and_decimals_of_a_parquet_become_text(tmp_path: Path) -> None:
    rows = [
        ROW
        | {
            "at": datetime.date(2024, 7, 1),
            "when": datetime.datetime(2024, 7, 1, 12),
            "rate": decimal.Decimal("1.50"),
        }
    ]
    [problem] = load("mine", parquet(tmp_path / "mine.parquet", rows)).problems
    assert problem.extra == {"at": "2024-07-01", "when": "2024-07-01T12:00:00", "rate": "1.50"}


def test_a_duplicate_id_is_rejected_with_both_places(
    tmp_path: Path,
) -> None:
    first, second = (
        parquet(tmp_path / "a.parquet", ROWS[:2]),
        parquet(tmp_path / "b.parquet", ROWS[1:3]),
    )
    loaded = load("mine", tmp_path)
    assert ids(loaded) == ["0", "1", "2"]
    [rejected] = loaded.rejected
    assert rejected.row == f"{second}: row 0"
    assert "'mine/1'" in rejected.reason
    assert f"{first}: row 1" in rejected.reason


@pytest.mark.parametrize("key", ["a\0b", "a\nb", "../a", "\u202eab", "x" * 301, "e\u0301", " "])
def test_an_id_that_cannot_be_told_from_others_is_rejected(tmp_path: Path, key: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(f"{json.dumps(ROW | {'id': key})}\n{json.dumps(ROW | {'id': 'é b/c'})}\n")
    loaded = load("mine", file)
    assert ids(loaded) == ["é b/c"]
    assert "column problem_id" in loaded.rejected[0].reason


def test_a_key_that_occurs_twice_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(f'{json.dumps(ROW)[:-1]}, "statement": "Another."}}\n{json.dumps(ROW)}\n')
    loaded = load("mine", file)
    assert ids(loaded) == ["a"]
    assert "'statement' twice" in loaded.rejected[0].reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mine.parquet", "mine.json", "mine.jsonl"])
def test_a_statement_of_100_megabytes_is_rejected(tmp_path: Path, name: str) -> None:
    rows, file = [ROW | {"statement": "x" * 100_000_000}, ROW | {"id": "b"}], tmp_path / name
    if name.endswith("parquet"):
        parquet(file, rows)
    else:
        lines = "\n".join(map(json.dumps, rows))
        file.write_text(lines if name.endswith("l") else json.dumps(rows), encoding="utf-8")
    loaded = load("mine", file)
    assert ids(loaded) == ["b"]
    assert "95 MiB" in loaded.rejected[0].reason


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp500"])
def test_another_encoding_is_rejected_with_the_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "mine.jsonl").write_bytes(json.dumps(ROW).encode(encoding) + b"\n")
    loaded = load("mine", tmp_path / "mine.jsonl")
    assert not loaded.problems
    assert loaded.rejected
    assert f"{tmp_path / 'mine.jsonl'}: line 1" == loaded.rejected[0].row


def test_utf_8_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_bytes(json.dumps(ROW).encode("utf-8-sig"))
    assert ids(load("mine", tmp_path / "mine.jsonl")) == ["a"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("mine.jsonl", b""), ("mine.jsonl", b"\n \n"), ("mine.json", b"[]"), ("mine.json", b"")],
)
def test_an_empty_source_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ProblemError, match=re.escape(name)):
        load("mine", tmp_path)


def test_a_parquet_without_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), tmp_path / "mine.parquet")
    with pytest.raises(ProblemError, match=r"mine\.parquet"):
        load("mine", tmp_path)


LINES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([ROW, ROW | {"id": "b"}, {}, [], None, 3]).map(
            lambda row: json.dumps(row).encode()
        ),
    )
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture],
)
@given(lines=LINES)
def test_every_line_is_either_a_problem_or_rejected(tmp_path: Path, lines: list[bytes]) -> None:
    content = b"\n".join(lines)
    (tmp_path / "mine.jsonl").write_bytes(content)
    written = sum(bool(line.strip()) for line in content.split(b"\n"))
    if not written:
        return
    loaded = load("mine", tmp_path / "mine.jsonl")
    assert len(loaded.problems) + len(loaded.rejected) == written
    assert len(loaded.problems) <= 2
    assert all(rejected.reason and rejected.fix for rejected in loaded.rejected)


def test_null_as_json_text_is_no_value(tmp_path: Path) -> None:
    row = ROW | {"tests": json.dumps(ROW["tests"]), "limits": "null", "tags": "null"}
    loaded = load("mine", parquet(tmp_path / "rows.parquet", [row, row | {"tests": "null"}]))
    assert [(each.tags, each.limits) for each in loaded.problems] == [
        (each.tags, each.limits)
        for each in load("mine", parquet(tmp_path / "plain.parquet", [ROW])).problems
    ]
    assert ["column tests is null" in each.reason for each in loaded.rejected] == [True]
