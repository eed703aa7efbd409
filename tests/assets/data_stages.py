"""A small home for tests of the data stages, and a run of its data job."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from artifacts.store import Artifact
from pipelines.definitions import defs
from resources.home import Home
from resources.run_context import RunContext
from resources.settings import Settings

STAGES = (
    "raw_problems",
    "verified_problems",
    "augmented_problems",
    "synthetic_problems",
    "clean_problems",
)


def at(home: Path) -> RunContext:
    profile = home.with_suffix(".yaml")
    profile.write_text(
        "family: {demonstrations: 6, train: 4, validation: 2}\naugmentation: {kinds: [constant]}",
        encoding="utf-8",
    )
    return RunContext.of(Settings(Home(home), str(profile)))


def refresh(run_context: RunContext, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = defs.resolve_job_def("refresh_data")
    return job.execute_in_process(
        instance=instance, resources=run_context.resources, raise_on_error=False
    )


def datasets(run_context: RunContext) -> dict[str, Artifact]:
    return {name: run_context.store.require("datasets", name) for name in STAGES}
