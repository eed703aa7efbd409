"""Open the record of a run, as each command does, with the values that no test looks at."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from resources.run_record import PipelineRun, RunRecords, open_run


def open_test_run(runs: RunRecords, name: str, **changes: Any) -> PipelineRun:
    """Open the record of a pipeline run of the profile `small`; changes: of `open_run`."""
    values: dict[str, Any] = {
        "kind": "pipeline",
        "base_seed": 1,
        "profile": "small",
        "why": "test",
        "champion": None,
    }
    return open_run(runs, name, **values | changes)


def damage_record(runs: RunRecords, name: str) -> str:
    """Cut a stored record off. Return how messages name it."""
    with closing(sqlite3.connect(runs.place)) as connection, connection:
        connection.execute("UPDATE runs SET record = substr(record, 1, 40) WHERE id = ?", (name,))
    return f"{runs.place}: {name}"
