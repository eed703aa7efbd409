"""A toy training of several ranks: placed as verl's, they sum over gloo and save each step.

`python -m toy_spread FOLDER/job.json` ends with success when the file `go` exists. It logs into
`toy.log`.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.dead_actors import wait_for_dead_actors
from verl_jobs.trainer.entry import DIED
from verl_jobs.trainer.layout import fit_to_cluster


class Rank:
    def address(self) -> str:
        return str(ray.util.get_node_ip_address())

    def join(self, address: str, port: int, rank: int, ranks: int) -> None:
        import torch.distributed as dist

        dist.init_process_group(
            "gloo", init_method=f"tcp://{address}:{port}", rank=rank, world_size=ranks
        )

    def step(self) -> float:
        import torch
        import torch.distributed as dist

        total = torch.ones(1)
        dist.all_reduce(total)
        return float(total)


def main(job: TrainingJob) -> None:
    with trainer_lease.training_lock(job.path) as alone:
        assert alone
        trainer_lease.withdraw_notice(job.path)
        if holders := os.environ.get(trainer_lease.HOLDERS):
            trainer_lease.register_holder(Path(holders))
        save = job.path / "save"
        ray.init()
        done = int(save.read_text()) if save.exists() else 0
        training = fit_to_cluster(job.training, job.path) if done else job.training
        say(job, f"begins at {done} with {training.ranks} ranks on {training.scale.nodes} nodes")
        try:
            steps(job, training, done, save)
        except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError):
            sys.exit(DIED if wait_for_dead_actors() else 1)
        job.finish()


def steps(job: TrainingJob, training: Training, done: int, save: Path) -> None:
    nodes, each = training.scale.nodes, training.ranks // training.scale.nodes
    groups = [placement_group([{"GPU": 1}] * each, strategy="STRICT_PACK") for _ in range(nodes)]
    ray.get([group.ready() for group in groups])
    ranks: list[Any] = [
        ray.remote(Rank)
        .options(
            num_cpus=0,
            num_gpus=1,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, index),
        )
        .remote()
        for group in groups
        for index in range(each)
    ]
    address = ray.get(ranks[0].address.remote())
    port = 20_000 + os.getpid() % 20_000
    ray.get(
        [rank.join.remote(address, port, number, len(ranks)) for number, rank in enumerate(ranks)]
    )
    while not (job.path / "go").exists():
        assert ray.get([rank.step.remote() for rank in ranks]) == [float(len(ranks))] * len(ranks)
        done += 1
        save.write_text(str(done))
        if trainer_lease.notice(job.path):
            sys.exit(DIED)
        time.sleep(0.2)


def say(job: TrainingJob, text: str) -> None:
    with (job.path / "toy.log").open("a") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main(TrainingJob.read(Path(sys.argv[1])))
