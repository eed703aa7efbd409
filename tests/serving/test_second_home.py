"""A second, empty home on the database and the object store of a first one that is gone."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from artifacts.pull import pull_champion
from cli.status import show_status
from pipelines.health import findings
from resources.home import Home
from resources.registry.ledger import Entry
from resources.settings import Settings
from serving.gateway.app import make_app
from serving.gateway.keys import Keys
from serving.gateway.observations import Observations
from tests.artifacts.object_store import object_store
from tests.resources.postgres import postgres
from tests.serving.gateway_server import ask, eventually, fast, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[str, ...]]:
    """Changes to the profile: a database and an object store on servers."""
    with postgres() as server, object_store("team") as url:
        yield f"storage.ledger={server.fresh('team')}", f"storage.root={url}"


@pytest.fixture
def second(places: tuple[str, ...], checkpoints: dict[str, Path], tmp_path: Path) -> Settings:
    """The settings of an empty home; another home promoted a version, and was deleted."""
    first = Settings(Home(tmp_path / "first"), changes=places)
    if first.ledger.champion() is None:
        install(first, checkpoints["old"])
    shutil.rmtree(first.home.path, ignore_errors=True)
    return Settings(Home(tmp_path / "second"), changes=places)


def install(settings: Settings, weights: Path) -> Entry:
    store = settings.store
    with store.draft("checkpoints", "one") as folder:
        shutil.copytree(weights, folder, dirs_exist_ok=True)
        artifact = store.publish(
            folder, Manifest(kind="checkpoints", name="one", key="a" * 64, content_hash="")
        )
    return settings.ledger.append(
        "install",
        checkpoint="one",
        checkpoint_hash=artifact.content_hash,
        path=str(artifact.path),
        decision={},
        run_id="chain-0001",
        against=None,
    )


def test_status_copies_nothing_and_misses_nothing(second: Settings) -> None:
    second.home.make()
    output = io.StringIO()
    assert show_status(second, Console(file=output, width=200)) == 0
    assert "version 1, one" in output.getvalue()
    assert "missing" not in output.getvalue()
    assert not (second.home.path / "cache").exists()


def test_serve_answers_with_the_champion(second: Settings) -> None:
    app = make_app(second.home, fast(), ledger=second.ledger, store=second.store)
    with running(app) as url:
        status, body = ask(url, model="champion")
    assert (status, body["model"]) == (200, "one")
    third = Home(second.home.path / "third", second.home.database)
    [(_, row)] = Observations(third.observations, third.database).read()
    assert (row.version, row.response) == (1, body["id"].rpartition("-")[2])


def test_a_key_of_one_home_is_needed_in_the_other(second: Settings) -> None:
    first = Home(second.home.path / "first", second.home.database)
    key = Keys(first.api_keys).add("ann", "user")
    app = make_app(second.home, fast(), ledger=second.ledger, store=second.store)
    with running(app) as url:
        assert (ask(url)[0], ask(url, key)[0]) == (401, 200)
    Keys(second.home.api_keys).revoke("ann")
    assert Keys(first.api_keys).all() == []


def test_health_finds_the_champion_whole(second: Settings) -> None:
    second.home.make()
    with dg.DagsterInstance.ephemeral() as instance:
        champion = next(findings(second, instance, datetime.now(UTC)))
    assert champion.found == "version 1 (one), whole"


def test_a_changed_copy_is_made_again_and_no_version_taken_back(second: Settings) -> None:
    champion = second.ledger.champion()
    assert champion is not None
    folder = pull_champion(second.store, champion.path, champion.checkpoint_hash)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CorruptArtifact, match=f"delete {folder}, and it is copied again") as error:
        pull_champion(second.store, folder, champion.checkpoint_hash)
    assert "rollback" not in str(error.value)
    shutil.rmtree(folder)
    pull_champion(second.store, folder, champion.checkpoint_hash)


def test_a_gateway_that_starts_while_its_database_is_away_waits_for_it(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    with postgres() as server:
        changes = (f"storage.ledger={server.fresh('team')}",)
        settings = Settings(Home(tmp_path / "home"), changes=changes)
        install(settings, checkpoints["old"])
        key = Keys(settings.home.api_keys).add("a", "user")
        server.stop()
        app = make_app(settings.home, fast(), ledger=settings.ledger, store=settings.store)
        with running(app) as url:
            assert ask(url, key)[0] == 503
            server.start()
            eventually(lambda: ask(url, key)[0] == 200)
            assert ask(url)[0] == 401
