"""The ledger of promotions records nothing twice, loses nothing, and allows one successor."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.registry.ledger import (
    Ledger,
    NothingToRollBack,
    Superseded,
    champion_of,
    champions,
    previous_of,
)
from resources.registry.ledger_database import LedgerUnreachable
from tests.children import python
from tests.resources.ledger_entries import put
from tests.resources.postgres import Server


def test_reading_a_missing_ledger_creates_no_file(ledger: Ledger) -> None:
    assert ledger.champion() is None
    assert ledger.history() == []
    assert isinstance(ledger.place, str) or not ledger.place.exists()


def test_a_refused_checkpoint_changes_no_champion(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    refused = put(ledger, "b", "refuse")
    assert (champion := ledger.champion())
    assert champion.checkpoint == "a"
    assert ledger.history()[-1] == refused
    assert refused.version == 2
    assert refused.decision == {"reasons": ["b"]}


def test_a_repeated_pipeline_run_records_nothing_twice(ledger: Ledger) -> None:
    first = put(ledger, "a", "install")
    assert put(ledger, "a", "install") == first
    assert len(ledger.history()) == 1


def test_a_pipeline_run_has_one_candidate(ledger: Ledger) -> None:
    put(ledger, "a", "install", run_id="one")
    with pytest.raises(ValueError, match=r"pipeline run one .* a\b"):
        put(ledger, "b", run_id="one")


def test_a_promotion_against_a_former_champion_is_refused(ledger: Ledger) -> None:
    old = put(ledger, "a", "install")
    put(ledger, "b")
    with pytest.raises(Superseded, match=r"version 2 \(b\).*\bc\b.*version 1 \(a\)"):
        put(ledger, "c", against=old)
    assert len(ledger.history()) == 2


def test_a_rollback_happens_once_and_names_both_versions(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b")
    back = ledger.rollback("undo", reason="slow")
    assert ledger.rollback("undo") == back
    assert back.version == 1
    sentence, reason = back.decision["reasons"]
    assert re.search(r"version 2 \(b\).*version 1 \(a\)", sentence)
    assert reason == "slow"
    with pytest.raises(NothingToRollBack, match="first champion"):
        ledger.rollback("undo more")


def test_a_rollback_can_be_undone_and_done_again(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b")
    put(ledger, "c", "refuse")

    def champion_and_previous() -> list[int]:
        history = ledger.history()
        ends = (champion_of(history), previous_of(history))
        return [entry.version for entry in ends if entry]

    for number in range(2):
        ledger.rollback(f"undo {number}")
        assert champion_and_previous() == [1, 2]
        ledger.rollback(f"redo {number}", to=2)
        assert champion_and_previous() == [2, 1]
        assert [entry.version for entry in champions(ledger.history())] == [1, 2]
    with pytest.raises(NothingToRollBack, match="version 3 was never champion"):
        ledger.rollback("of a refused one", to=3)


def test_a_rollback_needs_a_champion(ledger: Ledger) -> None:
    with pytest.raises(NothingToRollBack, match="no champion yet"):
        ledger.rollback("undo")


def test_the_database_refuses_two_successors_of_one_champion(ledger: Ledger) -> None:
    first = put(ledger, "a", "install")
    second = put(ledger, "b")
    with (
        pytest.raises(Exception, match=r"append-only|one_successor"),
        ledger._database.writing() as cursor,
    ):
        ledger._insert(cursor, replace(second, entry=3, run_id="by hand", predecessor=first.entry))


def test_a_rollback_to_a_version_undoes_all_later_ones(ledger: Ledger) -> None:
    for name in "abcd":
        put(ledger, name, "promote" if ledger.champion() else "install")
    back = ledger.rollback("undo", to=2)
    [sentence] = back.decision["reasons"]
    assert re.search(r"version 4 \(d\), version 3 \(c\).*version 2 \(b\)", sentence)
    assert (champion := ledger.champion())
    assert champion.version == 2
    assert [entry.version for entry in champions(ledger.history())] == [1, 2]
    with pytest.raises(NothingToRollBack, match=r"version 9\b.*version 1\b"):
        ledger.rollback("undo more", to=9)
    with pytest.raises(NothingToRollBack, match="version 2"):
        ledger.rollback("undo more", to=2)


def test_a_rollback_of_a_former_champion_is_refused(ledger: Ledger) -> None:
    for name in "abc":
        put(ledger, name, "promote" if ledger.champion() else "install")
    seen = ledger.champion()
    assert seen
    ledger.rollback("one", undoing=seen.entry)
    with pytest.raises(Superseded, match=r"version 2 \(b\)"):
        ledger.rollback("two", undoing=seen.entry)
    assert ledger.rollback("one", undoing=seen.entry).version == 2
    assert len(ledger.history()) == 4


def test_a_repeated_checkpoint_keeps_its_version(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b", "refuse")
    assert put(ledger, "b", run_id="next night").version == 2


@settings(max_examples=30)
@given(steps=st.lists(st.sampled_from(["promote", "refuse", "rollback"]), max_size=10))
def test_champion_and_previous_follow_promotions_and_rollbacks(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
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
    assert [entry.checkpoint for entry in champions(ledger.history())] == expected


RACER = """
import sys; from pathlib import Path; from resources.registry.ledger import Ledger, Superseded
place, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger(place if "://" in place else Path(place))
for i in range(rounds):
    print("ready", flush=True); against = sys.stdin.readline().strip()
    mine = f"{name}{i}"
    try:
        ledger.append(
            "promote", checkpoint=mine, checkpoint_hash=mine, path="", decision={}, run_id=mine,
            against=against,
        )
        print("promoted", flush=True)
    except Superseded as error:
        print(error, flush=True)
