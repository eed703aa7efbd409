"""The jobs. Every stage runs in the run's own process; heavy work is a Ray job or a sandbox.

The default partition of `full_pipeline` and `smoke` is the open pipeline run of their home, else
the next one. The default of `evaluate_checkpoint` and `promote` is the newest run. So `dagster job
execute` needs no argument (docs/decisions.md). A partition that the UI, a schedule or a sensor
gives overrides the default.
"""

from collections.abc import Callable
from typing import Any

import dagster as dg
from pydantic import Field

from assets.augmented_problems import augmented_problems
from assets.base_model import base_model
from assets.benchmark_scores import benchmark_scores
from assets.checkpoint import checkpoint
from assets.clean_problems import clean_problems
from assets.contestant_scores import contestant_scores
from assets.deployment import deployment
from assets.difficulty_rankings import difficulty_rankings
from assets.leaderboard import leaderboard
from assets.promotion import promoted_model
from assets.raw_problems import raw_problems
from assets.report import training_report
from assets.sft_checkpoint import sft_checkpoint
from assets.synthetic_problems import synthetic_problems
from assets.verified_problems import verified_problems
from pipelines.history import forget_runs
from pipelines.run_pods import pod_tags
from pipelines.settings import SETTINGS
from resources.home import Home
from resources.registry.ledger import named, previous_of
from resources.registry.ledger_database import LedgerUnreachable
from resources.retention import collecting
from resources.run_context import PARTITION, TRAINING_TAGS, RunContext
from resources.run_record import RunRecords, newest_id, next_id
from resources.services import PROFILE, SUBHOME

SMOKE_HOME = Home(SETTINGS.home.path / "smoke")
SOURCE_ASSETS = (raw_problems, verified_problems, augmented_problems, synthetic_problems)
DATA_ASSETS = (*SOURCE_ASSETS, clean_problems)
PIPELINE_ASSETS = (
    *DATA_ASSETS,
    base_model,
    sft_checkpoint,
    difficulty_rankings,
    checkpoint,
    contestant_scores,
    leaderboard,
    training_report,
    promoted_model,
)


# Parts of messages after which the run stays open: nothing is wrong with the run itself.
NOT_COUNTED = (
    "training already",
    "lost the training lease",
    "taken the training lease over",
    "the training saved and ended",  # the month's budget is spent
    "before this retry was ended",  # its time limit
    "has no partition",
)
LIGHT = pod_tags(SETTINGS.profile, light=True)


def needed(assets: tuple[dg.AssetsDefinition, ...]) -> tuple[dg.AssetsDefinition, ...]:
    """Return the assets that a job runs: no source is read if the profile names a dataset."""
    fetched = bool(SETTINGS.profile.dataset)
    return tuple(asset for asset in assets if not fetched or asset not in SOURCE_ASSETS)


@dg.failure_hook(required_resource_keys={"run_context"})
def record_failure(context: dg.HookContext) -> None:
    """Record the cause in the pipeline run's record. After its second failure, the run ends as
    failed, and the next run starts from the beginning.

    A failed evaluation of the run's checkpoint does not count, nor do the causes NOT_COUNTED.
    """
    run_context: RunContext = context.resources.run_context
    error = context.op_exception
    if isinstance(error, dg.RetryRequested):  # the last retry has failed
        error = error.__cause__
    cause = " ".join(str(error).split())[:500]
    dagster_run = context.instance.get_run_by_id(context.run_id)
    if dagster_run is not None and not any(each in cause for each in NOT_COUNTED):
        run_context.pipeline_run(dagster_run.tags).fail(f"{context.op.name}: {cause}")


def _job(
    name: str, assets: tuple[dg.AssetsDefinition, ...], description: str, run_tags: dict[str, str]
) -> Any:
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.assets(*assets),
        description=description,
        executor_def=dg.in_process_executor,
        hooks=None if run_tags.get("ratchet/kind") in ("evaluation", "score") else {record_failure},
        run_tags=run_tags | pod_tags(SETTINGS.profile),
    )


def _partition(id_of: Callable[[RunRecords], str]) -> dict[str, str]:
    """Return the tag with the run that a job is about by default; none while the database of the
    records is away: the definitions load, and such a run says that it has no partition.
    """
    try:
        return {PARTITION: id_of(SETTINGS.home.runs)}
    except LedgerUnreachable:
        return {}


