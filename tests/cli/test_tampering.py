"""A command names each changed file of a home that it reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from artifacts.integrity import CorruptArtifact
from cli.registry import verify
from resources.home import Home
from resources.registry.ledger import Ledger, LedgerChanged
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.regressions import BadLine
from resources.settings import Settings
from tests.cli.conftest import Called
from tests.finished_home import fill_ledger, members, write_home


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_home(tmp_path_factory.mktemp("original"))


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Home:
    """Return a copy whose ledger has an installed champion and a refused challenger."""
    home = Home(shutil.copytree(original, tmp_path / "home"))
    fill_ledger(home)
    return home


def flip(path: Path) -> None:
    """Change one byte in the middle of a file, but neither its size nor its time."""
    content, stat = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def accept_all(path: Path) -> None:
    """Set every verdict of a scorecard to AC and remove its seal."""
    card = json.loads(path.read_text(encoding="utf-8"))
    card.pop("sha256", None)
    for sample in card["samples"]:
        sample["verdict"] = "AC"
    path.write_text(json.dumps(card, indent=1), encoding="utf-8")


def test_the_registrys_verification_names_every_changed_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    for name in members(home.path):
        path = home.path / name
        content = path.read_bytes()
        flip(path)
        with pytest.raises(CorruptArtifact, match=re.escape(str(path))):
            verify(Settings.read(), Console(quiet=True))
        path.write_bytes(content)
    assert verify(Settings.read(), Console(quiet=True)) == 0


@pytest.mark.parametrize(("table", "text"), [("runs", "record"), ("lost_tasks", "line")])
def test_the_registrys_verification_names_a_changed_record(
    home: Home, table: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    with closing(sqlite3.connect(home.records)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {text} = replace({text}, '1', '2')")
    with pytest.raises((CorruptArtifact, BadLine), match=re.escape(str(home.records))):
        verify(Settings.read(), Console(quiet=True))


@pytest.mark.parametrize("name", ["datasets/clean_problems", "checkpoints/sft_checkpoint"])
def test_the_registrys_verification_names_what_was_removed(
    home: Home, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    shutil.rmtree(home.path / name)
    with pytest.raises(CorruptArtifact, match=Path(name).name):
        verify(Settings.read(), Console(quiet=True))


def test_every_file_of_a_home_is_tampered_with(home: Home) -> None:
    files = {path for path in home.path.rglob("[!.]*") if path.is_file() and path.stat().st_size}
    others = {path.relative_to(home.path).as_posix() for path in files} - {*members(home.path)}
    assert others == {"format", "promotions.db", "records.db", "sources.json"}


@pytest.mark.slow
def test_a_flipped_byte_of_the_ledger_is_named_or_is_never_read(home: Home) -> None:
    file = home.path / "promotions.db"
    content = file.read_bytes()
    written = Ledger(home.ledger).history()
    noticed = 0
    name = content.index(b"tablepromotions") + len("table")  # a ledger of another name is empty
    for at in [name, *range(0, len(content), 31)]:
        damaged = bytearray(content)
        damaged[at] ^= 1
        file.write_bytes(damaged)
        try:
            ledger = Ledger(home.ledger)
            ledger.check_file()
            assert ledger.history() == written, at
        except (LedgerChanged, LedgerUnreachable) as error:
            assert str(home.ledger) in str(error)
            noticed += 1
    assert noticed > 20


def test_a_published_artifact_is_named_when_it_is_required(home: Home) -> None:
    store = home.store()
    for name in members(home.path):
        if not name.startswith(("datasets", "checkpoints")):
            continue
        kind, artifact = name.split("/")[:2]
        content = (home.path / name).read_bytes()
        flip(home.path / name)
        with pytest.raises(CorruptArtifact, match=re.escape(name)):
            store.require(kind, artifact)
        (home.path / name).write_bytes(content)
        store.require(kind, artifact)


@pytest.mark.parametrize("damage", ["{", "a wrong hash"])
def test_damaged_cached_hashes_are_computed_again(home: Home, damage: str) -> None:
    store = home.store()
    artifact = store.require("datasets", "clean_problems")
    cache = artifact.path.with_name(f".{artifact.path.name}.files.json")
    hashes = json.loads(cache.read_text(encoding="utf-8"))
    hashes["suspects.json"][-1] = damage
    cache.write_text(damage if damage == "{" else json.dumps(hashes), encoding="utf-8")
    assert store.require("datasets", "clean_problems") == artifact


def test_an_added_or_removed_file_is_named(home: Home) -> None:
    store = home.store()
    folder = store.require("datasets", "clean_problems").path
    (folder / "extra.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CorruptArtifact, match=r"extra\.json: was added"):
        store.require("datasets", "clean_problems")
    (folder / "extra.json").unlink()
    (folder / "suspects.json").unlink()
    with pytest.raises(CorruptArtifact, match=r"suspects\.json: is missing"):
        store.require("datasets", "clean_problems")


@pytest.mark.parametrize(
    ("pattern", "change", "command"),
    [
        ("datasets/clean_problems/*/contamination.json", flip, "provenance chain-0001"),
        ("datasets/clean_problems/*/problems.parquet", flip, "data show"),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, "failures chain-0001--heldout"),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, "compare chain-0001"),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, "card 2"),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, "provenance chain-0001"),
        ("scores/chain-0001--heldout/*/manifest.json", flip, "quality chain-0001--heldout"),
        ("checkpoints/chain-0001/*/model.safetensors", flip, "provenance chain-0001"),
        ("checkpoints/base_model/*/manifest.json", flip, "card 2"),
        ("checkpoints/chain-0001/current.json", flip, "promote chain-0001"),
    ],
    ids=lambda value: value if isinstance(value, str) and "*" not in value else None,
)
def test_the_command_that_reads_a_changed_file_names_it(
    ratchet: Called, home: Home, pattern: str, change: Callable[[Path], None], command: str
) -> None:
    [path] = home.path.glob(pattern)
    change(path)
    assert_refused(ratchet, home, path.name, command)


@pytest.mark.parametrize("command", ["status", "registry verify", "explain 1"])
def test_a_changed_entry_of_the_ledger_is_named(ratchet: Called, home: Home, command: str) -> None:
    with sqlite3.connect(home.ledger) as connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("UPDATE promotions SET kind = 'promote' WHERE entry = 2")
    assert_refused(ratchet, home, "entry 2", command)


def assert_refused(ratchet: Called, home: Home, name: str, command: str) -> None:
    """Assert that the command fails with one line that contains the name."""
    code, output, errors = ratchet(home.path, *command.split())
    assert code == 2, output
    assert name in errors
    assert len(errors.strip().splitlines()) == 1


def test_no_statement_replaces_a_recorded_entry(home: Home) -> None:
    columns = "kind, version, checkpoint, checkpoint_hash, path, predecessor, decision, run_id"
    ledger = Ledger(home.ledger)
    history = ledger.history()
    with (
        sqlite3.connect(home.ledger) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(
            f"INSERT OR REPLACE INTO promotions (entry, {columns}, created_at) "
            f"SELECT entry, 'promote', {columns.partition(', ')[2]}, created_at FROM promotions "
            "WHERE entry = 2"
        )
    assert ledger.history() == history
