"""The image, with each pod of the chart: `make image-test`; `make soak` runs it too.

Needs Docker. RATCHET_IMAGE names an image that exists; without it one is built, from RATCHET_BASE
or the Dockerfile's own base, with pip's settings of the environment. A base where no registry can
be reached: `debootstrap --include=python3.11,python3.11-venv,ca-certificates bookworm FOLDER`, then
`tar -C FOLDER -c . | docker import - NAME`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.chart import chart_values
from resources.config.load import load_profile
from tests.deploy.chart import rendered, run_pod
from tests.deploy.pod import Pod, docker, probe, templates, volume
from tests.serving.gateway_server import eventually
from tests.test_architecture import ROOT

IMAGE = os.environ.get("RATCHET_IMAGE", "ratchet:image-test")
SANDBOX = "from sandbox.sandbox import Sandbox\nwith Sandbox() as s: print(s.describe())"
PATIENCE_S = 900.0


def engine() -> bool:
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not engine(), reason="no Docker engine: start one, or set DOCKER_HOST"),
]


@pytest.fixture(scope="module")
def image() -> str:
    if "RATCHET_IMAGE" in os.environ:
        return IMAGE
    given = {"BASE": os.environ.get("RATCHET_BASE")}
    given |= {name: os.environ.get(name) for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")}
    arguments = [f"--build-arg={name}={value}" for name, value in given.items() if value]
    docker("build", "--network=host", f"--file={ROOT / 'deploy' / 'Dockerfile'}", *arguments,
           f"--tag={IMAGE}", str(ROOT), timeout_s=3600)  # fmt: skip
    return IMAGE


@pytest.fixture(scope="module")
def home(image: str) -> Iterator[str]:
    name = volume(image)
    yield name
    docker("volume", "rm", name)


def objects_of(*changes: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the chart's objects for the profile `small`, and the pod of its runs.

    Dagster starts runs as processes here, because there is no Kubernetes to start pods.
    """
    profile = load_profile("small", [f"orchestration.kubernetes.image={IMAGE}", *changes])
    objects = rendered({"serve": {"enabled": True}} | chart_values(profile))
    runs = load_profile("cluster", [f"orchestration.kubernetes.image={IMAGE}", *changes])
    return objects, run_pod(chart_values(runs)["generated"]["dagster"])


@pytest.mark.parametrize(
    ("seccomp", "level"),
    [("RuntimeDefault", "bare"), (f"Localhost:{ROOT / 'deploy' / 'seccomp.json'}", "userns")],
)
def test_the_sandbox_finds_its_level_in_a_run_s_pod(
    image: str, home: str, tmp_path: Path, seccomp: str, level: str
) -> None:
    objects, template = objects_of(f"orchestration.kubernetes.seccomp={seccomp}")
    with Pod(template, objects, home, tmp_path) as pod:
        name = next(iter(pod.containers))
        pod.start(name, "sleep", "1000")
        assert pod.execute(name, "python", "-c", SANDBOX).startswith(f"{level}:")


def test_dagsters_pod_answers_its_probes(home: str, tmp_path: Path) -> None:
    objects, _ = objects_of()
    with Pod(templates(objects)["ratchet, template"], objects, home, tmp_path) as pod:
        for name in pod.containers:
            pod.start(name)
        for name in pod.containers:
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                eventually(partial(succeeds, pod, name, kind), PATIENCE_S)


def succeeds(pod: Pod, name: str, kind: str) -> bool:
    try:
        probe(pod, name, kind)
    except AssertionError:
        return False
    return True


def test_rays_pods_start_and_a_worker_joins(image: str, home: str, tmp_path: Path) -> None:
    objects, _ = objects_of()
    pods = templates(objects)
    with Pod(pods["ray-head"], objects, home, tmp_path) as head:
        number = head.start("ray-head", "ray", "start", "--head", "--num-cpus=0", "--block")
        eventually(lambda: alive(head, 1), PATIENCE_S)
        with Pod(pods["ray-worker"], objects, home, tmp_path, f"container:{number}") as worker:
            worker.start("ray-worker", "ray", "start", "--address=127.0.0.1:6379", "--block")
            eventually(lambda: alive(head, 2), PATIENCE_S)


def alive(head: Pod, nodes: int) -> bool:
    try:
        return head.execute("ray-head", "ray", "list", "nodes").count("ALIVE") == nodes
    except AssertionError:
        return False
