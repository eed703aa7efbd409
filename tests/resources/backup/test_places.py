"""Backups in an object store, homes with an object store, and databases on a server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from artifacts.folder import Folder
from artifacts.pull import pull_champion
from evaluation.generation.decoder import generate
from evaluation.sampling import Sampling
from resources.backup.databases import servers
from resources.backup.restore import restore
from resources.home import Home, NotReady
from resources.registry.ledger_database import LEDGER
from resources.run_record import SCHEMA
from resources.settings import Settings
from tests.artifacts.object_store import object_store
from tests.pipelines.home_builder import HomeBuilder
from tests.resources.backup.made import backed_up, contents, decided_home, restored
from tests.resources.postgres import PASSWORD, postgres

pytestmark = pytest.mark.slow


def assert_has_its_champion(settings: Settings) -> None:
    champion = settings.ledger.champion()
    assert champion
    pull_champion(settings.store, champion.path, champion.checkpoint_hash)


def test_a_home_moves_to_an_object_store_and_back(tmp_path: Path) -> None:
    old = decided_home(tmp_path / "old")
    with object_store("ratchet") as bucket:
        first, second, root = (f"{bucket}/{name}" for name in ("first", "second", "artifacts"))
        backed_up(old, first)
        assert backed_up(old, first).new_files == 0
        moved = restored(first, tmp_path / "moved", root=root)
        assert_has_its_champion(moved)
        for name in ("sft_checkpoint", "chain-0001"):
            there, here = (each.store.require("checkpoints", name) for each in (moved, old))
            assert there.content_hash == here.content_hash
        backed_up(moved, second)
        back = restored(second, tmp_path / "back")
    assert_has_its_champion(back)
    assert back.store.verify_all() == old.store.verify_all()
    assert contents(back.home.path / "datasets") == contents(old.home.path / "datasets")


def profile_on(tmp_path: Path, ledger: str, dagster: str, port: int) -> str:
    """Write a profile with both databases on this server; return its path."""
    path = tmp_path / f"{dagster}.yaml"
    place = {"hostname": "127.0.0.1", "port": port, "username": "ratchet", "database": dagster}
    path.write_text(
        yaml.safe_dump(
            {
                "extends": "small",
                "storage": {"ledger": ledger},
                "orchestration": {"postgres": place},
            }
        )
    )
    return str(path)


def slow_dump(tmp_path: Path) -> Path:
    """Return a folder with a pg_dump that first notes whether runs and ledger can be written."""
    program = tmp_path / "bin" / "pg_dump"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\nfor url; do :; done\nfor key in "
        f'{SCHEMA.lock} {LEDGER.lock}; do psql -tAc "SELECT pg_try_advisory_lock($key)" '
        f'"${{url#--dbname=}}" >>{tmp_path}/free\ndone\nexec {shutil.which("pg_dump")} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program.parent


def fails_at_the_second(tmp_path: Path) -> Path:
    """Return a folder with a pg_restore that works once."""
    program = tmp_path / "once" / "pg_restore"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nmkdir {tmp_path}/used || exec {shutil.which('pg_restore')} --fail\n"
        f'exec {shutil.which("pg_restore")} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program.parent


def test_databases_on_a_server_are_dumped_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg2

    monkeypatch.setenv("DAGSTER_POSTGRES_PASSWORD", PASSWORD)
    url = str(tmp_path / "backups")
    with postgres() as server:
        server.fresh("dagster_old")
        server.fresh("dagster_new")
        old_profile, new_profile = (
            profile_on(tmp_path, server.fresh(f"ledger_{age}"), f"dagster_{age}", server.port)
            for age in ("old", "new")
        )
        old = Settings(Home(tmp_path / "old"), old_profile)
        old.home.make()
        old.ledger.append(
            "install", checkpoint="one", checkpoint_hash="a" * 64, path="one",
            decision={"reasons": []}, run_id="chain-0001", against=None,
        )  # fmt: skip
        place = server.url.removesuffix("postgres")
        with psycopg2.connect(f"{place}dagster_old") as connection:
            connection.cursor().execute("CREATE TABLE runs AS SELECT 'one' AS name")
        connection.close()
        monkeypatch.setenv("PATH", f"{slow_dump(tmp_path)}:{os.environ['PATH']}")
        made = backed_up(old, url).index
        assert (tmp_path / "free").read_text(encoding="utf-8").split() == ["t", "t", "t", "t"]
        assert set(made.databases) == {"ledger", "dagster"}
        with pytest.raises(NotReady, match=r"the profile nothing: give a profile"):
            restored(url, tmp_path / "without")
        new = Settings(Home(tmp_path / "new"), new_profile)
        # A restore that ends between the two databases continues.
        with monkeypatch.context() as broken, pytest.raises(NotReady, match="pg_restore failed"):
            broken.setenv("PATH", f"{fails_at_the_second(tmp_path)}:{os.environ['PATH']}")
            restore(Folder(url), new.home, "", servers(new.profile))
        restore(Folder(url), new.home, "", servers(new.profile))
        assert new.ledger.head() == old.ledger.head()
        with psycopg2.connect(f"{place}dagster_new") as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT name FROM runs")
            assert cursor.fetchall() == [("one",)]
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            assert cursor.fetchall() == [("runs",)]
        connection.close()
        with psycopg2.connect(f"{place}ledger_new") as connection:
            cursor = connection.cursor()
            with pytest.raises(psycopg2.errors.RaiseException, match="append-only"):
                cursor.execute("DELETE FROM promotions")
        connection.close()
        with pytest.raises(NotReady, match="has tables already"):
            restore(Folder(url), Home(tmp_path / "twice"), "", servers(new.profile))


def test_the_restored_champion_answers_as_before(tmp_path: Path) -> None:
    builder, url = HomeBuilder(tmp_path / "old"), str(tmp_path / "backups")
    builder.tiny_champion(["return x plus one"] * 8)
    old = Settings(builder.run_context.home, "small")
    backed_up(old, url)
    champions = [each.ledger.champion() for each in (old, restored(url, tmp_path / "new"))]
    paths = [Path(champion.path) for champion in champions if champion]
    prompt = [{"role": "user", "content": "return x"}]
    first, second = (generate(path, [prompt], Sampling(max_new_tokens=12))[0] for path in paths)
    assert paths[0] != paths[1]
    assert first.text == second.text
