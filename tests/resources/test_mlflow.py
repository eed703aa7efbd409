"""MLflow follows the ledger after failures, manual changes and kills."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resources.registry.ledger import Kind, Ledger
from resources.registry.mlflow import HASH_TAG, MODEL, PASSPORT_TAG, Registry, RegistryBehind
from tests.resources.mlflow_server import MlflowServer, mlflow_server

pytestmark = pytest.mark.timeout(600)  # MLflow creates its tables, slowly on a busy machine


@dataclass
class World:
    ledger: Ledger
    registry: Registry


def put(ledger: Ledger, name: str, kind: Kind, path: str = "/checkpoints") -> None:
    champion = ledger.champion()
    ledger.append(
        kind,
        checkpoint=name,
        checkpoint_hash=f"hash-{name}",
        path=path,
        decision={"reasons": [f"{name} came"]},
        run_id=f"chain-{name}",
        against=champion.checkpoint_hash if champion else None,
    )


@pytest.fixture(scope="module")
def server(empty_mlflow: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    folder = tmp_path_factory.mktemp("mlflow")
    shutil.copy(empty_mlflow, folder / "server.db")
    with mlflow_server(folder) as running:
        yield running


@pytest.fixture
def home(empty_mlflow: Path, tmp_path: Path) -> Path:
    shutil.copy(empty_mlflow, tmp_path)
    return tmp_path


@pytest.fixture(scope="module", params=["file", "server"])
def world(
    request: pytest.FixtureRequest, empty_mlflow: Path, tmp_path_factory: pytest.TempPathFactory
) -> World:
    """Install a, promote b, refuse c; sync once into a file of the home or a real server."""
    home = tmp_path_factory.mktemp("home of a user")
    shutil.copy(empty_mlflow, home)
    ledger = Ledger(home / "promotions.db")
    passport = home / "checkpoints" / "b" / "manifest.json"
    passport.parent.mkdir(parents=True)
    passport.write_text('{"seed": 7}')
    put(ledger, "a", "install")
    put(ledger, "b", "promote", str(passport.parent))
    put(ledger, "c", "refuse")
    url = request.getfixturevalue("server").url if request.param == "server" else ""
    Registry(home, url).sync(ledger)
    return World(ledger, Registry(home, url))


@pytest.mark.slow
def test_aliases_follow_the_ledger_and_syncing_is_idempotent(world: World) -> None:
    assert world.registry.aliases() == {"champion": 2, "previous": 1, "challenger": 3}
    assert (
        world.registry.sync(world.ledger)
        == world.registry.aliases()
        == {"champion": 2, "previous": 1, "challenger": 3}
    )
    assert len(list(world.registry._client().search_model_versions(f"name = '{MODEL}'"))) == 3
    assert world.registry.behind(world.ledger.history()) == 0


@pytest.mark.slow
def test_a_version_carries_its_passport(world: World) -> None:
    tags = world.registry._client().get_model_version_by_alias(MODEL, "champion").tags
    assert (tags[HASH_TAG], tags[PASSPORT_TAG], tags["ratchet_version"]) == (
        "hash-b",
        '{"seed": 7}',
        "2",
    )


@pytest.mark.slow
def test_manual_changes_are_corrected(world: World) -> None:
    client = world.registry._client()
    client.set_registered_model_alias(MODEL, "champion", "3")
    client.set_registered_model_alias(MODEL, "mine", "3")
    assert not world.registry.is_synced(world.ledger.history())
    again = client.create_model_version(
        MODEL, source="ratchet:///hash-c", tags={HASH_TAG: "hash-c"}, await_creation_for=None
    )
    assert (
        world.registry.sync(world.ledger)
        == world.registry.aliases()
        == {"champion": 2, "previous": 1, "challenger": 3}
    )
    assert world.registry.is_synced(world.ledger.history()) == (world.registry.file is not None)
    assert again.version not in [
        version.version for version in client.search_model_versions(f"name = '{MODEL}'")
    ]


@pytest.mark.slow
def test_a_stopped_server_is_synced_later(server: MlflowServer, tmp_path: Path) -> None:
    ledger, registry = Ledger(tmp_path / "promotions.db"), Registry(tmp_path, server.url)
    put(ledger, "d", "install")
    server.stop()
    with pytest.raises(RegistryBehind, match=server.url):
        registry.sync(ledger)
    assert registry.behind(ledger.history()) == 1
    assert (champion := ledger.champion())
    assert champion.checkpoint == "d"
    server.start()
    champion_version = registry.sync(ledger)["champion"]
    assert (
        registry._client().get_model_version(MODEL, str(champion_version)).tags[HASH_TAG]
        == "hash-d"
    )
    assert registry.behind(ledger.history()) == 0


@pytest.mark.slow
def test_a_locked_mlflow_is_synced_later(home: Path) -> None:
    ledger, registry = Ledger(home / "promotions.db"), Registry(home)
    put(ledger, "a", "install")
    registry.sync(ledger)
    put(ledger, "b", "promote")
    holder = sqlite3.connect(home / "mlflow.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert registry.try_sync(ledger) != ""
    assert registry.behind(ledger.history()) == 1
    holder.execute("ROLLBACK")
    holder.close()
    assert registry.try_sync(ledger) == ""
    assert registry.aliases() == {
        "champion": 2,
        "previous": 1,
        "challenger": 2,
    }


@pytest.mark.slow
def test_a_rollback_moves_the_aliases_back(home: Path) -> None:
    ledger, registry = Ledger(home / "promotions.db"), Registry(home)
    put(ledger, "a", "install")
    put(ledger, "b", "promote")
    registry.sync(ledger)
    ledger.rollback("undo")
    assert (
        registry.sync(ledger)
        == registry.aliases()
        == {"champion": 1, "previous": 2, "challenger": 2}
    )


PROJECT = """
import sys; from pathlib import Path
from resources.registry.ledger import Ledger; from resources.registry.mlflow import Registry
print("ready", flush=True)
Registry(Path(sys.argv[1])).sync(Ledger(Path(sys.argv[2])))
"""


@pytest.mark.slow
def test_a_killed_sync_resumes_and_writes_only_to_the_home(
    tmp_path: Path,
) -> None:
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "ratchet home"
    kinds: dict[str, Kind] = {"a": "install", "b": "promote", "c": "refuse"}
    elsewhere.mkdir()
    ledger = Ledger(home / "promotions.db")
    for name, kind in kinds.items():
        put(ledger, name, kind)
    environment = {k: v for k, v in os.environ.items() if k != "HOME"} | {
        "PYTHONPATH": str(Path.cwd())
    }
    command = [sys.executable, "-c", PROJECT, str(home), str(ledger.place)]
    killed = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=subprocess.PIPE)
    assert killed.stdout
    killed.stdout.readline()
    while not (home / "mlflow.db").exists():
        assert killed.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    subprocess.run(command, cwd=elsewhere, env=environment, check=True, capture_output=True)
    assert Registry(home).aliases() == {"champion": 2, "previous": 1, "challenger": 3}
    assert list(elsewhere.iterdir()) == []
    assert {p.name.split(".")[0] for p in home.iterdir()} == {
        "mlflow",
        "mlflow_follows",
        "promotions",
    }


@pytest.mark.slow
def test_a_training_has_a_page_on_the_server(server: MlflowServer, tmp_path: Path) -> None:
    registry = Registry(tmp_path, server.url)
    client = registry._client()
    experiment = client.create_experiment("of a training")
    run = client.create_run(experiment, run_name="chain-0042").info.run_id
    assert registry.run_page("chain-0042") == f"{server.url}/#/experiments/{experiment}/runs/{run}"
    assert registry.run_page("chain-0043") is None
