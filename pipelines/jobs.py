"""The jobs. Every stage runs in the run's own process; heavy work is a Ray job or a sandbox.

The default partition of `full_chain` and `smoke` is the open run of their home, or the next one;
that of `evaluate_checkpoint` and `promote` is the newest (docs/decisions.md). So `smoke` needs no
argument in `dagster job execute`; a key from the UI, a schedule or a sensor overrides the default.
"""

from typing import Any

import dagster as dg
from pydantic import Field

from assets.augmented_problems import augmented_problems
from assets.base_model import base_model
from assets.checkpoint import checkpoint
from assets.clean_problems import clean_problems
from assets.difficulty_rankings import difficulty_rankings
from assets.evaluation import benchmark_scores, leaderboard
from assets.promotion import promoted_model
from assets.raw_problems import raw_problems
from assets.report import training_report
from assets.sft_checkpoint import sft_checkpoint
from assets.synthetic_problems import synthetic_problems
from assets.verified_problems import verified_problems
from pipelines.settings import SETTINGS
from resources.home import Home
from resources.run_context import PARTITION, PROFILE, SUBHOME, RunContext
from resources.run_record import newest_id, next_id

SMOKE_HOME = Home(SETTINGS.home.path / "smoke")
TRAINS = {"kind": "train"}
DATA = (raw_problems, verified_problems, augmented_problems, synthetic_problems, clean_problems)
CHAIN = (
    *DATA,
    base_model,
    sft_checkpoint,
    difficulty_rankings,
    checkpoint,
    benchmark_scores,
    leaderboard,
    training_report,
    promoted_model,
)


@dg.failure_hook(required_resource_keys={"run_context"})
def remember_failure(context: dg.HookContext) -> None:
    """Write the cause into the run's record. After the second failure the run is given up, and the
    next one starts afresh.

    A failed evaluation of its checkpoint does not count as a failure of the run.
    """
    run_context: RunContext = context.resources.run_context
    cause = " ".join(str(context.op_exception).split())[:500]
    run = context.instance.get_run_by_id(context.run_id)
    if run is not None and "training already" not in cause and "has no partition" not in cause:
        run_context.pipeline_run(run.tags).fail(f"{context.op.name}: {cause}")


def _job(
    name: str, assets: tuple[dg.AssetsDefinition, ...], description: str, run_tags: dict[str, str]
) -> Any:
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.assets(*assets),
        description=description,
        executor_def=dg.in_process_executor,
        hooks=None if run_tags.get("ratchet/kind") == "evaluation" else {remember_failure},
        run_tags=run_tags,
    )


full_chain = _job(
    "full_chain",
    CHAIN,
    "Raw problems to a decision: the open chain gone on with, or the next one.",
    run_tags={**TRAINS, PARTITION: next_id(SETTINGS.home.runs)},
)
smoke = _job(
    "smoke",
    CHAIN,
    (
        "The real chain on a test's budget, in a home of its own: for CI, by `dagster job execute "
        "-j smoke`."
    ),
    run_tags={
        **TRAINS,
        PARTITION: next_id(SMOKE_HOME.runs, "smoke"),
        PROFILE: "small",
        SUBHOME: "smoke",
    },
)
prepare = _job(
    "prepare",
    CHAIN[: CHAIN.index(checkpoint)],
    "What several trainings share before they train: `ratchet train --seeds` runs it.",
    run_tags={"ratchet/kind": "study", PARTITION: "study"},
)
refresh_data = _job(
    "refresh_data",
    DATA,
    "Reads all sources again, verifies and cleans what is new.",
    run_tags={"ratchet/kind": "data"},
)
evaluate_checkpoint = _job(
    "evaluate_checkpoint",
    (benchmark_scores, leaderboard),
    (
        "Scores one checkpoint; its partition is its name. A folder put into the inbox comes here "
        "by itself."
    ),
    run_tags={"ratchet/kind": "evaluation", PARTITION: newest_id(SETTINGS.home.runs)},
)
promote = _job(
    "promote",
    (promoted_model,),
    "Puts a scored checkpoint before the gate; its partition is the checkpoint's name.",
    run_tags={"ratchet/kind": "evaluation", PARTITION: newest_id(SETTINGS.home.runs)},
)


class Rollback(dg.Config):
    """Shown in the launchpad; all of it may be left out."""

    reason: str = Field(
        "", description="Kept in the ledger; the run's tag ratchet/why says it too."
    )
    to: int = Field(0, description="The version to go back to; 0 is the one before the champion.")


@dg.op
def roll_back(context: dg.OpExecutionContext, config: Rollback, run_context: RunContext) -> None:
    """Make the previous champion champion again, and sync MLflow. A repeated run undoes nothing
    twice.
    """
    first = (
        context.run.tags.get("dagster/root_run_id") or context.run.run_id
    )  # Dagster tags what it starts again
    entry = run_context.ledger.rollback(
        f"rollback-{first}",
        config.reason or context.run.tags.get("ratchet/why", ""),
        to=config.to or None,
    )
    context.log.info(entry.decision["reasons"][0])
    if behind := run_context.registry.follow(run_context.ledger):
        context.log.warning(behind)
    undone = entry.decision["undone_checkpoint"]
    context.add_output_metadata(
        {
            "champion": entry.checkpoint,
            "version": entry.version,
            "undone": undone,
            "mlflow": behind or "says the same",
        }
    )


@dg.op
def follow_ledger(context: dg.OpExecutionContext, run_context: RunContext) -> None:
    """Sync MLflow's versions and aliases with the ledger; fails with the reason if MLflow cannot be
    reached.
    """
    context.add_output_metadata(
        {"aliases": dg.MetadataValue.json(run_context.registry.project(run_context.ledger))}
    )


@dg.job(
    executor_def=dg.in_process_executor,
    description="Takes the last promotion back, or all since a version.",
)
def rollback() -> None:
    roll_back()


@dg.job(
    executor_def=dg.in_process_executor,
    description="Makes MLflow say what the ledger says; starts by itself where it does not.",
)
def tell_mlflow() -> None:
    follow_ledger()


JOBS = [
    full_chain,
    smoke,
    prepare,
    refresh_data,
    evaluate_checkpoint,
    promote,
    rollback,
    tell_mlflow,
]
