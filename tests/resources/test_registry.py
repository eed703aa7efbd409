"""MLflow follows the ledger, whatever happened in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.ledger import Kind, Ledger
from resources.registry import HASH_TAG, MODEL, Registry


def put(ledger: Ledger, name: str, kind: Kind) -> None:
    champion = ledger.champion()
    ledger.append(
        kind, checkpoint=name, checkpoint_hash=f"hash-{name}", path=f"/checkpoints/{name}", decision={"reasons": [f"{name} came"]},
        chain=f"chain-{name}", against=champion.checkpoint_hash if champion else None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """a installed, b promoted, c refused; projected once."""
    ledger = Ledger(tmp_path_factory.mktemp("home of a user") / "promotions.db")
    put(ledger, "a", "install")
    put(ledger, "b", "promote")
    put(ledger, "c", "refuse")
    Registry(ledger.path.parent).project(ledger)
    return ledger


def test_the_aliases_follow_the_ledger_and_a_second_time_changes_nothing(history: Ledger) -> None:
    registry = Registry(history.path.parent)
    assert registry.aliases() == {"champion": 2, "previous": 1, "challenger": 3}
    assert registry.project(history) == registry.aliases() == {"champion": 2, "previous": 1, "challenger": 3}
    assert len(list(registry._client().search_model_versions(f"name = '{MODEL}'"))) == 3
    assert registry._client().get_model_version_by_alias(MODEL, "champion").tags[HASH_TAG] == "hash-b"


def test_an_alias_that_somebody_moved_by_hand_is_mended(history: Ledger) -> None:
    registry = Registry(history.path.parent)
    registry.project(history)
    registry._client().set_registered_model_alias(MODEL, "champion", "3")
    registry._client().set_registered_model_alias(MODEL, "mine", "3")
    assert registry.project(history) == registry.aliases() == {"champion": 2, "previous": 1, "challenger": 3}


def test_a_rollback_moves_the_aliases_back(history: Ledger, tmp_path: Path) -> None:
    home = shutil.copytree(history.path.parent, tmp_path / "copy")
    ledger = Ledger(home / "promotions.db")
    ledger.rollback("undo")
    assert Registry(home).project(ledger) == Registry(home).aliases() == {"champion": 1, "challenger": 3}


PROJECT = """
import sys; from pathlib import Path; from resources.ledger import Ledger; from resources.registry import Registry
print("ready", flush=True)
Registry(Path(sys.argv[1])).project(Ledger(Path(sys.argv[2])))
"""


@pytest.mark.slow
def test_killed_while_projecting_without_a_home_it_goes_on_and_writes_nothing_elsewhere(history: Ledger, tmp_path: Path) -> None:
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "ratchet home"
    elsewhere.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "HOME"} | {"PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", PROJECT, str(home), str(history.path)]
    killed = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=subprocess.PIPE)
    assert killed.stdout
    killed.stdout.readline()
    deadline = time.monotonic() + 30
    while not (home / "mlflow.db").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    subprocess.run(command, cwd=elsewhere, env=environment, check=True, capture_output=True)
    assert Registry(home).aliases() == {"champion": 2, "previous": 1, "challenger": 3}
    assert list(elsewhere.iterdir()) == []
    assert {p.name.split(".")[0] for p in home.iterdir()} == {"mlflow"}
