"""Ratchet with two services of your own: `dagster dev -f examples/own_services.py`.

Few programs run at once in the sandbox, and the rewards of each training are a CSV file, without
W&B.
"""

import csv
from dataclasses import replace
from pathlib import Path

import dagster as dg

from pipelines.definitions import definitions
from resources.services import SandboxResource, TrackerResource


class SmallSandbox(SandboxResource):
    """The profile's sandbox with few workers."""

    workers: int

    def config(self, profile):
        return replace(super().config(profile), workers=self.workers)


class CsvTracker(TrackerResource):
    """A CSV file with a row for each step, beside the loggers of verl."""

    folder: str

    def file(self, job):
        return Path(self.folder).expanduser() / f"{job.run_id}.csv"

    def log(self, job, history):
        rows = [(row["step"], row.get("critic/score/mean")) for row in history]
        self.file(job).parent.mkdir(parents=True, exist_ok=True)
        with self.file(job).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("step", "reward"), *rows])

    def links(self, job, registry):
        path = dg.MetadataValue.path(str(self.file(job)))
        return {**super().links(job, registry), "curve": path}


defs = definitions(
    sandbox=SmallSandbox(workers=1),
    tracker=CsvTracker(folder=".ratchet/curves", loggers=["mlflow"]),
)
