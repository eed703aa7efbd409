"""Two trainings on one Ray, as in a search, have separate queues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# A driver puts a prompt into the queue of its training from an actor, as verl does, and prints the
# contents. The first driver starts Ray and then, while its prompt is queued, the second driver.
DRIVER = """
import json, subprocess, sys
import ray
from omegaconf import OmegaConf

name, address, folder = sys.argv[1:]
own = {"num_cpus": 4, "include_dashboard": False, "_temp_dir": folder}
options = own if address == "none" else {"address": address}
context = ray.init(log_to_driver=False, logging_level="error", **options)

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
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    said += json.loads(ended.stdout.splitlines()[-1])
    said += [("first after the end of the second", ray.get(trainer.find.remote()))]
ray.get(trainer.close.remote())
print(json.dumps(said))
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_trainings_on_one_ray_have_separate_queues(tmp_path: Path) -> None:
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
    ) as short:  # socket paths of Ray have fewer than 108 bytes
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
    queues = json.loads(ended.stdout.splitlines()[-1])
    assert queues == [
        ["first", ["first"]],
        ["second", ["second"]],
        ["first after the end of the second", ["first"]],
    ]
