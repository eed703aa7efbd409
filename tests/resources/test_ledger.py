"""The record of promotions: nothing twice, nothing lost, one successor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.ledger import Entry, Kind, Ledger, NothingToRollBack, Superseded


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "a home with spaces" / "promotions.db")


def put(ledger: Ledger, name: str, kind: Kind = "promote", chain: str | None = None, against: Entry | None = None) -> Entry:
    compared = against or ledger.champion()
    return ledger.append(
        kind,
        checkpoint=name,
        checkpoint_hash=f"hash-{name}",
        path=f"/checkpoints/{name}",
        decision={"reasons": [name]},
        chain=chain or f"chain-{name}",
        against=compared.checkpoint_hash if compared else None,
    )


def test_reading_a_ledger_that_nobody_wrote_makes_no_file(ledger: Ledger) -> None:
    assert ledger.champion() is None and ledger.history() == [] and not ledger.path.exists()


def test_the_last_promoted_checkpoint_is_champion(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b")
    assert (champion := ledger.champion()) and champion.checkpoint == "b" and champion.version == 2
    assert (previous := ledger.previous()) and previous.checkpoint == "a"


def test_a_refused_checkpoint_is_kept_and_changes_no_champion(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    refused = put(ledger, "b", "refuse")
    assert (champion := ledger.champion()) and champion.checkpoint == "a"
    assert ledger.history()[-1] == refused and refused.version == 2 and refused.decision == {"reasons": ["b"]}


def test_a_chain_that_is_run_again_records_nothing_twice(ledger: Ledger) -> None:
    first = put(ledger, "a", "install")
    assert put(ledger, "a", "install") == first
    assert len(ledger.history()) == 1


def test_a_chain_puts_one_candidate_before_the_gate(ledger: Ledger) -> None:
    put(ledger, "a", "install", chain="one")
    with pytest.raises(ValueError, match="one candidate a chain"):
        put(ledger, "b", chain="one")


def test_a_promotion_against_a_champion_of_yesterday_is_refused_by_name(ledger: Ledger) -> None:
    old = put(ledger, "a", "install")
    put(ledger, "b")
    with pytest.raises(Superseded, match=r"version 2 \(b\) is champion now, c was compared with version 1 \(a\)"):
        put(ledger, "c", against=old)
    assert len(ledger.history()) == 2


def test_a_rollback_says_what_it_undid_and_happens_once_a_chain(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b")
    back = ledger.rollback("undo", reason="slow")
    assert ledger.rollback("undo") == back and back.version == 1
    assert back.decision["reasons"] == ["version 2 (b) was taken back, version 1 (a) is champion again.", "slow"]
    with pytest.raises(NothingToRollBack, match="first champion"):
        ledger.rollback("undo more")


def test_without_a_champion_there_is_nothing_to_roll_back(ledger: Ledger) -> None:
    with pytest.raises(NothingToRollBack, match="no champion yet"):
        ledger.rollback("undo")


def test_nobody_can_change_or_delete_an_entry(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    connection = sqlite3.connect(ledger.path)
    for statement in ("UPDATE promotions SET kind = 'refuse'", "DELETE FROM promotions"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_a_checkpoint_keeps_its_version_when_it_comes_again(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b", "refuse")
    assert put(ledger, "b", chain="next night").version == 2


@settings(max_examples=30)
@given(steps=st.lists(st.sampled_from(["promote", "refuse", "rollback"]), max_size=10))
def test_champion_and_previous_follow_promotions_and_rollbacks(steps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "promotions.db")
    expected: list[str] = []
    for i, step in enumerate(steps):
        if step == "rollback":
            if len(expected) > 1:
                ledger.rollback(f"undo {i}")
                expected.pop()
        elif step == "promote":
            put(ledger, f"c{i}", "promote" if expected else "install")
            expected.append(f"c{i}")
        else:
            put(ledger, f"c{i}", "refuse")
    champion, previous = ledger.champion(), ledger.previous()
    assert (champion.checkpoint if champion else None) == (expected[-1] if expected else None)
    assert (previous.checkpoint if previous else None) == (expected[-2] if len(expected) > 1 else None)


def _race(path: Path, name: str, results: multiprocessing.Queue[str]) -> None:
    ledger = Ledger(path)
    champion = ledger.history()[0]
    try:
        put(ledger, name, against=champion)
        results.put("promoted")
    except Superseded:
        results.put("superseded")


def test_of_promotions_at_once_one_wins_and_the_others_are_told(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    racers = [context.Process(target=_race, args=(ledger.path, f"r{i}", results)) for i in range(4)]
    for racer in racers:
        racer.start()
    outcomes = [results.get(timeout=20) for _ in racers]
    for racer in racers:
        racer.join()
    assert sorted(outcomes) == ["promoted", "superseded", "superseded", "superseded"]


WRITER = """
import sys; from pathlib import Path; from resources.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
i = len(ledger.history())
while True:
    name, against = str(i), str(i - 1) if i else None
    ledger.append("promote" if i else "install", checkpoint=name, checkpoint_hash=name, path="", decision={}, chain=name, against=against)
    print(i, flush=True)
    i += 1
"""


def test_kill_9_while_writing_loses_nothing_that_was_said_to_be_written(ledger: Ledger) -> None:
    said = -1
    for round_ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(ledger.path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout
        said = int(writer.stdout.readline())
        time.sleep(0.02 * round_)
        os.kill(writer.pid, signal.SIGKILL)
        said = max([said, *(int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n"))])
        writer.stdout.close()
        writer.wait()
        history = ledger.history()
        assert len(history) >= said + 1
        assert [e.predecessor for e in history] == [e.entry - 1 for e in history]
