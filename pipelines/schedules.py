"""The schedules: a retraining each night from the current champion, its quick validation each day,
all its benchmarks each week.
"""

import dagster as dg

from assets.partitions import checkpoints
from pipelines.jobs import evaluate_checkpoint, full_chain
from pipelines.settings import SETTINGS
from resources import lease
from resources.run_context import RunContext
from resources.run_record import Kind, next_id


@dg.schedule(
    name="nightly_retraining",
    job=full_chain,
    cron_schedule=SETTINGS.profile.automation.nightly,
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Trains a challenger each night and decides on its promotion; skipped while a training "
        "runs in this home."
    ),
)
def nightly_retraining(
    context: dg.ScheduleEvaluationContext, run_context: RunContext
) -> dg.RunRequest | dg.SkipReason:
    if holder := lease.holder(run_context.home.lease):
        return dg.SkipReason(f"{holder} already trains in this home")
    chain = next_id(run_context.home.runs)
    context.instance.add_dynamic_partitions(str(checkpoints.name), [chain])
    return dg.RunRequest(partition_key=chain, tags={"ratchet/why": "nightly schedule"})


@dg.schedule(
    name="daily_validation",
    job=evaluate_checkpoint,
    cron_schedule=SETTINGS.profile.automation.daily,
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Scores the champion on the validation problems only, as a daily check of its score and "
        "its speed."
    ),
)
def daily_validation(
    context: dg.ScheduleEvaluationContext, run_context: RunContext
) -> dg.RunRequest | dg.SkipReason:
    return _scored(context, run_context, "validation", "daily validation")


@dg.schedule(
    name="weekly_benchmarks",
    job=evaluate_checkpoint,
    cron_schedule=SETTINGS.profile.automation.weekly,
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Scores the champion on validation, a fresh held-out draw and each public benchmark on "
        "this machine."
    ),
)
def weekly_benchmarks(
    context: dg.ScheduleEvaluationContext, run_context: RunContext
) -> dg.RunRequest | dg.SkipReason:
    return _scored(context, run_context, "rescore", "weekly benchmarks")


def _scored(
    context: dg.ScheduleEvaluationContext, run_context: RunContext, kind: Kind, why: str
) -> dg.RunRequest | dg.SkipReason:
    """Request one scoring of the champion; its name allows one a day."""
    champion = run_context.ledger.champion()
    if champion is None:
        return dg.SkipReason("there is no champion yet")
    name = f"{kind}-{champion.checkpoint_hash[:8]}-{context.scheduled_execution_time:%Y-%m-%d}"
    context.instance.add_dynamic_partitions(str(checkpoints.name), [name])
    return dg.RunRequest(
        run_key=name, partition_key=name, tags={"ratchet/why": why, "ratchet/kind": kind}
    )


SCHEDULES = [nightly_retraining, daily_validation, weekly_benchmarks]
