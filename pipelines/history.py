"""How long Dagster's own records stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from resources.run_context import KEY

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def forget_runs(instance: dg.DagsterInstance, days: int, *, dry_run: bool = False) -> list[str]:
    """Remove the records of runs that ended more than `days` days ago, with events and logs, and
    return their ids. Runs with the newest materialization of an asset stay, so that the UI shows
    it, and so do retrainings that a sensor started, so that it starts none twice.
    """
    before = datetime.now(UTC) - timedelta(days=days)
    old = instance.get_runs(dg.RunsFilter(statuses=ENDED, updated_before=before))
    newest = {
        asset.asset_entry.last_materialization.run_id
        for asset in instance.get_asset_records()
        if asset.asset_entry.last_materialization
    }
    forgotten = [run.run_id for run in old if run.run_id not in newest and KEY not in run.tags]
    if not dry_run:
        for run_id in forgotten:
            instance.delete_run(run_id)
            instance.compute_log_manager.delete_logs(prefix=[run_id])
            # On SQLite each run has a file of its own, which Dagster only empties.
            (Path(instance.root_directory) / f"history/runs/{run_id}.db").unlink(missing_ok=True)
    return forgotten
