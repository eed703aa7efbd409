"""Tell killed Ray processes from those that ended normally, on a real Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = """
import os, time
import ray
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
from sandbox.backends.ray import RayWorker
from verl_jobs.trainer.dead_actors import dead_actors

@ray.remote(num_cpus=0)
class Actor:
    def pid(self):
        return os.getpid()

lost = ray.remote(RayWorker).options(num_cpus=0).remote("none", ())
os.kill(ray.get(lost.__ray_call__.remote(lambda _: os.getpid())), 9)
try:
    ray.get(lost.__ray_ready__.remote())
except ray.exceptions.RayActorError:
    pass
time.sleep(1)
names = ("killed", "ended by its owner", "let go", "alive")
actors = {name: Actor.remote() for name in names}
pids = {name: ray.get(actor.pid.remote()) for name, actor in actors.items()}
print("SAID", dead_actors())
os.kill(pids["killed"], 9)
ray.kill(actors["ended by its owner"])
del actors["let go"]
deadline = time.monotonic() + 30
while not dead_actors() and time.monotonic() < deadline:
    time.sleep(0.2)
time.sleep(1)
print("SAID", [line.replace(str(pids["killed"]), "KILLED") for line in dead_actors()])
ray.shutdown()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_only_a_killed_actor_counts_as_dead(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0" * 64)
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token"),
    }
    environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, env=environment, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert lines == ["SAID []", "SAID ['Actor (process KILLED)']"], done.stdout + done.stderr
