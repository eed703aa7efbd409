"""Two trainings on one Ray, as a search has them on a cluster: each has a queue of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# A driver puts a prompt into the queue of its training from an actor, as verl does, and says what it finds there. The first one starts the Ray and,
# while its prompt is there, the second one.
DRIVER = """
import json, subprocess, sys
import ray
from omegaconf import OmegaConf

name, address, folder = sys.argv[1:]
told = {"num_cpus": 4, "include_dashboard": False, "_temp_dir": folder} if address == "none" else {"address": address}
context = ray.init(log_to_driver=False, logging_level="error", **told)

@ray.remote(num_cpus=0)
class Trainer:
    def put(self, name):
        import verl
        import transfer_queue as tq
        tq.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
        tq.kv_put(key=name, partition_id="train", tag={"status": "running"})
        return self.find()

    def find(self):
        import transfer_queue as tq
        return sorted(tq.kv_list(partition_id="train")["train"])

    def close(self):
        import transfer_queue as tq
        tq.close()

trainer = Trainer.remote()
said = [(name, ray.get(trainer.put.remote(name)))]
if address == "none":
    command = [sys.executable, __file__, "second", context.address_info["gcs_address"], folder]
    said += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    said += [("first after the end of the second", ray.get(trainer.find.remote()))]
ray.get(trainer.close.remote())
print(json.dumps(said))
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_training_never_finds_the_prompts_of_another_one_on_the_same_ray(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    settings = {
        "RAY_AUTH_MODE": "disabled",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }
    settings |= {
        "VERL_PLATFORM": "cpu",
        "TRANSFER_QUEUE_ENABLE": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    with tempfile.TemporaryDirectory(
        prefix="ratchet-ray-", dir="/tmp"
    ) as short:  # Ray's sockets need a path of fewer than 108 bytes
        command = [sys.executable, str(tmp_path / "driver.py"), "first", "none", short]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=os.environ | settings,
            check=False,
            timeout=200,
        )
    assert ended.returncode == 0, ended.stderr[-2000:]
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said == [
        ["first", ["first"]],
        ["second", ["second"]],
        ["first after the end of the second", ["first"]],
    ]
