"""Places to run programs, started and stopped by a test: a Docker engine and a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.backends import Kind


@contextlib.contextmanager
def place(kind: Kind, folder: Path) -> Iterator[Any]:
    """Start and yield what the backend of this kind needs.

    Skips the test, with the reason, if that is not available.
    """
    started: dict[str, contextlib.AbstractContextManager[Any]] = {
        "local": contextlib.nullcontext(),
        "docker": docker_engine(folder),
        "ray": ray_cluster(),
    }
    with started[kind] as resource:
        yield resource


@contextlib.contextmanager
def docker_engine(folder: Path) -> Iterator[None]:
    """Run a dockerd without a network, with its data in this folder."""
    if not shutil.which("dockerd") or os.geteuid() != 0:
        pytest.skip("no dockerd to start: apt-get install docker.io, and be root")
    before = set(Path("/sys/fs/cgroup").glob("*/docker"))
    address = f"unix://{folder}/docker.sock"
    command = [
        "dockerd",
        "--host",
        address,
        "--data-root",
        f"{folder}/data",
        "--exec-root",
        f"{folder}/exec",
        "--pidfile",
        f"{folder}/pid",
    ]
    with (folder / "dockerd.log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        engine = subprocess.Popen(
            [*command, "--bridge", "none", "--iptables=false", "--ip6tables=false"],
            stdout=log,
            stderr=log,
        )
        try:
            _await_engine(engine, folder)
            yield
        finally:
            engine.send_signal(signal.SIGTERM)
            engine.wait(30)
    for left in sorted(set(Path("/sys/fs/cgroup").glob("*/docker")) - before):
        left.rmdir()
    shutil.rmtree(folder, ignore_errors=True)


def _await_engine(engine: subprocess.Popen[bytes], folder: Path) -> None:
    import docker
    from docker.errors import DockerException

    until = time.monotonic() + 30
    while time.monotonic() < until and engine.poll() is None:
        with contextlib.suppress(DockerException):
            docker.from_env().ping()
            return
        time.sleep(0.1)
    pytest.skip(f"dockerd does not start here: {(folder / 'dockerd.log').read_text()[-300:]}")


@contextlib.contextmanager
def ray_cluster(cpus: int = 2) -> Iterator[Any]:
    """Run a Ray on 127.0.0.2 whose nodes are processes; this process is its driver."""
    import ray
    from ray.cluster_utils import Cluster

    head = {
        "num_cpus": cpus,
        "node_ip_address": "127.0.0.2",
        "object_store_memory": 10**8,
        "include_dashboard": False,
    }
    try:
        cluster = Cluster(initialize_head=True, head_node_args=head)
    except Exception:  # on a busy machine a node may exceed its own start timeout of 30 s
        cluster = Cluster(initialize_head=True, head_node_args=head)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path.cwd()))
        try:
            ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.2")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def workers_here() -> set[int]:
    """Return the worker processes of all sandboxes that this process keeps open."""
    children = psutil.Process().children(recursive=True)
    return {
        process.pid
        for process in children
        if any(part.endswith("sandbox/worker_process.py") for part in cmdline(process))
    }


def kill_a_worker(kind: Kind, others: set[int]) -> bool:
    """`kill -9` one of our workers, wherever it runs, and none of `others`.

    Return False if there is no such worker now.
    """
    if kind == "docker":
        import docker

        running = docker.from_env().containers.list()
        for container in running[:1]:
            container.kill()
        return bool(running)
    pids = sorted(workers_here() - others)
    for pid in pids[:1]:
        os.kill(pid, signal.SIGKILL)
    return bool(pids)


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
