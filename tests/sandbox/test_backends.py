"""What a backend can lose or leave behind: containers, nodes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.ray import RayWorker
from sandbox.protocol import CallTest, Job, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from tests.sandbox.engines import place
from tests.sandbox.jobs import call

ADD = "def f(a, b):\n    return a + b"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            {"isolation": "nonsense"},
            "isolation.*auto, root, userns, bare.*'nonsense'",
        ),
        ({"isolation": "user"}, "isolation.*'user'.*userns"),
        ({"isolation": ""}, "isolation.*''"),
        ({"backend": "dockers"}, "backend.*'dockers'.*docker"),
    ],
)
def test_an_unknown_level_or_backend_is_refused_with_the_nearest_name(
    settings: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        SandboxConfig(**settings)


@pytest.mark.slow
def test_closing_leaves_no_container(tmp_path: Path) -> None:
    with place("docker", tmp_path):
        import docker

        with Sandbox(SandboxConfig(workers=1, backend="docker")) as sandbox:
            run_all(sandbox, [call(ADD)])
            assert len(docker.from_env().containers.list()) == 1
        assert docker.from_env().containers.list(all=True) == []


@pytest.mark.slow
def test_a_lost_ray_node_loses_no_job(tmp_path: Path) -> None:
    with place("ray", tmp_path) as cluster:
        second = cluster.add_node(
            num_cpus=2, node_ip_address="127.0.0.2", object_store_memory=10**8
        )
        cluster.wait_for_nodes()
        jobs = [
            Job(
                str(i),
                f"import time\ntime.sleep(0.3)\n{ADD}",
                "call",
                (CallTest((2, 3), {}, 5),),
                "f",
            )
            for i in range(40)
        ]
        with Sandbox(SandboxConfig(workers=4, backend="ray")) as sandbox:
            reports = []
            for report in sandbox.run(jobs):
                reports.append(report)
                if len(reports) == 8:
                    cluster.remove_node(second, allow_graceful=False)
        assert sorted(int(report.job_id) for report in reports) == list(range(40))
        assert {report.verdict for report in reports} == {Verdict.AC}


def test_a_worker_in_a_ray_actor_is_not_pinned() -> None:
    """Otherwise all actors of a node would keep to the same core."""
    place = RayWorker("auto", ())
    place.open()
    assert os.sched_getaffinity(place.pids()[1]) == os.sched_getaffinity(0)
    place.close()
