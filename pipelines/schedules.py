"""The schedule: one retraining a night, from the champion of that moment."""

import dagster as dg

from assets.partitions import checkpoints
from pipelines.jobs import full_chain
from resources import lease
from resources.chain import next_id
from resources.profile import load_profile
from resources.workshop import Workshop


@dg.schedule(
    name="nightly_retraining",
    job=full_chain,
    cron_schedule=load_profile().automation.nightly,
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Trains the next challenger each night and puts it before the gate; passed over while somebody trains in this home.",
)
def nightly_retraining(context: dg.ScheduleEvaluationContext, workshop: Workshop) -> dg.RunRequest | dg.SkipReason:
    if holder := lease.holder(workshop.home.lease):
        return dg.SkipReason(f"{holder} trains")
    chain = next_id(workshop.home.runs)
    context.instance.add_dynamic_partitions(str(checkpoints.name), [chain])
    return dg.RunRequest(partition_key=chain, tags={"ratchet/why": "nightly schedule"})
