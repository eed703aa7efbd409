"""`ratchet data add` counts the rows, and adds a source only if it has readable rows."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.data.sources import add, known_sources, remove
from problems.catalogue import add_source, read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from problems.sources.registry import SOURCES
from resources.home import Home

ROW = {"prompt": "Double it.", "cases": [{"args": [2], "expected": 4}]}


def test_a_source_file_is_added_and_its_rows_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, output = tmp_path / "rows.jsonl", StringIO()
    file.write_text(
        "\n".join(
            [json.dumps(ROW), json.dumps(ROW | {"prompt": "Twice.", "task_id": "Mbpp/11"}), "{"]
        ),
        encoding="utf-8",
    )
    place = Place(
        file,
        columns={"statement": "prompt", "tests": "cases"},
        constants={"style": "call", "entry_point": "f"},
    )
    assert add("mine", place, Home(tmp_path / "home"), Console(file=output, width=300)) == 0
    assert re.search(r"\b2 problems.*\b1 .*gated.*\b1 row", output.getvalue())
    assert "line 3: " in output.getvalue()
    assert read_sources(tmp_path / "home") == {"mine": place}


def test_an_unreadable_file_is_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW), encoding="utf-8")
    with pytest.raises(ProblemError, match="1 row"):
        place = Place(tmp_path / "rows.jsonl")
        add("mine", place, Home(tmp_path / "home"), Console(file=StringIO()))
    assert read_sources(tmp_path / "home") == {}


def test_a_misspelt_column_gives_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, output = tmp_path / "rows.jsonl", StringIO()
    file.write_text(json.dumps(ROW | {"solution": "x"}), encoding="utf-8")
    place = Place(
        file,
        columns={"statement": "prompt", "tests": "cases"},
        constants={"style": "call", "entry_point": "f"},
    )
    add("mine", place, Home(tmp_path / "home"), Console(file=output, width=300))
    assert re.search(r"warning: 1 row.*'solution'.*solutions", output.getvalue())


def test_known_and_added_sources_are_listed(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}", encoding="utf-8")
    add_source(tmp_path / "home", "mine", tmp_path / "rows.jsonl")
    output = StringIO()
    known_sources(Home(tmp_path / "home"), Console(file=output, width=300))
    names = {line.split()[0] for line in output.getvalue().splitlines() if line}
    assert {"mine", *SOURCES} <= names


def test_removing_a_source_does_not_delete_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, output = tmp_path / "rows.jsonl", StringIO()
    file.write_text("{}", encoding="utf-8")
    add_source(tmp_path / "home", "mine", file)
    assert remove("mine", Home(tmp_path / "home"), Console(file=output, width=300)) == 0
    assert "mine" in output.getvalue()
    assert read_sources(tmp_path / "home") == {}
    assert file.exists()
    with pytest.raises(ProblemError, match="'mine'"):
        remove("mine", Home(tmp_path / "home"), Console(file=output))