"""


@pytest.mark.slow
def test_of_two_concurrent_promotions_exactly_one_succeeds(
    ledger: Ledger,
) -> None:
    rounds = 40
    put(ledger, "a", "install")
    command = [sys.executable, "-c", RACER, str(ledger.place)]
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "bufsize": 1,
    }
    racers = [subprocess.Popen([*command, name, str(rounds)], **pipes) for name in ("one", "two")]
    won = {"one": 0, "two": 0}
    for i in range(rounds):
        champion = ledger.champion()
        assert champion
        assert [racer.stdout.readline() for racer in racers if racer.stdout] == ["ready\n"] * 2
        for racer in racers:
            assert racer.stdin
            racer.stdin.write(f"{champion.checkpoint_hash}\n")
        outputs = dict(
            zip(
                won,
                [racer.stdout.readline().strip() for racer in racers if racer.stdout],
                strict=True,
            )
        )
        winner = ledger.champion()
        assert winner
        assert winner.predecessor == champion.entry
        [loser] = [name for name, output in outputs.items() if output != "promoted"]
        versions = [f"version {each.version} ({each.checkpoint})" for each in (winner, champion)]
        assert all(part in outputs[loser] for part in (*versions, f"{loser}{i}"))
        won[winner.checkpoint.removesuffix(str(i))] += 1
    for racer in racers:
        racer.communicate(timeout=100)
    assert len(ledger.history()) == rounds + 1
    assert sum(won.values()) == rounds


WRITER = """
import sys; from pathlib import Path; from resources.registry.ledger import Ledger
ledger = Ledger(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]))
i = len(ledger.history())
while True:
    name, against = str(i), str(i - 1) if i else None
    ledger.append(
        "promote" if i else "install", checkpoint=name, checkpoint_hash=name, path="", decision={},
        run_id=name, against=against,
    )
    print(i, flush=True)
    i += 1
"""


def test_a_killed_writer_loses_no_confirmed_entry(ledger: Ledger) -> None:
    confirmed = -1
    for round_ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(ledger.place)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout
        confirmed = int(writer.stdout.readline())
        time.sleep(0.02 * round_)
        os.kill(writer.pid, signal.SIGKILL)
        confirmed = max(
            [
                confirmed,
                *(
                    int(line)
                    for line in writer.stdout.read().splitlines(keepends=True)
                    if line.endswith("\n")
                ),
            ]
        )
        writer.stdout.close()
        writer.wait()
        history = ledger.history()
        assert len(history) >= confirmed + 1
        assert [e.predecessor for e in history] == [e.entry - 1 for e in history]


def test_a_locked_ledger_raises_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.registry.ledger_database.WAIT_S", 0.2)
    ledger = Ledger(tmp_path / "promotions.db")
    put(ledger, "a", "install")
    holder = sqlite3.connect(tmp_path / "promotions.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        LedgerUnreachable,
        match=r"promotions\.db.*database is locked",
    ):
        put(ledger, "b")
    assert (champion := ledger.champion()), "a reader does not wait for a writer"
    assert champion.checkpoint == "a", "a reader does not wait for a writer"
    holder.execute("ROLLBACK")
    holder.close()
    assert put(ledger, "b").version == 2


READ_ONLY = """
import os, sys; from pathlib import Path; from resources.registry.ledger import Ledger
os.setuid(65534) if os.geteuid() == 0 else None
Ledger(Path(sys.argv[1])).append(
    "promote", checkpoint="b", checkpoint_hash="b", path="", decision={}, run_id="b",
    against="hash-a",
)
"""


def test_an_unwritable_folder_raises_and_loses_nothing() -> None:
    # Another user may not enter tmp_path.
    with tempfile.TemporaryDirectory(prefix="read-only-") as folder:
        ledger = Ledger(Path(folder) / "promotions.db")
        put(ledger, "a", "install")
        Path(folder).chmod(0o555)
        refused = python("-c", READ_ONLY, str(ledger.place))
        Path(folder).chmod(0o755)
        assert re.search(r"LedgerUnreachable: .*promotions\.db", refused.stderr)
        assert len(ledger.history()) == 1


@pytest.mark.slow
def test_a_stopped_server_raises_and_loses_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(server.fresh("gone"))
    put(ledger, "a", "install")
    server.stop()
    with pytest.raises(LedgerUnreachable, match="/gone"):
        put(ledger, "b", against=None)
    server.start()
    assert [entry.checkpoint for entry in ledger.history()] == ["a"]
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(LedgerUnreachable, match="password authentication failed"):
        ledger.history()


@pytest.mark.parametrize(
    "url", ["postgresql://me:secret@host/db", "mysql://host/db", "postgresql://host"]
)
def test_a_url_with_password_or_other_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"PGPASSWORD|postgresql://user@host:port/database"):
        Ledger(url)
