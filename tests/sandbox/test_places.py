"""What only one kind of backend can lose or leave behind: containers, nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.protocol import CallTest, Job, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, run_all
from tests.sandbox.engines import place
from tests.sandbox.jobs import call

ADD = "def f(a, b):\n    return a + b"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"isolation": "nonsense"},
            "isolation: no 'nonsense'.*: known are auto, root, userns, bare",
        ),
        ({"isolation": "user"}, "isolation: no 'user', did you mean userns"),
        ({"isolation": ""}, "isolation: no ''"),
        ({"backend": "dockers"}, "backend: no 'dockers', did you mean docker"),
    ],
)
def test_a_rung_or_a_place_that_there_is_not_is_refused_with_the_nearest_names(
    asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        SandboxConfig(**asked)


@pytest.mark.slow
def test_closing_leaves_no_container(tmp_path: Path) -> None:
    with place("docker", tmp_path):
        import docker

        with Sandbox(SandboxConfig(workers=1, backend="docker")) as sandbox:
            run_all(sandbox, [call(ADD)])
            assert len(docker.from_env().containers.list()) == 1
        assert docker.from_env().containers.list(all=True) == []


@pytest.mark.slow
def test_a_node_that_is_lost_takes_no_job_with_it(tmp_path: Path) -> None:
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
