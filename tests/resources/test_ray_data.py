"""Cleaning gives the same result on a Ray cluster of two nodes as on this machine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from artifacts.hashing import hash_file
from artifacts.integrity import read_manifest
from problems.dataset.partitioned import clean
from problems.parallel import parallel_map
from resources.ray.data import RayData
from tests.problems.test_partitioned import RULES, mixed, written
from tests.sandbox.engines import ray_cluster


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_cluster_of_two_nodes_gives_the_same_dataset(tmp_path: Path) -> None:
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
    manifest = read_manifest(tmp_path / "there" / "manifest.json")
    assert manifest.content_hash == here.content_hash and manifest.files is not None
    for name, expected in manifest.files.items():
        assert hash_file(tmp_path / "there" / name) == expected
