"""Open the record of a run, as each command does, with the values that no test looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resources.run_record import PipelineRun, open_run


def open_test_run(runs: Path, name: str, **changes: Any) -> PipelineRun:
    """Open the record of a pipeline run of the profile `small`; changes: of `open_run`."""
    values: dict[str, Any] = {
        "kind": "pipeline",
        "base_seed": 1,
        "profile": "small",
        "why": "test",
        "champion": None,
    }
    return open_run(runs, name, **values | changes)
