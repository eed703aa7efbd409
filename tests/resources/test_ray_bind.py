"""Where the private Ray listens: on the loopback alone, or, for other machines, wherever Ray does, and then it asks for its token."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from resources.ray import head as ray_head
from resources.ray import private as private_ray
from tests.journeys.demo_run import wait_until
from tests.verl_jobs.test_job import a_job

pytestmark = [pytest.mark.soak, pytest.mark.timeout(200)]

ELSEWHERE = "127.0.0.2"  # stands for this machine's address on a network
SERVICES = (  # one of each of Ray's servers: GCS, raylet, object manager, worker, agent, and the door for Ray's client
    "NodeInfoGcsService/GetAllNodeInfo",
    "NodeManagerService/GetSystemConfig",
    "ObjectManagerService/Push",
    "CoreWorkerService/PushTask",
    "ReporterService/HealthCheck",
    "RayletDriver/ClusterInfo",
)
WORKS = """
import sys, time
import ray
ray.init(address=sys.argv[1], log_to_driver=False)
@ray.remote
class Actor:
    def here(self):
        return True
actor = Actor.remote()
print(ray.get(actor.here.remote()), flush=True)
time.sleep(600)
"""
ASKS = """
import sys
import grpc
addresses, services = sys.argv[1].split(","), sys.argv[2].split(",")
for address, service in ((address, service) for address in addresses for service in services):
    try:
        grpc.insecure_channel(address).unary_unary(f"/ray.rpc.{service}")(b"", timeout=20)
        print("answered", service, address)
    except grpc.RpcError as error:
        print(error.code().name, service, address)
"""


@contextmanager
def at_work(folder: Path, bind: str) -> Iterator[dict[str, set[str]]]:
    """A private Ray with an actor: the addresses on which each of its processes listens, by port."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("RAY_AUTH_MODE", ""),
            ("RAY_AUTH_TOKEN_PATH", ""),
            (ray_head.PRELOADED, ""),
        ):
            patch.setenv(name, value)
        head = private_ray.ensure_head(folder, a_job(folder), bind)
        if bind == ray_head.LOOPBACK:
            patch.setenv(
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0"
            )  # as what Ray itself starts there has it
        driver = subprocess.Popen(
            [sys.executable, "-c", WORKS, head.address], stdout=subprocess.PIPE, text=True
        )
    try:
        assert driver.stdout and driver.stdout.readline() == "True\n"
        ray = psutil.Process(json.loads((folder / "head.json").read_text())["pid"]).children()[0]
        told = set(re.findall(r"--[a-z-]+-port=(\d+)", " ".join(ray.cmdline())))
        assert len(told) == 5 and wait_until(lambda: told <= listens(ray).keys(), 120), (
            told - listens(ray).keys()
        )  # its agents come last
        yield listens(ray, psutil.Process(driver.pid))
    finally:
        driver.kill()
        about = json.loads((folder / "head.json").read_text())
        os.kill(about["pid"], signal.SIGKILL)
        shutil.rmtree(about["session"], ignore_errors=True)


def listens(*roots: psutil.Process) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for process in [*roots, *(child for root in roots for child in root.children(recursive=True))]:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                found.setdefault(str(connection.laddr.port), set()).add(
                    connection.laddr.ip.removeprefix("::ffff:")
                )
    return found


def test_a_ray_on_the_loopback_listens_nowhere_else(tmp_path: Path) -> None:
    with at_work(tmp_path / "ray", ray_head.LOOPBACK) as ports:
        assert len(ports) > 8 and set().union(*ports.values()) == {"127.0.0.1"}, ports


def test_a_ray_for_other_machines_asks_for_its_token_wherever_it_listens(tmp_path: Path) -> None:
    with at_work(tmp_path / "ray", ELSEWHERE) as ports:
        about = json.loads((tmp_path / "ray" / "head.json").read_text())
        gcs, dashboard = about["address"].rpartition(":")[2], about["dashboard"].rpartition(":")[2]
        assert about["address"] == f"{ELSEWHERE}:{gcs}" and ports[dashboard] == {ELSEWHERE}
        assert "::" in ports[gcs]  # should Ray learn to keep to one address, `ray.bind` may say so
        addresses = [
            f"{ray_head.LOOPBACK if where & {'::', '0.0.0.0', ray_head.LOOPBACK} else ELSEWHERE}:{port}"
            for port, where in ports.items()
        ]
        command = [sys.executable, "-c", ASKS, ",".join(addresses), ",".join(SERVICES)]
        told = [
            line.split()[:2]
            for line in subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        ]
        assert {service for code, service in told if code == "UNAUTHENTICATED"} == set(SERVICES), (
            told
        )
        assert not [service for code, service in told if code == "answered"], told
