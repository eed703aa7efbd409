"""A backup holds a home as it was at one moment, and copies only what is new."""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts.folder import Folder
from artifacts.integrity import CorruptArtifact
from resources.backup import index
from resources.backup.databases import copy_sqlite
from resources.home import Home, NotReady
from resources.registry.ledger import LedgerChanged
from resources.run_context import RunContext
from resources.run_record import records
from resources.settings import Settings
from resources.verification import verify_records
from tests.finished_home import RUN, WEIGHTS
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder
from tests.resources.backup.made import CHANGES, backed_up, contents, decided_home, restored

# Any bytes that Linux accepts in a name, also those that are no UTF-8.
NAMES = (
    st.binary(min_size=1, max_size=8)
    .map(os.fsdecode)
    .filter(lambda name: name[0] != "." and not {"/", "\0"} & set(name))
)


@pytest.fixture
def url() -> str:
    return f"memory://backups-{uuid.uuid4().hex}"


@pytest.fixture
def decided(tmp_path: Path) -> Settings:
    return decided_home(tmp_path / "a home")


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(NAMES, st.binary(max_size=40), max_size=5), NAMES)
def test_every_file_of_a_home_is_restored(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], folder: str
) -> None:
    tmp_path, url = tmp_path_factory.mktemp("any"), f"memory://any-{uuid.uuid4().hex}"
    home = Home(tmp_path / "home")
    home.make()
    (home.path / "notes" / folder).mkdir(parents=True)
    for name, content in files.items():
        (home.path / "notes" / folder / name).write_bytes(content)
    backed_up(Settings(home, "small"), url)
    restored(url, tmp_path / "new")
    there = {name: (tmp_path / "new" / "notes" / folder / name).read_bytes() for name in files}
    assert there == files


def test_a_restored_home_has_the_same_files(decided: Settings, url: str, tmp_path: Path) -> None:
    backed_up(decided, url)
    before = contents(decided.home.path)
    after = contents(restored(url, tmp_path / "new").home.path)
    databases = {name for name in before if name.endswith((".db", "-wal", "-shm"))}
    assert {name: after.get(name) for name in before.keys() - databases} == {
        name: before[name] for name in before.keys() - databases
    }
    assert not [name for name in after if name.endswith(("-wal", "-shm"))]


def test_champion_ledger_and_records_are_whole(decided: Settings, url: str, tmp_path: Path) -> None:
    backed_up(decided, url)
    new = restored(url, tmp_path / "new")
    assert new.ledger.head() == decided.ledger.head()
    assert new.ledger.champion().path.startswith(str(tmp_path / "new"))  # type: ignore[union-attr]
    assert new.store.verify_all() == decided.store.verify_all()
    assert verify_records(new.home.path) == verify_records(decided.home.path)


def test_a_row_that_was_not_yet_in_the_file_is_in_the_backup(
    decided: Settings, url: str, tmp_path: Path
) -> None:
    file = "dagster/history/runs.db"
    with closing(sqlite3.connect(decided.home.path / file)) as connection:
        connection.execute("INSERT INTO runs VALUES ('in the write-ahead log')")
        connection.commit()
        backed_up(decided, url)
    new = restored(url, tmp_path / "new").home.path / file
    with closing(sqlite3.connect(new)) as connection:
        assert len(connection.execute("SELECT * FROM runs").fetchall()) == 2


