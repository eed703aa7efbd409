"""A training that its Ray cannot hold is refused with what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import ray
from verl_jobs.config.training import Training
from verl_jobs.trainer.layout import NoRoom, check_room, live_ranks
ray.init(num_cpus={cpus}, num_gpus={gpus}, include_dashboard=False, log_to_driver=False)
print("ranks", live_ranks())
try:
    check_room(Training(ranks=2))
    print("room")
except NoRoom as error:
    print("refused:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cpus", "gpus", "outcome"),
    [(6, 2, "ranks [2]\nroom"), (5, 2, "ranks [1]\nrefused"), (16, 1, "ranks [1]\nrefused")],
)
def test_ranks_need_cpus_and_gpus_of_ray(cpus: int, gpus: int, outcome: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(cpus=cpus, gpus=gpus)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome in process.stdout
    if "refused" in outcome:
        assert "2 ranks" in process.stdout and "3 CPUs" in process.stdout
