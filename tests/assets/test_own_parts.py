"""A passport names the user's plug-ins."""

from __future__ import annotations

import json
from pathlib import Path

from artifacts.hashing import hash_data, hash_file
from artifacts.manifest import Manifest
from assets.training_job import training_job
from resources.home import Home
from resources.model_version import ModelVersion
from resources.progress import Progress
from resources.run_context import RunContext, StageContext
from resources.settings import Settings
from resources.stage_report import StageReport
from tests.open_runs import open_test_run
from verl_jobs.job import TrainingJob


def job(folder: Path, training: str) -> TrainingJob:
    """Make the training job of a run that starts from a champion."""
    profile = folder / "profile.yaml"
    profile.write_text(
        f"reward: {{kind: random}}\ntraining: {{plugins: {training}}}\n", encoding="utf-8"
    )
    run_context = RunContext.of(Settings(Home(folder / "home"), str(profile)))
    champion = ModelVersion(checkpoint="before", content_hash="c", path="before")
    pipeline_run = open_test_run(run_context.home.runs, "chain-0001", champion=champion)
    stage = StageContext(
        run_context, pipeline_run, StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    )
    with stage.store.draft("datasets", "training_rows") as rows:
        (rows / "train.parquet").write_bytes(b"rows")
        rows_artifact = stage.store.publish(
            rows,
            Manifest(kind="datasets", name="training_rows", key=hash_data("rows"), content_hash=""),
        )
    return training_job(stage, rows_artifact)


def test_a_changed_plugin_file_is_another_training(
    tmp_path: Path,
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def loss(): ...\n")
    named = json.dumps({"loss": f"{mine}:loss"})
    before = job(tmp_path, named)
    assert before.inputs["plugins.loss"] == hash_file(mine)
    mine.write_text("def loss(): return 1\n")
    after = job(tmp_path, named)
    assert after.inputs["plugins.loss"] == hash_file(mine) != before.inputs["plugins.loss"]
    assert after.key != before.key
    assert after.folder != before.folder


def test_a_custom_reward_manager_is_marked_as_unverified(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Manager: ...\n")
    assert job(
        tmp_path, json.dumps({"reward_manager": f"{tmp_path / 'mine.py'}:Manager"})
    ).battery.startswith("unverified")
    assert not job(tmp_path, "{}").battery.startswith("unverified")
