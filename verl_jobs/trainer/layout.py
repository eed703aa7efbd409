"""Which machines of a Ray a training is laid over: those that it was told, or, when it goes on and some are gone, what is left of them.

In: the job and the live nodes of the Ray that this process is connected to. Out: the `Training` that verl is told. One that begins is laid as it was
told, and verl waits for the machines (an autoscaler may yet bring them); one that goes on waits for `PATIENCE` seconds only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from verl_jobs import faults
from verl_jobs.config.scale import misfit
from verl_jobs.config.training import Training

PATIENCE = "RATCHET_PATIENCE_S"  # of a joined Ray; a private one never gets what it lacks
POLL_S = 2.0


class NoRoom(RuntimeError):
    """What is left of the Ray holds no part of this training; the message has the numbers."""


def settled(training: Training, folder: Path) -> Training:
    """How a training that goes on is laid over the machines that are there; a change is recorded in its folder. Raises NoRoom where nothing fits."""
    if _awaited(training, float(os.environ.get(PATIENCE, "0"))):
        return training
    gpus = live_gpus()
    if (found := laid(training, gpus)) is None:
        raise NoRoom(
            f"{told(training)} wanted, and the Ray's live nodes hold {gpus} GPUs: start more of them"
        )
    faults.record(
        folder,
        f"{told(training)} have no place any more, the Ray's live nodes hold {gpus} GPUs: it goes on with {told(found)}",
    )
    return found


def laid(training: Training, gpus: Sequence[int]) -> Training | None:
    """With as many ranks as may be, of those over as many nodes as may be, no more of either than was told; None where nothing fits.

    gpus: of each node.
    """
    for ranks in fewer(training):
        for nodes in range(min(training.scale.nodes, ranks), 0, -1):
            if fits(ranks, nodes, gpus) and (found := over(training, ranks, nodes)):
                return found
    return None


def fewer(training: Training) -> list[int]:
    """Numbers of ranks that its saves can be loaded with (verl_jobs/trainer/resharding.py), the most first."""
    whole = training.scale.shards or training.scale.megatron
    return (
        [training.ranks]
        if whole
        else [ranks for ranks in range(training.ranks, 0, -1) if training.ranks % ranks == 0]
    )


def over(training: Training, ranks: int, nodes: int) -> Training | None:
    """The same training on so many ranks and nodes; None where its batch does not divide."""
    scale = training.scale.model_copy(update={"nodes": nodes})
    if misfit(scale, training.engine, ranks, training.problems_per_step, training.group_size):
        return None
    return training.model_copy(update={"ranks": ranks, "scale": scale})


def fits(ranks: int, nodes: int, gpus: Sequence[int]) -> bool:
    """Whether so many ranks can be spread evenly over so many of these nodes."""
    return ranks % nodes == 0 and sum(each >= ranks // nodes for each in gpus) >= nodes


def live_gpus() -> list[int]:
    """GPUs of each live node of the Ray that this process is connected to; on a CPU they are the ranks that a node takes."""
    import ray

    return [int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]]


def told(training: Training) -> str:
    return f"{training.ranks} rank{'s' * (training.ranks > 1)} on {training.scale.nodes} node{'s' * (training.scale.nodes > 1)}"


def _awaited(training: Training, patience_s: float) -> bool:
    """Whether the nodes that it was told are there within so many seconds. What is missing is asked for, so that an autoscaler sees it."""
    nodes, each = training.scale.nodes, training.ranks // training.scale.nodes
    if fits(training.ranks, nodes, live_gpus()) or not patience_s:
        return fits(training.ranks, nodes, live_gpus())
    from ray.util.placement_group import placement_group, remove_placement_group

    asked = [placement_group([{"GPU": 1}] * each, strategy="STRICT_PACK") for _ in range(nodes)]
    deadline = time.monotonic() + patience_s
    while not (there := fits(training.ranks, nodes, live_gpus())) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    for group in asked:
        remove_placement_group(group)
    return there
