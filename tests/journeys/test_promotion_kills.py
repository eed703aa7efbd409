"""Promotions, rollbacks and the sync to MLflow survive SIGKILL at random moments.

Nothing is lost, nothing is recorded twice, and MLflow never lacks the alias `champion`, which a
thread polls all the time. Processes, ledger and MLflow file are real.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from resources.home import Home
from resources.registry.ledger import Entry, Ledger, champions
from resources.registry.mlflow import HASH_TAG, MODEL, Registry, RegistryBehind, aliases_of
from resources.settings import Settings

# Preloaded modules, so that a kill hits a process during its work and not during its imports.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "mlflow",
        "mlflow.store.model_registry.sqlalchemy_store",
        "resources.config.profile",
        "cli.rollback",
    ]
)
SOURCE = Path(__file__).read_text(encoding="utf-8") if "__file__" in globals() else ""
LONGEST_S = 240.0
LONGEST_WAIT_S = 4.0  # before a kill, on a busy machine


def step(ledger: Ledger, rng: random.Random) -> Entry:
    """Record the next promotion or rollback.

    Its name is derived from the ledger, so a killed step that was recorded is not repeated.
    """
    history = ledger.history()
    stack = champions(history)
    number = len(history)
    if len(stack) > 1 and rng.random() < 0.4:
        return ledger.rollback(f"undo-{number}", undoing=stack[-1].entry)
    against = stack[-1].checkpoint_hash if stack else None
    name = f"c{number}"
    return ledger.append(
        "promote" if stack else "install",
        checkpoint=name,
        checkpoint_hash=name,
        path="",
        decision={"reasons": []},
        run_id=name,
        against=against,
    )


def work(home: Path, seed: int, reports: Connection) -> None:
    """Promote and roll back until killed.

    Each entry is reported once it is in the ledger, and again once it is in MLflow.
    """
    ledger, registry, rng = Ledger(home / "promotions.db"), Registry(home), random.Random(seed)
    registry.sync(ledger)
    while True:
        entry = step(ledger, rng)
        reports.send(("recorded", entry.entry))
        registry.sync(ledger)
        reports.send(("projected", entry.entry))


def process_of(call: str, **arguments: object) -> BaseProcess:
    """Start a process that makes this call of this file.

    The process cannot import the file, because the tests are not a package.
    """
    process = PROCESSES.Process(
        target=exec, args=(f"{SOURCE}\n\n{call}\n", {"__name__": "killed", **arguments})
    )
    process.start()
    return process


class Watcher(threading.Thread):
    """Poll MLflow's aliases.

    polls: successful ones. absent: polls without a champion after there was one. busy: polls while
    a writer had locked the file.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self.registry, self.polls, self.absent, self.busy = Registry(home), 0, 0, 0
        self.stopped = threading.Event()

    def run(self) -> None:
        had_champion = False
        while not self.stopped.wait(0.05):
            try:
                aliases = self.registry.aliases()
            except RegistryBehind:
                self.busy += 1
                continue
            self.polls += 1
            had_champion = had_champion or "champion" in aliases
            self.absent += had_champion and "champion" not in aliases


