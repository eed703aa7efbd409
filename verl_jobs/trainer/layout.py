"""Placement of a training on the nodes of a Ray cluster.

A new training gets the configured ranks and nodes, and waits for them up to START_S, since an
autoscaler may add machines; verl alone would wait without end. A resumed training waits only
`PATIENCE` seconds; if nodes are missing then, it continues on the remaining ones. Input: the job
and the live nodes of the connected Ray. Output: the `Training` for verl.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from verl_jobs import faults
from verl_jobs.config.engine_overrides import STORAGE_UNITS
from verl_jobs.config.scale import layout_error
from verl_jobs.config.training import Training
from verl_jobs.trainer import progress

PATIENCE = "RATCHET_PATIENCE_S"  # for an existing Ray cluster; a private one never gets more nodes
START_S = 1800.0  # seconds that a new training waits for the nodes of an existing Ray
POLL_S = 2.0
CPUS = 3  # of a rank in verl's placement group (ResourcePoolManager.create_resource_pool)
ENGINE_CPUS = 2  # of a separate engine's GPU (RolloutReplica.init_standalone)
# of TransferQueue's controller, and one for actors that claim a CPU only while they are placed:
# verl's task runner, agent loops, reward workers
BESIDE = 2


def cpus_beside(training: Training) -> int:
    """Return the CPUs of Ray that verl needs besides its ranks', on any node.

    TransferQueue's storage holds one for each of its units (verl_jobs/config/engine_overrides.py),
    and a separate engine ENGINE_CPUS for each of its GPUs.
    """
    storage = 1 if training.engine == "hf" else STORAGE_UNITS
    return BESIDE + storage + ENGINE_CPUS * training.scale.engine_gpus


class NoRoom(RuntimeError):
    """The live nodes cannot hold this training in any layout. The message has the numbers."""


def check_room(training: Training, folder: Path) -> None:
    """Wait for the nodes of a new training in this folder.

    Raises NoRoom, which names what is missing.
    """
    patience_s = START_S if float(os.environ.get(PATIENCE, "0")) else 0.0
    if not _wait_for_nodes(training, patience_s, folder):
        raise NoRoom(
            f"the training needs {describe(training)}, each rank a GPU and {CPUS} CPUs of Ray, and "
            f"{cpus_beside(training)} CPUs besides. {missing(training, live_resources())}: start "
            "more nodes, start Ray with more (--num-cpus, --num-gpus), or lower training.ranks"
        )


def fit_to_cluster(training: Training, folder: Path) -> Training:
    """Return a resumed training fitted to the live nodes; record a change in its folder.

    Raises NoRoom if no layout fits.
    """
    if _wait_for_nodes(training, float(os.environ.get(PATIENCE, "0")), folder):
        return training
    gpus = held_ranks(live_resources(), cpus_beside(training))
    if (fitted := largest_layout(training, gpus)) is None:
        raise NoRoom(
            f"the training needs {describe(training)}, and Ray's live nodes hold {gpus} ranks: "
            "start more nodes"
        )
    faults.record(
        folder,
        (
            f"{describe(training)} no longer fit, Ray's live nodes hold {gpus} ranks: the training "
            f"continues on {describe(fitted)}"
        ),
    )
    return fitted


def largest_layout(training: Training, gpus: Sequence[int]) -> Training | None:
    """Return the training with as many ranks as fit, on as many nodes as possible.

    Neither exceeds the configured number. Returns None if nothing fits. gpus: GPUs of each node.
    """
    for ranks in rank_counts(training):
        for nodes in range(min(training.scale.nodes, ranks), 0, -1):
            if fits(ranks, nodes, gpus) and (fitted := with_layout(training, ranks, nodes)):
                return fitted
    return None


def rank_counts(training: Training) -> list[int]:
    """Return the rank counts that can load its saves, in descending order.

    Conversion of saves: verl_jobs/trainer/resharding.py.
    """
    whole = training.scale.shards or training.scale.megatron
    return (
        [training.ranks]
        if whole
        else [ranks for ranks in range(training.ranks, 0, -1) if training.ranks % ranks == 0]
    )


def with_layout(training: Training, ranks: int, nodes: int) -> Training | None:
    """Return the same training on other ranks and nodes; None if its batch is not divisible."""
    scale = training.scale.model_copy(update={"nodes": nodes})
    if layout_error(scale, training.engine, ranks, training.problems_per_step, training.group_size):
        return None
    return training.model_copy(update={"ranks": ranks, "scale": scale})


def fits(ranks: int, nodes: int, gpus: Sequence[int]) -> bool:
    """Whether the ranks can be spread evenly over this many of the nodes."""
    return ranks % nodes == 0 and sum(each >= ranks // nodes for each in gpus) >= nodes


def live_resources() -> list[tuple[int, int]]:
    """Return GPUs and CPUs of each live node of the connected Ray; GPUs are logical on a CPU."""
    import ray

    resources = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [(int(each.get("GPU", 0)), int(each.get("CPU", 0))) for each in resources]


def held_ranks(nodes: Sequence[tuple[int, int]], beside: int) -> list[int]:
    """Return how many ranks each node holds, by its GPUs and by its CPUs.

    nodes: GPUs and CPUs of each. beside: CPUs for other actors, first those that no rank can use.
    """
    spare = sum(max(0, cpus - CPUS * gpus) for gpus, cpus in nodes)
    lacking, ranks = max(0, beside - spare), list[int]()
    for gpus, cpus in reversed(nodes):
        useful = min(cpus, CPUS * gpus)
        taken = min(lacking, useful)
        lacking -= taken
        ranks.append((useful - taken) // CPUS)
    return ranks[::-1]


def missing(training: Training, nodes: Sequence[tuple[int, int]]) -> str:
    """Return which resource the live nodes lack for this training; empty if they hold it.

    nodes: GPUs and CPUs of each.
    """
    wanted, each = training.scale.nodes, training.ranks // training.scale.nodes
    beside = cpus_beside(training)
    here = ", ".join(f"{gpus} GPUs and {cpus} CPUs" for gpus, cpus in nodes) or "no node"
    gpus_in_all = training.ranks + training.scale.engine_gpus
    if (
        sum(gpus >= each for gpus, _ in nodes) < wanted
        or sum(gpus for gpus, _ in nodes) < gpus_in_all
    ):
        what = "GPUs"
    elif sum(gpus >= each and cpus >= CPUS * each for gpus, cpus in nodes) < wanted or (
        sum(cpus for _, cpus in nodes) < CPUS * training.ranks + beside
    ):
        what = "CPUs"
    else:
        return ""
    on = f"each of {wanted} nodes" if wanted > 1 else "a node"
    return (
        f"{what} are missing: {each} GPUs and {CPUS * each} CPUs on {on}, "
        f"{CPUS * training.ranks + beside} CPUs in all, and Ray has {here}"
    )


def describe(training: Training) -> str:
    return (
        f"{training.ranks} rank{'s' * (training.ranks > 1)} on {training.scale.nodes} "
        f"node{'s' * (training.scale.nodes > 1)}"
    )


def _wait_for_nodes(training: Training, patience_s: float, folder: Path) -> bool:
    """Wait up to `patience_s` for the configured nodes; return whether they are there.

    Requests placement groups for them, so that an autoscaler sees the demand.
    """
    nodes, each = training.scale.nodes, training.ranks // training.scale.nodes
    if not missing(training, live_resources()) or not patience_s:
        return not missing(training, live_resources())
    from ray.util.placement_group import placement_group, remove_placement_group

    beside = [{"CPU": 1}] * cpus_beside(training)
    groups = [
        placement_group([{"GPU": 1, "CPU": CPUS}] * each, strategy="STRICT_PACK")
        for _ in range(nodes)
    ] + [placement_group(beside, strategy="PACK")]
    deadline = time.monotonic() + patience_s
    while lacks := missing(training, live_resources()):
        if time.monotonic() > deadline:
            break
        progress.touch(folder)
        time.sleep(POLL_S)
    for group in groups:
        remove_placement_group(group)
    return not lacks
