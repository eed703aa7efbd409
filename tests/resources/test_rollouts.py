"""The record of rollouts loses nothing, changes nothing, and lets one writer decide."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from resources.registry.ledger import Ledger, LedgerChanged
from resources.registry.rollouts import NoRollout, RolloutMoved, Rollouts, deployed
from tests.resources.ledger_entries import put

PLAN = {"steps": [{"share": 0.01}, {"share": 0.5}]}


@pytest.fixture
def rollouts(ledger: Ledger) -> Rollouts:
    put(ledger, "a", "install")
    put(ledger, "b")
    return Rollouts(ledger.place)


def test_a_ledger_without_rollouts_has_none(rollouts: Rollouts) -> None:
    assert rollouts.all() == [] and rollouts.current() is None and rollouts.head() == 0
    assert deployed(rollouts.all()) is None


def test_an_opened_rollout_is_the_current_one(rollouts: Rollouts) -> None:
    opened = rollouts.open(1, 2, PLAN, why="new champion")
    assert rollouts.current() == opened
    assert (opened.id, opened.state, opened.step, opened.plan) == (
        "rollout-0001",
        "running",
        0,
        PLAN,
    )
    assert deployed(rollouts.all()) == 1


def test_one_rollout_is_open_at_a_time(rollouts: Rollouts) -> None:
    rollouts.open(1, 2, PLAN, why="one")
    with pytest.raises(NoRollout, match="rollout-0001 of version 2 is running"):
        rollouts.open(1, 2, PLAN, why="two")


def test_a_cause_opens_one_rollout_ever(rollouts: Rollouts) -> None:
    first = rollouts.open(1, 2, PLAN, why="", cause="entry-2")
    rollouts.append(first.last, "rolled_back", {"reasons": ["errors"]})
    again = rollouts.open(1, 2, PLAN, why="", cause="entry-2")
    assert again.id == first.id and again.state == "rolled_back"


def test_a_promoted_challenger_is_deployed_and_a_rolled_back_one_is_not(rollouts: Rollouts) -> None:
    first = rollouts.open(1, 2, PLAN, why="")
    rollouts.append(first.last, "promoted", {})
    assert deployed(rollouts.all()) == 2
    second = rollouts.open(2, 3, PLAN, why="")
    rollouts.append(second.last, "rolled_back", {})
    assert deployed(rollouts.all()) == 2 and rollouts.current() is None


def test_a_paused_rollout_continues_where_it_was(rollouts: Rollouts) -> None:
    event = rollouts.open(1, 2, PLAN, why="").last
    event = rollouts.append(event, "step", {}, step=1)
    event = rollouts.append(event, "paused", {})
    with pytest.raises(RolloutMoved, match="is paused"):
        rollouts.append(event, "step", {}, step=2)
    rollouts.append(event, "resumed", {})
    assert (now := rollouts.current()) and now.step == 1 and now.state == "running"


@pytest.mark.parametrize("last", ["promoted", "aborted", "rolled_back"])
def test_nothing_follows_the_end(rollouts: Rollouts, last: str) -> None:
    event = rollouts.append(rollouts.open(1, 2, PLAN, why="").last, last, {})  # type: ignore[arg-type]
    with pytest.raises(RolloutMoved):
        rollouts.append(event, "resumed", {})


def test_of_ten_controllers_one_decides(rollouts: Rollouts) -> None:
    event = rollouts.open(1, 2, PLAN, why="").last

    def advance(_: int) -> bool:
        try:
            Rollouts(rollouts.place).append(event, "step", {}, step=1)
        except RolloutMoved:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(advance, range(10))) == 1
    assert rollouts.head() == 2


def test_the_ledgers_own_entries_are_untouched(ledger: Ledger, rollouts: Rollouts) -> None:
    before = ledger.head()
    rollouts.open(1, 2, PLAN, why="")
    assert ledger.head() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rollout_events SET kind = 'promoted'",
        "DELETE FROM rollout_events",
        "INSERT OR REPLACE INTO rollout_events VALUES (1, 'x', 'opened', 0, '{}', '')",
        "UPDATE rollout_hashes SET hash = ''",
        "DELETE FROM rollout_hashes",
        "INSERT OR REPLACE INTO rollout_hashes VALUES (1, '')",
    ],
)
def test_the_database_refuses_every_change(tmp_path: Path, statement: str) -> None:
    put(Ledger(tmp_path / "promotions.db"), "a", "install")
    Rollouts(tmp_path / "promotions.db").open(1, 2, PLAN, why="")
    with (
        sqlite3.connect(tmp_path / "promotions.db") as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rollout_events SET step = 1 WHERE entry = 1",
        "DELETE FROM rollout_events WHERE entry = 2",
        "DELETE FROM rollout_hashes WHERE entry = 2",
        "INSERT INTO rollout_events SELECT 3, rollout, kind, step, detail, created_at "
        "FROM rollout_events WHERE entry = 2",
    ],
)
def test_a_change_without_the_triggers_is_noticed(tmp_path: Path, statement: str) -> None:
    rollouts = Rollouts(tmp_path / "promotions.db")
    put(Ledger(tmp_path / "promotions.db"), "a", "install")
    rollouts.append(rollouts.open(1, 2, PLAN, why="").last, "promoted", {})
    with sqlite3.connect(tmp_path / "promotions.db") as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
    with pytest.raises(LedgerChanged, match="of the rollouts is not what was recorded"):
        rollouts.all()


def test_a_reader_sees_whole_events_while_another_writes(rollouts: Rollouts) -> None:
    """Events and hashes are two tables: read at two moments, they would not fit."""
    rollouts.open(1, 2, PLAN, why="")
    done = Event()

    def write() -> None:
        for step in range(1, 60):
            rollouts.append(rollouts.all()[-1].last, "step", {}, step=step)
        done.set()

    with ThreadPoolExecutor(3) as pool:
        written = pool.submit(write)
        while not done.is_set() and not written.done():
            Rollouts(rollouts.place).all()
        written.result()
    assert rollouts.head() == 60


WRITER = """
import sys
from pathlib import Path
from resources.registry.rollouts import Rollouts
rollouts = Rollouts(Path(sys.argv[1]))
while True:
    now = rollouts.current() or rollouts.open(1, 2, {}, why="")
    event = rollouts.append(now.last, "step", {}, step=now.step + 1)
    print(event.entry, flush=True)
    if event.step % 5 == 0:
        rollouts.append(event, "promoted", {})
"""


def test_a_killed_writer_loses_no_event_that_it_has_recorded(tmp_path: Path) -> None:
    put(Ledger(tmp_path / "promotions.db"), "a", "install")
    recorded = 0
    for kill in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "promotions.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            recorded = int(writer.stdout.readline())
            time.sleep(0.05 * kill)
            os.kill(writer.pid, signal.SIGKILL)
            recorded = max([recorded, *map(int, writer.stdout.read().split("\n")[:-1])])
        rollouts = Rollouts(tmp_path / "promotions.db").all()
        assert sum(len(r.events) for r in rollouts) >= recorded
        assert sum(r.open for r in rollouts) <= 1