def kill_repeatedly(home: Path, kills: int, seed: int) -> Counter[str]:
    """Kill the worker `kills` times and check the ledger after each kill. Count the moments hit."""
    rng, ledger, registry = random.Random(seed), Ledger(home / "promotions.db"), Registry(home)
    moments = Counter[str]()
    registry._client().search_registered_models()  # creates MLflow's tables, which takes seconds
    watcher = Watcher(home)
    watcher.start()
    entry_s = LONGEST_S
    for number in range(kills):
        receiver, sender = PROCESSES.Pipe(duplex=False)
        process = process_of(
            "work(home, seed, reports)", home=home, seed=seed + number, reports=sender
        )
        sender.close()
        messages: list[tuple[str, int]] = []
        assert receiver.poll(LONGEST_S), "nothing was recorded"
        began = time.monotonic()
        messages.append(receiver.recv())
        if number == 0:  # measure how long one entry takes on this machine
            while messages[-1][0] != "projected":
                messages.append(receiver.recv())
            entry_s = time.monotonic() - began
        time.sleep(rng.uniform(0, min(2 * entry_s, LONGEST_WAIT_S)))
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        messages += received(receiver)
        moments[f"after it was {messages[-1][0]}"] += 1
        history = ledger.history()
        assert {entry for _, entry in messages} <= {entry.entry for entry in history}, (
            "an entry that was reported as recorded is lost"
        )
        assert [entry.entry for entry in history] == list(range(1, len(history) + 1))
        moves = [entry.predecessor for entry in history if entry.kind != "refuse"]
        assert len(moves) == len(set(moves))
        assert len({entry.run_id for entry in history}) == len(history)
    expected = {
        alias: entry.checkpoint_hash for alias, entry in aliases_of(ledger.history()).items()
    }
    aliases = registry.sync(ledger)
    watcher.stopped.set()
    watcher.join()
    versions = {
        int(version.version): version.tags[HASH_TAG]
        for version in registry._client().search_model_versions(
            f"name = '{MODEL}'", max_results=1000
        )
    }
    assert {alias: versions[version] for alias, version in aliases.items()} == expected
    hashes = {entry.checkpoint_hash for entry in ledger.history() if entry.kind != "rollback"}
    assert sorted(versions.values()) == sorted(hashes), (
        "a version is missing from MLflow, or is there twice"
    )
    assert watcher.polls > kills
    assert watcher.absent == 0
    return moments + Counter(
        {
            "polls of the aliases": watcher.polls,
            "polls while it was locked": watcher.busy,
            "entries": len(ledger.history()),
        }
    )


def received(receiver: Connection) -> list[tuple[str, int]]:
    """Return the messages sent before the end, without a partial last one."""
    messages = []
    try:
        while receiver.poll(0):
            messages.append(receiver.recv())
    except (EOFError, OSError):
        pass
    return messages


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_kills_lose_nothing_and_leave_champion_in_place(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 2, seed=11)


@pytest.mark.soak
def test_thirty_kills_lose_nothing_and_leave_champion_in_place(tmp_path: Path) -> None:
    print(dict(kill_repeatedly(tmp_path, 30, seed=time.time_ns() % 10_000)))


def roll_back(home: Path, sender: Connection) -> None:
    """Run `ratchet rollback` without starting an interpreter."""
    os.environ["RATCHET_HOME"] = str(home)
    from rich.console import Console

    from cli.rollback import rollback

    sender.send(("begins", 0))
    with (home / "output").open("a") as file:
        rollback(None, "", Settings.read(), Console(file=file))
    sender.send(("ended", 0))


def rolled_back(home: Path, after: float | None) -> bool:
    """Start a rollback and kill it `after` seconds after it begins. Return whether it had ended."""
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = process_of("roll_back(home, sender)", home=home, sender=sender)
    sender.close()
    assert receiver.poll(LONGEST_S)
    assert receiver.recv() == ("begins", 0)
    ended = receiver.poll(after if after is not None else LONGEST_S)
    if not ended and process.pid:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return ended and received(receiver)[-1:] == [("ended", 0)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_and_repeated_rollback_undoes_one_promotion(
    tmp_path: Path,
) -> None:
    Home(tmp_path).make()
    ledger = Ledger(tmp_path / "promotions.db")
    for _ in range(9):
        step(ledger, random.Random(3) if not ledger.history() else OnlyPromotions())
    Registry(tmp_path).sync(ledger)
    began = time.monotonic()
    assert rolled_back(tmp_path, None)
    seconds = time.monotonic() - began
    kills = 0
    for share in (0.1, 0.6):  # of the seconds of a complete rollback
        before = len(ledger.history())
        while not rolled_back(tmp_path, share * seconds):
            kills += 1
            share += 1.0  # retry, and let it run longer
        assert len(ledger.history()) == before + 1
    assert kills > 0
    assert Registry(tmp_path).aliases().keys() >= {"champion", "challenger"}
    assert not (tmp_path / "rollback.json").exists()


class OnlyPromotions(random.Random):
    """A source of random numbers with which `step` only promotes."""

    def random(self) -> float:
        return 1.0
