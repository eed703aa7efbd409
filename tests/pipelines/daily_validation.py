"""Run the daily validation of a home's champion, two completions at a time.

`python tests/pipelines/daily_validation.py HOME [CHANGE ...]` does it in a process that a test can
kill, and says at the end whether that has imported torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dagster as dg

from evaluation.generation import decoder
from pipelines.definitions import defs
from resources.home import Home
from resources.run_context import RunContext
from resources.settings import Settings

NAME = "validation-1"


def validate(home: Path, *changes: str) -> None:
    batch, decoder.BATCH = decoder.BATCH, 2
    run_context = RunContext.of(Settings(Home(home), "small", changes))
    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions("checkpoints", [NAME])
        job = defs.resolve_job_def("evaluate_checkpoint")
        assert job.execute_in_process(
            instance=instance,
            partition_key=NAME,
            tags={"ratchet/kind": "validation", "ratchet/why": "test"},
            resources=run_context.resources | {"io_manager": dg.mem_io_manager},
        ).success
    decoder.BATCH = batch


if __name__ == "__main__":
    validate(Path(sys.argv[1]), *sys.argv[2:])
    print("torch" in sys.modules)
