"""Dagster's commands work with the committed `dagster.yaml` and `workspace.yaml`, unflagged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dagster._core.instance.ref import InstanceRef

from pipelines.instance import PATHS, ROOT, instance_settings, prepare
from resources.config.load import load_profile
from resources.home import Home


def test_dagster_in_the_clone_uses_the_history_of_ratchet(tmp_path: Path) -> None:
    ref = InstanceRef.from_dir(str(tmp_path), config_dir=str(ROOT))
    assert ref.storage_data
    assert ref.run_launcher_data
    assert ref.storage_data.config_dict["base_dir"] == ".ratchet/dagster"
    assert Home(Path(".ratchet")).dagster == Path(".ratchet/dagster")
    assert ref.run_launcher_data.class_name == "LocalRunLauncher"
    assert ref.settings["telemetry"] == {"enabled": False}


def test_a_home_gets_the_committed_settings_without_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    folder = prepare(Home(tmp_path), load_profile("embedded").orchestration)
    committed = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    written = yaml.safe_load((folder / "dagster.yaml").read_text(encoding="utf-8"))
    assert written == {key: committed[key] for key in committed if key not in PATHS}


def test_a_profile_overlays_the_run_launcher() -> None:
    settings = instance_settings(load_profile("cluster").orchestration)
    assert settings["run_launcher"]["class"] == "K8sRunLauncher"
    limits = settings["concurrency"]["runs"]["tag_concurrency_limits"]
    assert [limit["key"] for limit in limits] == ["kind"]
    assert settings["telemetry"] == {"enabled": False}


@pytest.mark.slow
def test_dagster_lists_the_jobs_without_a_flag() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    listed = subprocess.run(
        [sys.executable, "-m", "dagster", "job", "list"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Job: full_pipeline" in listed.stdout
