"""Sensor for new checkpoints: folders in the home's inbox."""

import json

import dagster as dg

from assets.partitions import checkpoints
from pipelines.jobs import evaluate_checkpoint
from pipelines.sensors.sensor import sensor
from resources.intake import NoCheckpoint, fingerprint, import_checkpoint, waiting
from resources.run_context import RunContext


@sensor(job=evaluate_checkpoint)
def new_checkpoint(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Copies, hashes and scores a folder in `inbox/` when it has not changed between two ticks;
    once for each content.
    """
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    now: dict[str, str] = {}  # folder -> fingerprint, with " taken" after it was copied
    requests, refused = [], []
    for folder in waiting(run_context.home):
        state, before = fingerprint(folder), seen.get(str(folder))
        now[str(folder)] = state if before not in (state, f"{state} taken") else f"{state} taken"
        if before != state:
            continue  # it may still be written, or has been copied
        try:
            artifact = import_checkpoint(run_context.store, folder)
        except NoCheckpoint as error:
            refused.append(str(error))
            context.log.error(str(error))
            continue
        tags = {"ratchet/why": f"new folder {folder}", "ratchet/kind": "evaluation"}
        requests.append(
            dg.RunRequest(
                run_key=artifact.content_hash, partition_key=artifact.manifest.name, tags=tags
            )
        )
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else "; ".join(refused) or f"{len(now)} folders, no new complete one",
        dynamic_partitions_requests=[
            checkpoints.build_add_request([str(request.partition_key) for request in requests])
        ]
        if requests
        else [],
        cursor=json.dumps(now),
    )
