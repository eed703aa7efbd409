"""Trainings in verl's loggers: W&B offline and MLflow in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewards.config import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import SWEEP, TrainingJob, metrics

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingJob:
    import wandb

    wandb.teardown()  # it reads its environment once per process
    for name in (
        "VERL_FILE_LOGGER_PATH",
        "WANDB_DIR",
        "WANDB_TAGS",
        "MLFLOW_RUN_CONTEXT",
        "MLFLOW_TRACKING_URI",
        *SWEEP,
    ):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    job_ = TrainingJob(
        folder=str(tmp_path / "job"),
        run_id="chain-0007",
        start="start",
        train="t",
        validation="v",
        inputs={"start": "a" * 64},
        training=Training(algorithm="rloo"),
        reward=RewardConfig(),
        reward_hash="f" * 64,
        battery="b" * 64,
        isolation="auto",
        seed=1007,
        tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}",
    )
    job_.path.mkdir()
    job_.write()
    return job_


def test_both_trackers_get_the_same_name_and_tags(job: TrainingJob) -> None:
    import wandb
    from mlflow import MlflowClient
    from verl.utils.tracking import Tracking

    from verl_jobs.trainer.callback import AfterSave

    # verl's trainer does this before it makes its loggers
    AfterSave(SimpleNamespace(trainer=SimpleNamespace(default_local_dir=str(job.path / "saves"))))
    loggers = Tracking(
        "ratchet", job.run_id, ["file", "mlflow", "wandb"], {"trainer": {"steps": 1}}
    )
    loggers.log({"critic/score/mean": 0.5}, step=1)
    assert wandb.run is not None
    in_wandb = (
        wandb.run.name,
        wandb.run.project,
        dict(tag.split("=", 1) for tag in wandb.run.tags or ()),
    )
    loggers.finish()

    client = MlflowClient(job.tracking_uri)
    [run] = client.search_runs(
        [
            experiment.experiment_id
            for experiment in client.search_experiments(filter_string="name = 'ratchet'")
        ]
    )
    ours = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    assert in_wandb == ("chain-0007", "ratchet", job.tags)
    assert (run.info.run_name, ours) == (
        "chain-0007",
        job.tags,
    )
    assert job.tags["algorithm"] == "rloo"
    assert job.tags["seed"] == "1007"
    assert [row["critic/score/mean"] for row in metrics(job.path)] == [0.5]
    [offline] = (job.path / "wandb").glob("offline-run-*/*.wandb")
    assert offline.stat().st_size > 0
    assert json.loads(os.environ["MLFLOW_RUN_CONTEXT"]) == job.tags


def test_a_training_of_a_sweep_joins_the_run_of_its_agent(
    job: TrainingJob,
) -> None:
    import wandb
    from verl.utils.tracking import Tracking

    from verl_jobs.trainer.callback import AfterSave

    (job.path / "sweep.json").write_text(
        json.dumps({"WANDB_SWEEP_ID": "sweep1", "WANDB_RUN_ID": "run00007"})
    )
    AfterSave(SimpleNamespace(trainer=SimpleNamespace(default_local_dir=str(job.path / "saves"))))
    loggers = Tracking("ratchet", job.run_id, ["wandb"], {"trainer": {"steps": 1}})
    assert wandb.run is not None
    joined = wandb.run.id, wandb.run.sweep_id
    loggers.finish()
    assert joined == ("run00007", "sweep1")
