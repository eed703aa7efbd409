"""A toy training over two nodes, a real Ray of two raylets, saves and resumes when one is taken.

tests/journeys/test_two_nodes.py kills one or both under a training of verl.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.demo_run import wait_until
from tests.resources.two_nodes import HEAD, OTHER, ROOT, Nodes, two_nodes
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import preemption_hook

PATHS = f"{ROOT}:{Path(__file__).parent}"
OWNER = (
    "import sys; from pathlib import Path; from resources.ray.private import Joined, Private\n"
    "from resources.ray.job import train\n"
    "from verl_jobs.job import TrainingJob\n"
    "job = TrainingJob.read(Path(sys.argv[1]))\n"
    "here = lambda: Private(Path(sys.argv[3]), job)\n"
    "train(job, Joined(sys.argv[2], job, 3.0, here), entry='toy_spread')"
)


def log_lines(job: TrainingJob) -> list[str]:
    log = job.path / "toy.log"
    return log.read_text().splitlines() if log.exists() else []


def saved(job: TrainingJob) -> int:
    save = job.path / "save"
    return int(save.read_text() or 0) if save.exists() else 0


def resumes(job: TrainingJob, life: int, owner: subprocess.Popen[bytes]) -> bool:
    """Return whether attempt number `life` starts and saves a step of its own."""

    def does() -> bool:
        return len(log_lines(job)) == life and saved(job) > int(log_lines(job)[-1].split()[2])

    return wait_until(lambda: does() or owner.poll() is not None, 400) and does()


@contextmanager
def spread(
    folder: Path, nodes: Nodes, ranks: int, over: int
) -> Iterator[tuple[TrainingJob, subprocess.Popen[bytes]]]:
    """Start a toy training on these nodes; give its job and the process that owns it."""
    job = a_job(folder / "job", training=Training(ranks=ranks, scale=ScaleSettings(nodes=over)))
    job.write()
    environment = os.environ | nodes.environment | {"PYTHONPATH": PATHS}
    command = [
        sys.executable,
        "-c",
        OWNER,
        str(job.path / "job.json"),
        nodes.dashboard,
        str(folder / "ray"),
    ]
    with (folder / "owner.log").open("ab") as log:
        owner = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        assert resumes(job, 1, owner), (folder / "owner.log").read_text()
        yield job, owner
        (job.path / "go").touch()
        assert owner.wait(120) == 0
        assert job.done is not None
    finally:
        owner.kill()


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_training_on_a_preempted_node_saves_and_resumes(tmp_path: Path) -> None:
    """Run the preStop hook of a KubeRay pod; it finds Ray's workers by their environment."""
    with two_nodes(1, PATHS) as nodes, spread(tmp_path, nodes, 2, 2) as (job, owner):
        hook = [sys.executable, "-m", "verl_jobs.trainer.preemption_hook", str(tmp_path)]
        assert (
            subprocess.run(hook, cwd=ROOT, timeout=preemption_hook.GRACE_S, check=False).returncode
            == 0
        )
        before = saved(job)
        assert resumes(job, 2, owner), (tmp_path / "owner.log").read_text()
        assert int(log_lines(job)[1].split()[2]) >= before > 0


LOADS = """
import sys, time
import ray
from verl_jobs.metrics.machines import Machines
ray.init(address=sys.argv[1], log_to_driver=False)

@ray.remote(num_cpus=0, num_gpus=1)
class Rank:
    def node(self):
        return ray.get_runtime_context().get_node_id()

machines, ranks = Machines(), []
for _ in range(2):
    ranks.append(Rank.remote())
    ray.get(ranks[-1].node.remote())
    machines.loads()
    time.sleep(0.5)
    print(*sorted(machines.loads()), sep=", ", flush=True)
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_each_node_with_workers_reports_its_load() -> None:
    with two_nodes(1, PATHS) as nodes:
        address = (nodes.session / "ray_current_cluster").read_text()
        environment = os.environ | nodes.environment | {"PYTHONPATH": PATHS}
        run = subprocess.run(
            [sys.executable, "-c", LOADS, address],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    alone, apart = run.stdout.splitlines()
    # The load is that of the rank's machine, whether or not the driver runs there.
    assert alone == "cpu_percent, memory_gib", run.stderr
    assert apart.split(", ") == [
        f"{name} of {place}" for name in ("cpu_percent", "memory_gib") for place in (HEAD, OTHER)
    ]
