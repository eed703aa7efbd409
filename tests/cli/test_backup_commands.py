"""`ratchet backup` and `ratchet restore`, as an operator calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Called
from tests.finished_home import RUN, WEIGHTS
from tests.resources.backup.made import decided_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return decided_home(tmp_path / "a home").home.path


def test_a_restored_home_verifies_and_has_the_same_versions(
    ratchet: Called, home: Path, tmp_path: Path
) -> None:
    new, url = tmp_path / "new", str(tmp_path / "backups")
    code, output, _ = ratchet(home, "backup", url)
    assert (code, "champion sft_checkpoint" in output) == (0, True)
    assert ratchet(new, "restore", url, "--dry-run")[0] == 0
    assert not new.exists()
    assert ratchet(new, "restore", url)[0] == 0
    assert ratchet(new, "registry", "verify")[0] == 0
    old, restored = (json.loads(ratchet(each, "registry", "--json")[1]) for each in (home, new))
    assert [row | {"path": ""} for row in old] == [row | {"path": ""} for row in restored]


def test_the_head_of_a_backup_is_that_of_the_ledger(
    ratchet: Called, home: Path, tmp_path: Path
) -> None:
    head = ratchet(home, "registry", "head")[1].strip()
    made = json.loads(ratchet(home, "backup", str(tmp_path / "backups"), "--json")[1])
    assert made["ledger"] == head


def test_one_file_is_put_back(ratchet: Called, home: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "backups")
    ratchet(home, "backup", url)
    [path] = home.glob(f"checkpoints/{RUN}/*/{WEIGHTS}")
    path.write_text("damaged", encoding="utf-8")
    assert ratchet(home, "registry", "verify")[0] == 2
    code, output, _ = ratchet(home, "restore", url, str(path))
    assert (code, output.split()) == (0, ["restored", *str(path).split()])
    assert ratchet(home, "registry", "verify")[0] == 0


@pytest.mark.parametrize("as_path", [True, False])
def test_a_file_without_the_place_of_the_backups_is_no_place(
    ratchet: Called, home: Path, as_path: bool
) -> None:
    name = str(home / "promotions.db") if as_path else "promotions.db"
    code, _, errors = ratchet(home, "restore", name)
    assert code == 2
    assert f"`ratchet restore URL {name}`" in errors


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_without_a_place_the_setting_is_named(ratchet: Called, home: Path, command: str) -> None:
    code, _, errors = ratchet(home, command)
    assert code == 2
    assert "storage.backup" in errors


def test_a_home_in_use_is_not_overwritten(ratchet: Called, home: Path, tmp_path: Path) -> None:
    ratchet(home, "backup", str(tmp_path / "backups"))
    code, _, errors = ratchet(home, "restore", str(tmp_path / "backups"))
    assert code == 2
    assert "is not empty" in errors


def test_what_no_backup_has_is_named(
    ratchet: Called, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_SET", "storage.mlflow=http://127.0.0.1:1")
    code, output, _ = ratchet(home, "backup", str(tmp_path / "backups"))
    assert (code, "Not in it: MLflow's runs on http://127.0.0.1:1" in output) == (0, True)
