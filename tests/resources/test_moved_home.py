"""A home that was copied or moved reads its own checkpoints, not those of the old place."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from artifacts.home_paths import present_path, stored_path
from problems.catalogue import add_source, read_sources
from problems.reading.place import Place
from resources.home import Home
from resources.model_version import ModelVersion
from resources.registry.ledger import Entry, Ledger
from resources.run_record import PipelineRun
from tests.open_runs import open_test_run

FOLDER = "checkpoints/one/" + "a" * 64


def install(home: Path) -> Entry:
    (home / FOLDER).mkdir(parents=True)
    return Ledger(home / "promotions.db").append(
        "install",
        checkpoint="one",
        checkpoint_hash="b" * 64,
        path=str(home / FOLDER),
        decision={},
        run_id="chain-0001",
        against=None,
    )


def recorded_paths(home: Path) -> list[str]:
    with sqlite3.connect(home / "promotions.db") as connection:
        return [path for (path,) in connection.execute("SELECT path FROM promotions")]


@pytest.mark.parametrize("move", [shutil.copytree, shutil.move])
def test_the_champion_is_that_of_the_new_place(tmp_path: Path, move: object) -> None:
    entry = install(tmp_path / "old")
    assert entry.path == str(tmp_path / "old" / FOLDER)
    assert recorded_paths(tmp_path / "old") == [FOLDER]
    move(tmp_path / "old", tmp_path / "new")  # type: ignore[operator]
    champion = Ledger(tmp_path / "new" / "promotions.db").champion()
    assert champion
    assert champion.path == str(tmp_path / "new" / FOLDER)


def test_a_rollback_in_a_copy_restores_the_copys_checkpoint(tmp_path: Path) -> None:
    first = install(tmp_path / "old")
    Ledger(tmp_path / "old" / "promotions.db").append(
        "promote",
        checkpoint="two",
        checkpoint_hash="c" * 64,
        path=str(tmp_path / "old" / "checkpoints" / "two"),
        decision={},
        run_id="chain-0002",
        against=first.checkpoint_hash,
    )
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    restored = Ledger(tmp_path / "new" / "promotions.db").rollback("rollback-1")
    assert restored.path == str(tmp_path / "new" / FOLDER)
    assert recorded_paths(tmp_path / "new")[-1] == FOLDER


def test_a_folder_outside_the_home_stays_where_it_is(tmp_path: Path) -> None:
    outside = str(tmp_path / "weights" / "of" / "mine")
    assert stored_path(outside, tmp_path / "home") == outside
    assert present_path(outside, tmp_path / "home") == outside


def test_a_home_by_another_name_is_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert stored_path(str(tmp_path / "home" / FOLDER), tmp_path / "link") == FOLDER


def test_an_interrupted_run_trains_from_the_copys_champion(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    champion = ModelVersion(checkpoint="one", content_hash="b" * 64, path=str(old / FOLDER))
    run = open_test_run(Home(old).runs, "chain-0001", champion=champion)
    assert run.change(minutes=1.0).champion == champion == run.record.champion
    shutil.copytree(old, new)
    copied = PipelineRun(Home(new).runs, "chain-0001").record.champion
    assert copied
    assert copied.path == str(new / FOLDER)


def test_a_source_in_the_home_moves_with_it(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    inside, outside = old / "problem_files" / "0123" / "own.jsonl", tmp_path / "other.jsonl"
    inside.parent.mkdir(parents=True)
    for file in (inside, outside):
        file.write_text("{}\n", encoding="utf-8")
    add_source(old, "own", Place(inside))
    add_source(old, "other", Place(outside))
    assert read_sources(old)["own"].path == inside
    shutil.move(old, new)
    places = read_sources(new)
    assert places["own"].path == new / "problem_files" / "0123" / "own.jsonl"
    assert places["other"].path == outside
