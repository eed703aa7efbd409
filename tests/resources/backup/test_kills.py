"""Backups that are killed at any moment while decisions are recorded."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from artifacts.folder import Folder
from artifacts.integrity import check_champion
from artifacts.passport import ManifestIndex, walk
from resources.backup import index
from resources.run_record import readable
from resources.settings import Settings
from resources.verification import verify_records
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder
from tests.resources.backup.made import backed_up, restored


def forked(work: Callable[[], object]) -> int:
    """Start a process that does this and ends; return its id."""
    if pid := os.fork():
        return pid
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def end(pid: int) -> int:
    """Kill a process; return its exit status."""
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def decide(builder: HomeBuilder, prefix: str) -> None:
    """Promote one challenger after another, with a record of each decision, until killed."""
    for number in range(10_000):
        name = f"{prefix}-{number:04d}"
        builder.promoted(name)
        open_test_run(builder.run_context.home.runs, name).change(decision="promote")


def assert_whole(settings: Settings) -> None:
    """The ledger, the records, the champion, its lineage and all files fit together."""
    ledger = settings.ledger
    ledger.compare(
        {each.id: each.decision for each in readable(settings.home.runs) if each.decision}
    )
    champion = ledger.champion()
    assert champion
    check_champion(Path(champion.path), champion.checkpoint_hash)
    settings.store.verify_all()
    verify_records(settings.home.path)
    manifests = ManifestIndex.of(settings.store)
    assert not manifests.damaged
    [manifest] = manifests.by_content[champion.checkpoint_hash]
    assert not walk(manifests.node_of(manifest), manifests).missing


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.soak)],
)
def test_whatever_a_killed_backup_leaves_is_whole(tmp_path: Path, kills: int) -> None:
    builder, url = HomeBuilder(tmp_path / "home"), str(tmp_path / "backups")
    builder.promoted("first")
    settings = Settings(builder.run_context.home, "small")
    began = time.monotonic()
    backed_up(settings, url)
    seconds, chance, finished = time.monotonic() - began, random.Random(kills), 0
    for number in range(kills):
        writer = forked(partial(decide, builder, f"night-{number}"))
        backup = forked(partial(backed_up, settings, url, keep=3))
        time.sleep(chance.uniform(0.02, 4 * seconds))
        finished += end(backup) == 0
        end(writer)
        assert_whole(restored(url, tmp_path / f"new-{number}"))
    made = backed_up(settings, url, keep=1).index
    assert index.ids(Folder(url)) == [made.id]
    last = restored(url, tmp_path / "last")
    assert_whole(last)
    assert last.ledger.head() == settings.ledger.head()
    print(f"{kills} kills, {finished} backups had ended before; {last.ledger.head()[0]} decisions")
