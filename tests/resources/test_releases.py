"""The record of releases loses nothing, changes nothing, and lets one writer decide."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from resources.registry.ledger import Ledger, LedgerChanged
from resources.registry.releases import NoRelease, ReleaseMoved, Releases, deployed
from tests.resources.ledger_entries import put

PLAN = {"steps": [{"share": 0.01}, {"share": 0.5}]}


@pytest.fixture
def releases(ledger: Ledger) -> Releases:
    put(ledger, "a", "install")
    put(ledger, "b")
    return Releases(ledger.place)


def test_a_ledger_without_releases_has_none(releases: Releases) -> None:
    assert releases.all() == []
    assert releases.current() is None
    assert deployed(releases.all()) is None


def test_an_opened_release_is_the_current_one(releases: Releases) -> None:
    opened = releases.open(1, 2, PLAN, why="new champion")
    assert releases.current() == opened
    assert (opened.id, opened.state, opened.step, opened.plan) == (
        "release-0001",
        "running",
        0,
        PLAN,
    )
    assert deployed(releases.all()) == 1


def test_one_release_is_open_at_a_time(releases: Releases) -> None:
    releases.open(1, 2, PLAN, why="one")
    with pytest.raises(NoRelease, match="release-0001 of version 2 is running"):
        releases.open(1, 2, PLAN, why="two")


def test_a_cause_opens_one_release_ever(releases: Releases) -> None:
    first = releases.open(1, 2, PLAN, why="", cause="entry-2")
    releases.append(first.last, "rolled_back", {"reasons": ["errors"]})
    again = releases.open(1, 2, PLAN, why="", cause="entry-2")
    assert again.id == first.id
    assert again.state == "rolled_back"


def test_a_promoted_challenger_is_deployed_and_a_rolled_back_one_is_not(releases: Releases) -> None:
    first = releases.open(1, 2, PLAN, why="")
    releases.append(first.last, "promoted", {})
    assert deployed(releases.all()) == 2
    second = releases.open(2, 3, PLAN, why="")
    releases.append(second.last, "rolled_back", {})
    assert deployed(releases.all()) == 2
    assert releases.current() is None


def test_a_paused_release_continues_where_it_was(releases: Releases) -> None:
    event = releases.open(1, 2, PLAN, why="").last
    event = releases.append(event, "step", {}, step=1)
    event = releases.append(event, "paused", {})
    with pytest.raises(ReleaseMoved, match="is paused"):
        releases.append(event, "step", {}, step=2)
    releases.append(event, "resumed", {})
    assert (now := releases.current())
    assert now.step == 1
    assert now.state == "running"


@pytest.mark.parametrize("last", ["promoted", "aborted", "rolled_back"])
def test_nothing_follows_the_end(releases: Releases, last: str) -> None:
    event = releases.append(releases.open(1, 2, PLAN, why="").last, last, {})  # type: ignore[arg-type]
    with pytest.raises(ReleaseMoved):
        releases.append(event, "resumed", {})


def test_of_ten_controllers_one_decides(releases: Releases) -> None:
    event = releases.open(1, 2, PLAN, why="").last

    def advance(_: int) -> bool:
        try:
            Releases(releases.place).append(event, "step", {}, step=1)
        except ReleaseMoved:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(advance, range(10))) == 1
    assert len(releases.all()[0].events) == 2


def test_the_ledgers_own_entries_are_untouched(ledger: Ledger, releases: Releases) -> None:
    before = ledger.head()
    releases.open(1, 2, PLAN, why="")
    assert ledger.head() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE release_events SET kind = 'promoted'",
        "DELETE FROM release_events",
        "INSERT OR REPLACE INTO release_events VALUES (1, 'x', 'opened', 0, '{}', '')",
        "UPDATE release_hashes SET hash = ''",
        "DELETE FROM release_hashes",
        "INSERT OR REPLACE INTO release_hashes VALUES (1, '')",
    ],
)
def test_the_database_refuses_every_change(tmp_path: Path, statement: str) -> None:
    put(Ledger(tmp_path / "promotions.db"), "a", "install")
    Releases(tmp_path / "promotions.db").open(1, 2, PLAN, why="")
    with (
        sqlite3.connect(tmp_path / "promotions.db") as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE release_events SET step = 1 WHERE entry = 1",
        "DELETE FROM release_events WHERE entry = 2",
        "DELETE FROM release_hashes WHERE entry = 2",
        "INSERT INTO release_events SELECT 3, release, kind, step, detail, created_at "
        "FROM release_events WHERE entry = 2",
    ],
)
def test_a_change_without_the_triggers_is_noticed(tmp_path: Path, statement: str) -> None:
    releases = Releases(tmp_path / "promotions.db")
    put(Ledger(tmp_path / "promotions.db"), "a", "install")
    releases.append(releases.open(1, 2, PLAN, why="").last, "promoted", {})
    with sqlite3.connect(tmp_path / "promotions.db") as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
    with pytest.raises(LedgerChanged, match="of the releases is not what was recorded"):
        releases.all()


def test_a_reader_sees_whole_events_while_another_writes(releases: Releases) -> None:
    """Events and hashes are two tables: read at two moments, they would not fit."""
    releases.open(1, 2, PLAN, why="")
    done = Event()

    def write() -> None:
        for step in range(1, 60):
            releases.append(releases.all()[-1].last, "step", {}, step=step)
        done.set()

    with ThreadPoolExecutor(3) as pool:
        written = pool.submit(write)
        while not done.is_set() and not written.done():
            Releases(releases.place).all()
        written.result()
    assert len(releases.all()[0].events) == 60
