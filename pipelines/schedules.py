"""The schedules: a retraining each night, a validation of the champion and a clean-up each day, and
the champion's score on all benchmarks each week. The one that trains is off until it is switched
on, as such sensors are.
"""

import dagster as dg

from assets.partitions import checkpoints
from pipelines.jobs import clean_up, evaluate_checkpoint, full_pipeline
from pipelines.settings import SETTINGS
from resources import lease
from resources.cost import check_budget
from resources.home import NotReady
from resources.run_context import RunContext
from resources.run_record import Kind, next_id

CRON = SETTINGS.profile.automation
RUNNING, STOPPED = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED


@dg.schedule(
    job=full_pipeline,
    cron_schedule=CRON.nightly,
    execution_timezone="UTC",
    default_status=RUNNING if CRON.retrain else STOPPED,
    description=(
        "Starts a training. Trains a challenger each night and decides on its promotion; skipped "
        "while a training runs in this home."
    ),
)
def nightly_retraining(
    context: dg.ScheduleEvaluationContext, run_context: RunContext
) -> dg.RunRequest | dg.SkipReason:
    if holder := lease.holder(run_context.home.lease):
        return dg.SkipReason(f"{holder} already trains in this home")
    needs = run_context.profile.needs
    try:
        check_budget(run_context.as_settings, context.scheduled_execution_time)
        run_context.home.check_capacity(disk_gib=needs.disk_gib, memory_gib=needs.memory_gib)
    except NotReady as refusal:
        return dg.SkipReason(str(refusal))
    run_id = next_id(run_context.home.runs)
    context.instance.add_dynamic_partitions(str(checkpoints.name), [run_id])
    tags = {"ratchet/why": "nightly schedule", **run_context.time_limit}
    return dg.RunRequest(partition_key=run_id, tags=tags)


def champion_schedule(name: str, cron: str, kind: Kind, description: str) -> dg.ScheduleDefinition:
    """Return a schedule that scores the champion, at most once a day."""

    @dg.schedule(
        name=name,
        job=evaluate_checkpoint,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=RUNNING,
        description=description,
    )
    def score_champion(
        context: dg.ScheduleEvaluationContext, run_context: RunContext
    ) -> dg.RunRequest | dg.SkipReason:
        champion = run_context.ledger.champion()
        if champion is None:
            return dg.SkipReason("there is no champion yet")
        key = f"{kind}-{champion.checkpoint_hash[:8]}-{context.scheduled_execution_time:%Y-%m-%d}"
        context.instance.add_dynamic_partitions(str(checkpoints.name), [key])
        tags = {"ratchet/why": name.replace("_", " "), "ratchet/kind": kind}
        return dg.RunRequest(run_key=key, partition_key=key, tags=tags)

    return score_champion


daily_validation = champion_schedule(
    "daily_validation",
    CRON.daily,
    "validation",
    "Only scores. The champion on the validation problems, to check its score and speed.",
)
weekly_benchmarks = champion_schedule(
    "weekly_benchmarks",
    CRON.weekly,
    "rescore",
    "Only scores. The champion on validation, a fresh held-out draw and each benchmark of the "
    "profile.",
)
daily_clean_up = dg.ScheduleDefinition(
    name="daily_clean_up",
    job=clean_up,
    cron_schedule=CRON.clean_up,
    execution_timezone="UTC",
    default_status=RUNNING,
    description=("Trains nothing. Removes old weights, saves and records, as `ratchet gc` does."),
)
SCHEDULES = [nightly_retraining, daily_validation, weekly_benchmarks, daily_clean_up]
