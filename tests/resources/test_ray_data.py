"""A Ray cluster of two nodes gives the results of this machine, each once."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from resources.ray.data import RayData
from tests.sandbox.engines import ray_cluster


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_nodes_work_on_the_parts_and_none_is_lost(tmp_path: Path) -> None:
    # Each part waits until two processes work on one.
    wait = f"touch {tmp_path}/$PPID; until [ $(ls {tmp_path} | wc -l) -ge 2 ]; do sleep 0.1; done"
    parts = [f"{wait}; echo part {number}" for number in range(12)]
    with ray_cluster(cpus=1) as cluster:
        cluster.add_node(num_cpus=1, node_ip_address="127.0.0.3", object_store_memory=10**8)
        ray = RayData(cluster.address)
        results = list(ray(subprocess.getoutput, parts))
        assert len(ray.nodes) == 2
        assert not [thread.name for thread in threading.enumerate() if "usage" in thread.name], (
            "Ray Data's telemetry"
        )
    assert sorted(results) == sorted(f"part {number}" for number in range(12))
