"""`ratchet data add` says what it read, and notes a source only when something could be read."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.data.sources import add, remove
from problems.catalogue import add_source, read_sources
from problems.columns import ProblemError
from problems.sources.place import Place
from resources.home import Home

ROW = {"prompt": "Double it.", "cases": [{"args": [2], "expected": 4}]}


def test_a_file_is_added_with_its_columns_and_every_row_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, said = tmp_path / "rows.jsonl", StringIO()
    file.write_text(
        "\n".join(
            [json.dumps(ROW), json.dumps(ROW | {"prompt": "Twice.", "task_id": "Mbpp/11"}), "{"]
        ),
        encoding="utf-8",
    )
    columns, values = "statement=prompt,tests=cases", ["style=call", "entry_point=f"]
    assert (
        add(
            "mine",
            file,
            None,
            None,
            None,
            columns,
            values,
            Home(tmp_path / "home"),
            Console(file=said, width=300),
        )
        == 0
    )
    assert (
        "2 problems, 1 of them gated (for evaluation only), 1 rows left out" in said.getvalue()
        and "line 3: broken JSON" in said.getvalue()
    )
    place = Place(
        file,
        columns={"statement": "prompt", "tests": "cases"},
        constants={"style": "call", "entry_point": "f"},
    )
    assert read_sources(tmp_path / "home") == {"mine": place}


def test_a_file_of_which_nothing_can_be_read_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW), encoding="utf-8")
    with pytest.raises(
        ProblemError,
        match=r"none of 1 rows could be read: mend the file, or say what its columns are",
    ):
        add(
            "mine",
            tmp_path / "rows.jsonl",
            None,
            None,
            None,
            "",
            [],
            Home(tmp_path / "home"),
            Console(file=StringIO()),
        )
    assert read_sources(tmp_path / "home") == {}


def test_a_misspelt_column_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, said = tmp_path / "rows.jsonl", StringIO()
    file.write_text(json.dumps(ROW | {"solution": "x"}), encoding="utf-8")
    add(
        "mine",
        file,
        None,
        None,
        None,
        "statement=prompt,tests=cases",
        ["style=call", "entry_point=f"],
        Home(tmp_path / "home"),
        Console(file=said, width=300),
    )
    assert (
        "warning: 1 rows have a key 'solution' that is no column: did you mean solutions?"
        in said.getvalue()
    )


def test_a_source_that_is_removed_is_forgotten_and_its_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    file, said = tmp_path / "rows.jsonl", StringIO()
    file.write_text("{}", encoding="utf-8")
    add_source(tmp_path / "home", "mine", file)
    assert (
        remove("mine", Home(tmp_path / "home"), Console(file=said, width=300)) == 0
        and "mine is forgotten, its files stay" in said.getvalue()
    )
    assert read_sources(tmp_path / "home") == {} and file.exists()
    with pytest.raises(ProblemError, match="'mine' was not added"):
        remove("mine", Home(tmp_path / "home"), Console(file=said))
