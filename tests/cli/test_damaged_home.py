"""A damaged file of a home costs what it describes, and is named in one line with the fix."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.home import Home
from resources.run_record import PipelineRun
from tests.cli.conftest import Called
from tests.finished_home import fill_ledger, write_home
from tests.open_runs import damage_record, open_test_run

COMMANDS = (
    "status",
    "status --provenance",
    "jobs list",
    "jobs show",
    "jobs show chain-0001",
    "jobs logs",
    "jobs profile",
    "jobs watch",
    "draws",
    "draws --step 2",
    "samples",
    "registry verify",
    "explain 1",
    "provenance",
    "provenance chain-0001--heldout",
    "card",
    "failures chain-0001--heldout",
    "quality",
    "compare chain-0001 chain-0001-sft",
    "data show",
    "data diff",
    "data limits",
)
FILES = (
    "records.db",
    "runs/chain-0001/training/*/job.json",
    "runs/chain-0001/training/*/done.json",
    "runs/chain-0001/training/*/metrics-001.jsonl",
    "runs/chain-0001/training/*/samples/step-000002.jsonl",
    "promotions.db",
    "sources.json",
    "limits.json",
    "batteries/5*.json",
    "scores/chain-0001--heldout/*/scorecard.json",
    "scores/chain-0001--validation/current.json",
    "scores/chain-0001/*/manifest.json",
    "scores/chain-0001--heldout/*/manifest.json",
    "datasets/clean_problems/*/problems.parquet",
    "datasets/clean_problems/*/manifest.json",
    "datasets/augmented_problems/current.json",
    "checkpoints/base_model/*/manifest.json",
)


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def emptied(content: bytes) -> bytes:
    return b""


def other_text(content: bytes) -> bytes:
    return b"{{{ \xff\n"


def other_json(content: bytes) -> bytes:
    return b'{"a": 1}\n'


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_home(tmp_path_factory.mktemp("original"))
    (folder / "limits.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture
def home(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(original, tmp_path / "home")
    fill_ledger(Home(folder))
    return folder


def damage(home: Path, pattern: str, change: Callable[[bytes], bytes] = cut_off) -> Path:
    [path] = home.glob(pattern)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("change", [cut_off, other_json])
def test_no_command_fails_without_naming_the_file(
    ratchet: Called, home: Path, change: Callable[[bytes], bytes]
) -> None:
    before = {command: run(ratchet, home, command)[0] for command in COMMANDS}
    for pattern in FILES:
        [path] = home.glob(pattern)
        content = path.read_bytes()
        damage(home, pattern, change)
        for command, code_before in before.items():
            code, errors = run(ratchet, home, command)
            assert all(line.startswith("error: ") for line in errors), (command, errors)
            named = any(str(path) in line for line in errors)
            assert code == code_before or named, (pattern, command, errors)
        path.write_bytes(content)


def run(ratchet: Called, home: Path, command: str) -> tuple[object, list[str]]:
    code, _, errors = ratchet(home, *command.split())
    return code, errors.splitlines()


@pytest.mark.parametrize("command", ["jobs show", "jobs show chain-0001"])
def test_a_training_whose_record_is_damaged_is_named(
    ratchet: Called, home: Path, command: str
) -> None:
    path = damage_record(Home(home).runs, "chain-0001")
    code, _, errors = ratchet(home, *command.split())
    assert code == 2
    assert errors.startswith(f"error: {path}: cannot be read")


@pytest.mark.parametrize("command", ["draws", "samples", "jobs logs", "jobs profile"])
def test_a_damaged_record_does_not_cost_the_files_of_its_training(
    ratchet: Called, home: Path, command: str
) -> None:
    intact = ratchet(home, *command.split(), "chain-0001")
    damage_record(Home(home).runs, "chain-0001")
    assert ratchet(home, *command.split(), "chain-0001") == intact


def test_the_other_trainings_are_listed(ratchet: Called, home: Path) -> None:
    runs = Home(home).runs
    open_test_run(runs, "chain-0002")
    record = damage_record(runs, "chain-0002")
    job = damage(home, "runs/chain-0001/training/*/job.json")
    code, output, errors = ratchet(home, "jobs", "list")
    assert code == 2
    assert "chain-0001" in output
    assert all(f"error: {path}: cannot be read" in errors for path in (record, job))


def test_the_other_steps_are_listed(ratchet: Called, home: Path) -> None:
    path = damage(home, "runs/*/training/*/samples/step-000002.jsonl")
    code, output, errors = ratchet(home, "draws")
    assert code == 2
    assert "\n    1  " in output
    assert str(path) in errors


@pytest.mark.parametrize(
    "pattern", ["promotions.db", "datasets/clean_problems/current.json", "limits.json"]
)
def test_the_status_shows_everything_else(ratchet: Called, home: Path, pattern: str) -> None:
    path = damage(home, pattern, other_text)
    code, output, errors = ratchet(home, "status")
    assert code == 2
    assert "chain-0001  done" in output
    assert str(path) in errors
    assert errors.count("\n") == 1


def test_the_other_datasets_are_shown(ratchet: Called, home: Path) -> None:
    path = damage(home, "datasets/augmented_problems/*/problems.parquet")
    code, output, errors = ratchet(home, "data", "show")
    assert code == 2
    assert "clean_problems" in output
    assert "augmented_problems" not in output
    assert errors.startswith(f"error: {path}: ")
    assert errors.count("\n") == 1


def test_the_other_scores_are_shown(ratchet: Called, home: Path) -> None:
    path = damage(home, "scores/chain-0001--heldout/*/scorecard.json")
    code, output, errors = ratchet(home, "quality")
    assert code == 2
    assert "validation" in output
    assert str(path) in errors


def test_a_comparison_reads_only_the_scores_that_it_compares(ratchet: Called, home: Path) -> None:
    command = ("compare", "chain-0001", "chain-0001-sft")
    intact = ratchet(home, *command)
    damage(home, "scores/chain-0001--validation/*/scorecard.json")
    assert ratchet(home, *command) == intact


def test_a_manifest_elsewhere_does_not_cost_the_provenance(ratchet: Called, home: Path) -> None:
    _, intact, _ = ratchet(home, "provenance", "1")
    path = damage(home, "datasets/difficulty_rankings/*/manifest.json")
    code, output, errors = ratchet(home, "provenance", "1")
    assert (code, output) == (2, intact)
    assert str(path) in errors


@pytest.mark.parametrize("command", ["registry", "train"])
def test_a_damaged_mlflow_file_is_named(ratchet: Called, home: Path, command: str) -> None:
    path = home / "mlflow.db"
    path.write_text("no database", encoding="utf-8")
    code, _, errors = ratchet(home, command)
    assert code == (1 if command == "registry" else 2)
    assert f"{path} is damaged (file is not a database): restore it" in errors
    assert errors.count("\n") == 1


def test_a_folder_in_place_of_a_file_is_named(ratchet: Called, home: Path) -> None:
    [path] = home.glob("runs/chain-0001/training/*/job.json")
    path.unlink()
    path.mkdir()
    code, _, errors = ratchet(home, "jobs", "show")
    assert code == 2
    assert errors.startswith(f"error: {path}: Is a directory: ")


def test_an_emptied_ledger_makes_no_first_champion(ratchet: Called, home: Path) -> None:
    PipelineRun(Home(home).runs, "chain-0001").change(decision="refuse")
    path = damage(home, "promotions.db", emptied)
    for command in (["explain", "1"], ["registry"], ["train"], ["rollback"]):
        code, _, errors = ratchet(home, *command)
        assert code == 2
        assert f"error: {path}: the ledger has no entry, but chain-0001" in errors
