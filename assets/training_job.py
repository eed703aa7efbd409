"""The training job of a pipeline run. In: a stage context and its training rows."""

from __future__ import annotations

from artifacts.store import Artifact
from assets.contestants import start_of
from assets.training_rows import training_of
from assets.verified_reward import OWN_MANAGER, battery_stamp
from resources.run_context import StageContext
from rewards.composite import reward_hash
from verl_jobs.job import TrainingJob


def training_job(stage: StageContext, rows: Artifact) -> TrainingJob:
    """Return the training job.

    Its folder is derived from all inputs and settings of the training, so that another config never
    resumes from these checkpoints.
    """
    profile, record, start = stage.profile, stage.pipeline_run.record, start_of(stage)
    run_context, sandbox = stage.run_context, stage.run_context.sandbox.config(profile)
    job = TrainingJob(
        folder="",
        run_id=record.id,
        start=start.path,
        train=str(rows.path / "train.parquet"),
        validation=str(rows.path / "validation.parquet"),
        inputs={"start": start.content_hash, "training_rows": rows.content_hash}
        | profile.training.plugins.hashes(),
        training=training_of(stage),
        reward=profile.reward,
        reward_hash=reward_hash(profile.reward),
        battery=OWN_MANAGER
        if profile.training.plugins.reward_manager
        else battery_stamp(run_context.home, profile.reward),
        isolation=sandbox.isolation,
        backend=sandbox.backend,
        workers=sandbox.workers,
        packages=sandbox.packages,
        seed=record.seed,
        tracking_uri=run_context.mlflow.uri,
        loggers=tuple(run_context.tracker.loggers),
        store=profile.storage.root,
    )
    return job.model_copy(
        update={"folder": str(stage.pipeline_run.folder / "training" / job.key[:12])}
    )
