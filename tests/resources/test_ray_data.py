"""The same set comes to the same on a Ray cluster of two nodes as here."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from problems.dataset.partitioned import clean
from problems.parallel import parallel_map
from problems.schema import read_parquet, set_hash
from resources.ray.data import RayData
from tests.problems.test_partitioned import RULES, mixed, written
from tests.sandbox.engines import ray_cluster


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_cluster_of_two_nodes_comes_to_the_same_hash_and_reasons(tmp_path: Path) -> None:
    source = str(written(mixed(), tmp_path / "in", 3))
    here = clean(source, str(tmp_path / "here"), parallel_map, RULES, rows=12)
    with ray_cluster(cpus=1) as cluster:
        cluster.add_node(num_cpus=1, node_ip_address="127.0.0.3", object_store_memory=10**8)
        ray = RayData(cluster.address)
        there = clean(source, f"file://{tmp_path}/there", ray, RULES, rows=12)
        assert len(ray.nodes) == 2
        assert not [thread.name for thread in threading.enumerate() if "usage" in thread.name], (
            "Ray Data's telemetry"
        )
    assert there == here
    kept = [
        problem
        for path in (tmp_path / "there" / "problems").glob("*.parquet")
        for problem in read_parquet(path)
    ]
    assert set_hash(kept) == here.content_hash
