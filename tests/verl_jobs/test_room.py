"""A training that its Ray cannot hold is refused with what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.children import python
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.trainer.layout import held_ranks, missing

ROOT = Path(__file__).parents[2]
PROGRAM = """
from pathlib import Path
import ray
from verl_jobs.config.training import Training
from verl_jobs.trainer.layout import NoRoom, check_room, held_ranks, live_resources
ray.init(num_cpus={cpus}, num_gpus={gpus}, include_dashboard=False, log_to_driver=False)
print("ranks", held_ranks(live_resources(), 3))
try:
    check_room(Training(ranks=2), Path())
    print("room")
except NoRoom as error:
    print("refused:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cpus", "gpus", "outcome"),
    [
        (9, 2, r"ranks \[2\]\nroom"),
        (8, 2, r"ranks \[1\]\nrefused.*CPUs are missing"),
    ],
)
def test_ranks_need_cpus_and_gpus_of_ray(cpus: int, gpus: int, outcome: str) -> None:
    process = python("-c", PROGRAM.format(cpus=cpus, gpus=gpus), check=True)
    assert re.search(outcome, process.stdout), process.stdout
    if "refused" in outcome:
        assert "2 ranks" in process.stdout
        assert "3 CPUs" in process.stdout


EIGHT = Training(engine="vllm", ranks=8)
SIXTEEN = Training(engine="vllm", ranks=16, scale=ScaleSettings(nodes=2))


@pytest.mark.parametrize(
    ("training", "nodes", "resource"),
    [
        (EIGHT, [(8, 34)], ""),
        (EIGHT, [(8, 33)], "CPUs are missing: 8 GPUs and 24 CPUs on a node, 34 CPUs in all"),
        (EIGHT, [(8, 16)], "CPUs are missing"),
        (EIGHT, [(7, 64)], "GPUs are missing.* 7 GPUs and 64 CPUs"),
        (EIGHT, [(4, 32), (4, 32)], "GPUs are missing"),
        (EIGHT, [(8, 24), (0, 10)], ""),
        (EIGHT, [], "GPUs are missing.*no node"),
        (SIXTEEN, [(8, 32), (8, 32)], ""),
        (SIXTEEN, [(8, 32), (8, 16)], "CPUs are missing.*each of 2 nodes"),
    ],
)
def test_the_missing_resource_is_named(
    training: Training, nodes: list[tuple[int, int]], resource: str
) -> None:
    lacks = missing(training, nodes)
    assert bool(lacks) == bool(resource)
    assert re.search(resource, lacks)


def test_other_actors_first_take_cpus_that_no_rank_uses() -> None:
    assert held_ranks([(8, 24), (0, 10)], 10) == [8, 0]
    assert held_ranks([(8, 24), (8, 24)], 10) == [8, 4]
    assert held_ranks([(2, 8)], 3) == [1]
    assert held_ranks([(2, 9)], 3) == [2]
