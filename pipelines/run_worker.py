"""The process that executes one job for the command line: recorded in Dagster like any run, and
ended with the command.

`python -m pipelines.run_worker JOB PARTITION PARENT_PID [WHY]` exits 0 on success, 3 if another
process trains in this home, else 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.process import can_be_ended, die_with_parent

if TYPE_CHECKING:
    import dagster as dg

BUSY = 3


def main(job: str, partition: str, parent: int, why: str = "by hand") -> int:
    die_with_parent(parent)
    can_be_ended()
    import dagster as dg

    from assets.partitions import checkpoints
    from pipelines.definitions import defs
    from resources.lease import LeaseHeld
    from resources.run_launcher import bury_dead_runs

    with dg.DagsterInstance.get() as instance:
        bury_dead_runs(instance, {"dagster/partition": partition, "ratchet/worker": "cli"})
        tags, run = {"ratchet/worker": "cli", "ratchet/why": why}, defs.resolve_job_def(job)
        given: dict[str, Any] = {"partition_key": partition}
        if run.partitions_def is None:  # the record's name all the same
            given = {}
            tags |= {"dagster/partition": partition, "ratchet/kind": run.run_tags["ratchet/kind"]}
        else:
            instance.add_dynamic_partitions(str(checkpoints.name), [partition])
        result = run.execute_in_process(instance=instance, tags=tags, raise_on_error=False, **given)
    if result.success:
        return 0
    errors = [
        event.step_failure_data.error
        for event in result.get_step_failure_events()
        if event.step_failure_data.error
    ]
    print(
        f"error: {failed_checks(result.get_asset_check_evaluations()) or first_line(errors)}",
        file=sys.stderr,
    )
    return (
        BUSY
        if any(LeaseHeld.__name__ in text for error in errors for text in (error.to_string(),))
        else 1
    )


def failed_checks(evaluations: Sequence[dg.AssetCheckEvaluation]) -> str:
    """Return which blocking checks failed, and what they saw, in one line; empty if none failed."""
    told = []
    for found in evaluations:
        if not found.passed and found.severity.value == "ERROR":
            saw = found.description or ", ".join(
                f"{key}: {entry.value}" for key, entry in found.metadata.items()
            )
            told.append(
                f"{found.asset_key.to_user_string()} fails its check {found.check_name}: "
                f"{' '.join(saw.split())[:400]}"
            )
    return "; ".join(told)


def first_line(errors: list) -> str:  # type: ignore[type-arg]  # Dagster's SerializableErrorInfo has no public name
    """The innermost cause of the first failed step, in one line."""
    if not errors:
        return "the run failed outside its steps: see worker.log"
    error = errors[0]
    while error.cause:
        error = error.cause
    if error.cls_name == "DagsterExecutionInterruptedError":
        return (
            "the run was stopped; what was saved is kept, and `ratchet jobs resume` goes on from "
            "there"
        )
    return re.sub(
        r"^(\w+\.)+(?=\w+: )", "", " ".join(str(error.message).split())
    )  # resources.home.NotReady: why -> NotReady: why


if __name__ == "__main__":
    job, partition, parent, *why = sys.argv[1:]
    sys.exit(main(job, partition, int(parent), *why))