def test_writers_wait_for_the_copy_of_records_and_ledger_alone(
    decided: Settings, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other databases, such as observations, may be large."""
    copied: dict[str, bool] = {}

    def copy(path: Path, target: Path) -> None:
        with closing(sqlite3.connect(decided.home.records, timeout=0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                copied[path.name] = False
            except sqlite3.OperationalError:  # locked
                copied[path.name] = True
        copy_sqlite(path, target)

    monkeypatch.setattr("resources.backup.back_up.copy_sqlite", copy)
    backed_up(decided, url)
    waiting = {"records.db": True, "promotions.db": True}
    assert copied == waiting | {Path(name).name: False for name in CHANGES}


def test_the_second_backup_copies_only_what_is_new(decided: Settings, url: str) -> None:
    assert backed_up(decided, url).new_files > 30
    assert backed_up(decided, url).new_files == 0
    (decided.home.path / "notes.txt").write_text("new", encoding="utf-8")
    assert backed_up(decided, url).new_bytes == 3


def test_weights_that_nothing_names_are_left_out_and_their_manifests_stay(
    url: str, tmp_path: Path
) -> None:
    home_builder = HomeBuilder(tmp_path / "home")
    names = ("a", "b", "c")
    for name in names:
        home_builder.promoted(name)
    backed_up(Settings(home_builder.run_context.home, "small"), url)
    new = restored(url, tmp_path / "new").store
    assert [new.find("checkpoints", name, name) is not None for name in names] == [
        False,
        True,
        True,
    ]
    assert (tmp_path / "new" / "checkpoints" / "a" / "a" / "manifest.removed.json").exists()


def test_caches_and_the_training_of_an_open_run_are_left_out(
    decided: Settings, url: str, tmp_path: Path
) -> None:
    home = decided.home
    open_test_run(home.runs, "chain-0002")
    for name in (
        "cache/a",
        "ray/a",
        "runs/chain-0002/training/1/metrics-001.jsonl",
        f"runs/{RUN}/training/1/saves/global_step_2/model",
    ):
        (home.path / name).parent.mkdir(parents=True, exist_ok=True)
        (home.path / name).write_text("{}\n", encoding="utf-8")
    backed_up(decided, url)
    new = restored(url, tmp_path / "new").home
    assert records(new.runs)[-1].state == "open"
    assert not (new.runs / "chain-0002" / "training").exists()
    old_names, new_names = (
        {path.name for path in (each.runs / RUN / "training" / "1").iterdir()}
        for each in (home, new)
    )
    assert old_names - new_names == {"saves"}
    assert not {"cache", "ray"} & {path.name for path in new.path.iterdir()}


def test_an_open_run_is_continued_in_a_restored_home(
    decided: Settings, url: str, tmp_path: Path
) -> None:
    """Under its own number, against the same champion, on the held-out tasks that it drew."""
    champion = decided.ledger.champion()
    run = open_test_run(decided.home.runs, "chain-0002", champion=champion and champion.model)
    draw = run.draw(seed=1, count=8)
    backed_up(decided, url)
    new = RunContext.of(restored(url, tmp_path / "new")).pipeline_run({})
    assert (new.id, new.record.state, new.record.seed) == ("chain-0002", "open", run.record.seed)
    assert new.draw(seed=1, count=8) == draw
    assert new.record.champion
    assert Path(new.record.champion.path).is_relative_to(tmp_path / "new")
    assert Path(new.record.champion.path).is_dir()


def test_old_backups_are_removed_and_what_others_name_stays(
    decided: Settings, url: str, tmp_path: Path
) -> None:
    first = backed_up(decided, url).index
    (decided.home.path / "notes.txt").write_text("new", encoding="utf-8")
    summary = backed_up(decided, url, keep=1)
    assert summary.removed_backups == [first.id]
    assert index.ids(Folder(url)) == [summary.index.id]
    restored(url, tmp_path / "new")
    assert (tmp_path / "new" / "notes.txt").exists()


def test_a_damaged_weight_is_not_backed_up(decided: Settings, url: str) -> None:
    [path] = decided.home.path.glob(f"checkpoints/{RUN}/*/{WEIGHTS}")
    path.write_text("trainee", encoding="utf-8")
    with pytest.raises(CorruptArtifact, match=f"{WEIGHTS}: was changed"):
        backed_up(decided, url)
    assert index.ids(Folder(url)) == []


def test_a_damaged_database_is_named(decided: Settings, url: str) -> None:
    path = decided.home.path / "mlflow.db"
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    with pytest.raises(CorruptArtifact, match=r"mlflow\.db: is damaged .*ratchet restore"):
        backed_up(decided, url)


def test_a_ledger_that_does_not_continue_the_last_backup_is_refused(
    decided: Settings, url: str, tmp_path: Path
) -> None:
    made = backed_up(decided, url).index
    another = HomeBuilder(tmp_path / "another")
    another.promoted("a")
    other = Settings(another.run_context.home, "small")
    with pytest.raises(NotReady, match=f"does not continue that of the backup {made.id}"):
        backed_up(other, url)


def test_a_changed_ledger_is_not_backed_up(decided: Settings, url: str) -> None:
    with closing(sqlite3.connect(decided.home.ledger)) as connection, connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("UPDATE promotions SET checkpoint = 'mine' WHERE entry = 1")
    with pytest.raises(LedgerChanged, match="entry 1"):
        backed_up(decided, url)


def test_a_backup_in_the_home_itself_is_refused(decided: Settings) -> None:
    with pytest.raises(NotReady, match="in the home itself"):
        backed_up(decided, str(decided.home.path / "backups"))


def test_the_newest_backup_has_the_last_id_after_the_clock_was_set_back() -> None:
    assert index.new_id(["29990101T000000.000000Z"]) == "29990101T000000.000001Z"
