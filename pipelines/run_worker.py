"""The process that executes one Dagster job for the command line; it ends with the command.

`python -m pipelines.run_worker JOB PARTITION PARENT_PID [REASON]` exits 0 on success, 2 if a file
or a ledger entry has changed, 3 if another process trains in this home, else 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.process import die_with_parent, restore_sigint

if TYPE_CHECKING:
    import dagster as dg

CHANGED, BUSY = 2, 3


def main(job: str, partition: str, parent: int, reason: str = "by hand") -> int:
    """Execute the job, print the first error to stderr, and return the exit code."""
    die_with_parent(parent)
    restore_sigint()
    import dagster as dg

    from artifacts.integrity import CorruptArtifact
    from assets.partitions import BENCHMARK, CHECKPOINT, cells, checkpoints
    from pipelines.definitions import defs
    from resources.lease import LeaseHeld, LeaseLost
    from resources.registry.ledger import LedgerChanged
    from resources.run_context import BENCHMARKS
    from resources.run_launcher import fail_dead_runs

    with dg.DagsterInstance.get() as instance:
        fail_dead_runs(instance, {"dagster/partition": partition, "ratchet/worker": "cli"})
        tags, job_definition = (
            {"ratchet/worker": "cli", "ratchet/why": reason},
            defs.resolve_job_def(job),
        )
        partition_arguments: dict[str, Any] = {"partition_key": partition}
        if job_definition.partitions_def is None:  # the partition is only the record's name then
            partition_arguments = {}
            tags |= {
                "dagster/partition": partition,
                "ratchet/kind": job_definition.run_tags["ratchet/kind"],
            }
        elif job_definition.partitions_def == cells:
            checkpoint, _, benchmark = partition.partition("--")
            instance.add_dynamic_partitions(str(checkpoints.name), [checkpoint])
            instance.add_dynamic_partitions(BENCHMARKS, [benchmark])
            cell = {CHECKPOINT: checkpoint, BENCHMARK: benchmark}
            partition_arguments = {"partition_key": dg.MultiPartitionKey(cell)}
        else:
            instance.add_dynamic_partitions(str(checkpoints.name), [partition])
        result = job_definition.execute_in_process(
            instance=instance, tags=tags, raise_on_error=False, **partition_arguments
        )
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
    codes = {LeaseHeld: BUSY, LeaseLost: BUSY, CorruptArtifact: CHANGED, LedgerChanged: CHANGED}
    texts = [error.to_string() for error in errors]
    return next(
        (code for kind, code in codes.items() if any(kind.__name__ in text for text in texts)), 1
    )


def failed_checks(evaluations: Sequence[dg.AssetCheckEvaluation]) -> str:
    """Return the failed blocking checks and their reasons in one line; empty if none failed."""
    failures = []
    for evaluation in evaluations:
        if not evaluation.passed and evaluation.severity.value == "ERROR":
            observed = evaluation.description or ", ".join(
                f"{key}: {entry.value}" for key, entry in evaluation.metadata.items()
            )
            failures.append(
                f"{evaluation.asset_key.to_user_string()} fails its check {evaluation.check_name}: "
                f"{' '.join(observed.split())[:400]}"
            )
    return "; ".join(failures)


def first_line(errors: list) -> str:  # type: ignore[type-arg]  # Dagster's SerializableErrorInfo has no public name
    """Return the innermost cause of the first failed step in one line."""
    if not errors:
        return "the run failed outside its steps: see worker.log in the run's folder"
    error = errors[0]
    while error.cause:
        error = error.cause
    if error.cls_name == "DagsterExecutionInterruptedError":
        return "the run was stopped; `ratchet jobs resume` resumes it from its last checkpoint"
    # Shorten `resources.home.NotReady: why` to `NotReady: why`, and a dagster.Failure to its text.
    text = re.sub(r"^(\w+\.)+(?=\w+: )", "", " ".join(str(error.message).split()))
    return text.removeprefix("Failure: ")


if __name__ == "__main__":
    job, partition, parent, *why = sys.argv[1:]
    sys.exit(main(job, partition, int(parent), *why))