full_pipeline = _job(
    "full_pipeline",
    needed(PIPELINE_ASSETS),
    "Runs all stages to a decision; resumes the open pipeline run, else starts the next one.",
    run_tags={**TRAINING_TAGS, **_partition(next_id)},
)
smoke = _job(
    "smoke",
    PIPELINE_ASSETS,
    (
        "Runs all stages on a small budget, in a separate home. For CI: `dagster job execute -j "
        "smoke`."
    ),
    run_tags={
        **TRAINING_TAGS,
        PARTITION: next_id(SMOKE_HOME.runs, "smoke"),
        PROFILE: "small",
        SUBHOME: "smoke",
    },
)
prepare = _job(
    "prepare",
    needed(PIPELINE_ASSETS[: PIPELINE_ASSETS.index(checkpoint)]),
    "Runs the stages that several trainings share, for `ratchet train --seeds`.",
    run_tags={"ratchet/kind": "study", PARTITION: "study"},
)
refresh_data = _job(
    "refresh_data",
    needed(DATA_ASSETS),
    "Reads all sources again; verifies and cleans new problems.",
    run_tags={"ratchet/kind": "data"},
)
evaluate_checkpoint = _job(
    "evaluate_checkpoint",
    (contestant_scores, leaderboard),
    (
        "Scores one checkpoint; the partition is its name. Starts automatically for each new "
        "folder in the inbox."
    ),
    run_tags={"ratchet/kind": "evaluation", **_partition(newest_id)},
)
score_benchmark = _job(
    "score_benchmark",
    (benchmark_scores, leaderboard),
    "Scores one stored checkpoint on one benchmark of the profile; the partition names both.",
    run_tags={"ratchet/kind": "score"},
)
promote = _job(
    "promote",
    (promoted_model,),
    "Decides on the promotion of a scored checkpoint; the partition is its name.",
    run_tags={"ratchet/kind": "evaluation", **_partition(newest_id)},
)
deploy = dg.define_asset_job(
    "deploy",
    selection=dg.AssetSelection.assets(deployment),
    description=(
        "Updates the deployed version, and rolls the ledger back after a rollback. Starts "
        "automatically with each release's begin and end."
    ),
    executor_def=dg.in_process_executor,
    run_tags=LIGHT,
)


class RollbackConfig(dg.Config):
    """The options in Dagster's launchpad."""

    reason: str = Field(
        "", description="Recorded in the ledger. Default: the run's tag ratchet/why."
    )
    to: int = Field(0, description="The version to restore; 0: the previous champion.")


@dg.op
def roll_back(
    context: dg.OpExecutionContext, config: RollbackConfig, run_context: RunContext
) -> None:
    """Make the previous champion champion again, and sync MLflow. A retried run rolls back once."""
    # Dagster tags a retried run with its first run.
    root_run_id = context.run.tags.get("dagster/root_run_id") or context.run.run_id
    entry = run_context.ledger.rollback(
        f"rollback-{root_run_id}",
        config.reason or context.run.tags.get("ratchet/why", ""),
        to=config.to or None,
    )
    context.log.info(entry.decision["reasons"][0])
    if sync_problem := run_context.mlflow.try_sync(run_context.ledger):
        context.log.warning(sync_problem)
    context.add_output_metadata(
        {
            "champion": entry.checkpoint,
            "version": entry.version,
            "undone": named(previous_of(run_context.ledger.history())),
            "mlflow": sync_problem or "in sync",
        }
    )


@dg.op
def follow_ledger(context: dg.OpExecutionContext, run_context: RunContext) -> None:
    """Sync MLflow's versions and aliases with the ledger. Fails if MLflow cannot be reached."""
    context.add_output_metadata(
        {"aliases": dg.MetadataValue.json(run_context.mlflow.sync(run_context.ledger))}
    )


@dg.job(
    executor_def=dg.in_process_executor,
    tags=LIGHT,
    description="Restores the previous champion, or a given version.",
)
def rollback() -> None:
    roll_back()


@dg.job(
    executor_def=dg.in_process_executor,
    tags=LIGHT,
    description="Syncs MLflow with the ledger; starts automatically when MLflow is behind.",
)
def tell_mlflow() -> None:
    follow_ledger()


@dg.op
def remove_unnamed(context: dg.OpExecutionContext, run_context: RunContext) -> None:
    """Remove weights, saves and Dagster's records that nothing names any more."""
    with collecting(run_context.home):
        removals = run_context.collect()
        runs = forget_runs(context.instance, run_context.profile.storage.keep_days)
    context.add_output_metadata(
        {
            "gib": sum(each.bytes for each in removals) / 2**30,
            "removed": dg.MetadataValue.json([each.path for each in removals]),
            "dagster_runs": len(runs),
        }
    )


@dg.job(
    executor_def=dg.in_process_executor,
    tags=LIGHT,
    description="Removes what nothing names any more, as `ratchet gc` does.",
)
def clean_up() -> None:
    remove_unnamed()


JOBS = [
    full_pipeline,
    smoke,
    prepare,
    refresh_data,
    evaluate_checkpoint,
    score_benchmark,
    promote,
    deploy,
    rollback,
    tell_mlflow,
    clean_up,
]
