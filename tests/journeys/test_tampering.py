"""Every file of a home that was changed is noticed by name, by the command that shows it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact, hashes_of
from artifacts.manifest import Manifest
from artifacts.store import manifests
from resources.home import Home
from resources.registry.ledger import Ledger

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "tests" / "homes" / "first.tar.xz"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with one decided run, as this version publishes it: manifests list the files,
    and pointers name the manifests.
    """
    folder = tmp_path_factory.mktemp("original")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    store = Home(folder).store()
    for kind in ("datasets", "checkpoints", "scores", "reports"):
        for path in manifests(folder / kind):
            manifest = Manifest.model_validate_json(path.read_text(encoding="utf-8"))
            listed = manifest.model_copy(update={"files": hashes_of(path.parent)})
            path.write_text(listed.model_dump_json(), encoding="utf-8")
            pointer = path.parent.parent / "current.json"
            text = pointer.read_text(encoding="utf-8") if pointer.exists() else "{}"
            if json.loads(text).get("key") == manifest.key:
                store.point(listed)
    return folder


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(original, tmp_path / "home"))


def flip(path: Path) -> None:
    """Change one byte in the middle of a file; size and time stay."""
    content, about = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def accept_all(path: Path) -> None:
    """Set every verdict of a scorecard to AC, by an editor that knows the format."""
    card = json.loads(path.read_text(encoding="utf-8"))
    card.pop("sha256", None)
    for sample in card["samples"]:
        sample["verdict"] = "AC"
    path.write_text(json.dumps(card, indent=1), encoding="utf-8")


def test_every_changed_file_of_every_artifact_is_named(home: Home) -> None:
    store, looked_at = home.store(), 0
    for kind in ("datasets", "scores", "reports"):
        for name in store.names(kind):
            if (artifact := store.current(kind, name)) is None:
                continue
            for path in [p for p in artifact.path.rglob("*") if p.is_file() and p.stat().st_size]:
                content = path.read_bytes()
                flip(path)
                with pytest.raises(CorruptArtifact, match=path.name):
                    store.require(kind, name)
                path.write_bytes(content)
                store.require(kind, name)
                looked_at += 1
    assert looked_at > 30


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "change", "command"),
    [
        ("datasets/clean_problems/*/contamination.json", flip, ["provenance", "chain-0001"]),
        ("datasets/clean_problems/*/problems.parquet", flip, ["data", "show"]),
        ("datasets/augmented_problems/*/problems.parquet", flip, ["provenance", "chain-0001"]),
        (
            "scores/chain-0001--heldout/*/scorecard.json",
            accept_all,
            ["failures", "chain-0001--heldout"],
        ),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, ["compare", "chain-0001"]),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, ["card", "2"]),
        ("scores/chain-0001--heldout/*/scorecard.json", accept_all, ["provenance", "chain-0001"]),
        ("scores/chain-0001--heldout/*/manifest.json", flip, ["quality", "chain-0001--heldout"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_the_command_that_reads_a_changed_file_names_it(
    home: Home, pattern: str, change: Callable[[Path], None], command: list[str]
) -> None:
    [path] = home.path.glob(pattern)
    change(path)
    assert_refused(home, path.name, command)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["status"], ["registry", "verify"], ["explain", "1"]])
def test_a_changed_entry_of_the_ledger_is_named(home: Home, command: list[str]) -> None:
    ledger = Ledger(home.ledger)
    first = ledger.history()[0]
    ledger.append(
        "refuse",
        checkpoint="x",
        checkpoint_hash="x",
        path="x",
        decision={"reasons": []},
        chain="chain-0009",
        against=first.checkpoint_hash,
    )
    with sqlite3.connect(home.ledger) as connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("UPDATE promotions SET kind = 'promote' WHERE entry = 2")
    assert_refused(home, "entry 2", command)


def assert_refused(home: Home, named: str, command: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "cli.main", *command],
        capture_output=True,
        text=True,
        env={"RATCHET_HOME": str(home.path), "RATCHET_PROFILE": "small", "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
    )
    assert ran.returncode == 2 and named in ran.stderr, (ran.stdout, ran.stderr)
    assert len(ran.stderr.strip().splitlines()) == 1


def test_no_statement_replaces_a_recorded_entry(home: Home) -> None:
    columns = "kind, version, checkpoint, checkpoint_hash, path, predecessor, decision, chain"
    ledger = Ledger(home.ledger)
    history = ledger.history()
    ledger.append(
        "refuse",
        checkpoint="x",
        checkpoint_hash="x",
        path="x",
        decision={"reasons": []},
        chain="chain-0009",
        against=history[0].checkpoint_hash,
    )
    with (
        sqlite3.connect(home.ledger) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(
            f"INSERT OR REPLACE INTO promotions (entry, {columns}, created_at) "
            f"SELECT entry, 'promote', {columns.partition(', ')[2]}, created_at FROM promotions "
            "WHERE entry = 2"
        )
    assert [entry.kind for entry in ledger.history()][:2] == [entry.kind for entry in history][:2]
