"""Start a Ray of two nodes on this machine, with a token: head 127.0.0.2, other 127.0.0.3."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from resources.ray.head import free_ports
from tests.journeys.demo_run import command_line, wait_until

ROOT = Path(__file__).resolve().parents[2]
HEAD, OTHER = "127.0.0.2", "127.0.0.3"


@dataclass
class Nodes:
    dashboard: str
    token: Path
    session: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a process that submits jobs to this Ray."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}

    def state(self, of: str) -> list[dict[str, Any]]:
        """Read Ray's state API. of: `nodes`, `actors`, ..."""
        request = urllib.request.Request(
            f"{self.dashboard}/api/v0/{of}?detail=1&limit=1000",
            headers={"Authorization": f"Bearer {self.token.read_text()}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["data"]["result"]["result"]
        return rows

    def kill(self, ip: str) -> None:
        """Kill a node's raylet, and GCS and dashboard of the head."""
        for process in self.processes():
            line = " ".join(command_line(process))
            head = ip == HEAD and ("gcs_server " in line or "/dashboard.py " in line)
            if head or ("raylet/raylet " in line and f"--node_ip_address={ip} " in line):
                process.kill()

    def end(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended with another one
                process.kill()

    def processes(self) -> list[psutil.Process]:
        """Return Ray's daemons and workers on both nodes, and the processes that started them."""
        processes = []
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get("RAY_AUTH_TOKEN_PATH") == str(self.token)
                    and process.pid != os.getpid()
                ):
                    processes.append(process)
            except psutil.Error:
                continue
        return processes


CLUSTER = """
import json, sys, time
import ray
from ray.cluster_utils import Cluster
options, write = json.loads(sys.argv[1]), ray._private.utils.write_ray_address
# Write the address where only this cluster's jobs find it: another ray.init() on this machine
# must not join, and these jobs must not join another Ray.
ray._private.utils.write_ray_address = lambda address: write(address, options["session"])
common = {"num_cpus": 16, "num_gpus": options["gpus"], "object_store_memory": 10**8}
common |= {"dashboard_agent_listen_port": 0}  # one that is free: both nodes are this machine
head = {"node_ip_address": options["head"], "dashboard_host": options["head"]}
head |= {"dashboard_port": options["port"], "include_dashboard": True}
head |= {"temp_dir": options["session"]}
cluster = Cluster(initialize_head=True, head_node_args=common | head)
cluster.add_node(node_ip_address=options["other"], **common)
cluster.wait_for_nodes(60)
print("both are there", flush=True)
time.sleep(100000)
"""


@contextmanager
def two_nodes(gpus: int, path: str) -> Iterator[Nodes]:
    """Run two nodes. gpus: ranks per node. path: PYTHONPATH of every process on them."""
    with tempfile.TemporaryDirectory(
        prefix="two-", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:
        yield from _two_nodes(Path(folder), gpus, path)  # the paths of Ray's sockets must be short


def _two_nodes(folder: Path, gpus: int, path: str) -> Iterator[Nodes]:
    [port] = free_ports(1)
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    nodes = Nodes(f"http://{HEAD}:{port}", token, folder / "session")
    environment = (
        os.environ
        | nodes.environment
        | {"PYTHONPATH": path, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
        # a job on a joined Ray runs with its nodes' `python`
        | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    )
    # Ray notices a lost node after 5 s instead of 15 s.
    environment["RAY_health_check_period_ms"] = "1000"
    options = {
        "gpus": gpus,
        "head": HEAD,
        "other": OTHER,
        "port": port,
        "session": str(nodes.session),
    }
    try:
        for _ in range(3):  # on a busy machine a node may exceed its 30 s to start
            with (folder / "nodes.log").open("ab") as log:
                started = subprocess.Popen(
                    [sys.executable, "-c", CLUSTER, json.dumps(options)],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=log,
                )
            assert started.stdout
            if started.stdout.readline() and wait_until(lambda: _responds(nodes), 60):
                break
            nodes.end()
        else:
            raise AssertionError((folder / "nodes.log").read_text()[-3000:])
        yield nodes
    finally:
        nodes.end()


def _responds(nodes: Nodes) -> bool:
    try:
        return len(nodes.state("nodes")) == 2
    except (OSError, TypeError, KeyError):  # the dashboard is starting
        return False
