"""A private Ray listens on the loopback only; one for other machines requires its token."""

from __future__ import annotations

import json
import os
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

ELSEWHERE = "127.0.0.2"  # takes the place of this machine's network address
# One service of each server of Ray: GCS, raylet, object manager, worker, agent.
SERVICES = (
    "NodeInfoGcsService/GetAllNodeInfo",
    "NodeManagerService/GetSystemConfig",
    "ObjectManagerService/Push",
    "CoreWorkerService/PushTask",
    "ReporterService/HealthCheck",
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
    """Run a private Ray with an actor; give the addresses that its processes listen on, by port."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("RAY_AUTH_MODE", ""),
            ("RAY_AUTH_TOKEN_PATH", ""),
            (ray_head.PRELOADED, ""),
        ):
            patch.setenv(name, value)
        head = private_ray.ensure_head(folder, a_job(folder), bind)
        if bind == ray_head.LOOPBACK:
            # Ray sets this variable for the processes that it starts on the loopback.
            patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        driver = subprocess.Popen(
            [sys.executable, "-c", WORKS, head.address], stdout=subprocess.PIPE, text=True
        )
    try:
        assert driver.stdout
        assert driver.stdout.readline() == "True\n"
        about = json.loads((folder / "head.json").read_text())
        ray = psutil.Process(about["pid"]).children()[0]
        wanted = {about[name].rpartition(":")[2] for name in ("address", "dashboard")}
        assert wait_until(lambda: wanted <= listens(ray).keys(), 120), wanted - listens(ray).keys()
        yield listens(ray, psutil.Process(driver.pid))
    finally:
        driver.kill()
        about = json.loads((folder / "head.json").read_text())
        os.kill(about["pid"], signal.SIGKILL)
        shutil.rmtree(about["session"], ignore_errors=True)


def listens(*roots: psutil.Process) -> dict[str, set[str]]:
    addresses: dict[str, set[str]] = {}
    for process in [*roots, *(child for root in roots for child in root.children(recursive=True))]:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                addresses.setdefault(str(connection.laddr.port), set()).add(
                    connection.laddr.ip.removeprefix("::ffff:")
                )
    return addresses


def test_a_loopback_ray_listens_only_there(tmp_path: Path) -> None:
    with at_work(tmp_path / "ray", ray_head.LOOPBACK) as ports:
        assert len(ports) > 8, ports
        assert set().union(*ports.values()) == {"127.0.0.1"}, ports


def test_a_bound_ray_requires_its_token_on_every_port(tmp_path: Path) -> None:
    with at_work(tmp_path / "ray", ELSEWHERE) as ports:
        about = json.loads((tmp_path / "ray" / "head.json").read_text())
        gcs, dashboard = about["address"].rpartition(":")[2], about["dashboard"].rpartition(":")[2]
        assert about["address"] == f"{ELSEWHERE}:{gcs}"
        assert ports[dashboard] == {ELSEWHERE}
        assert "::" in ports[gcs]  # if Ray learns to bind to one address, `ray.bind` may do so
        loopback = {"::", "0.0.0.0", ray_head.LOOPBACK}
        addresses = [
            f"{ray_head.LOOPBACK if where & loopback else ELSEWHERE}:{port}"
            for port, where in ports.items()
        ]
        command = [sys.executable, "-c", ASKS, ",".join(addresses), ",".join(SERVICES)]
        answers = [
            line.split()[:2]
            for line in subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        ]
        assert {service for code, service in answers if code == "UNAUTHENTICATED"} == set(
            SERVICES
        ), answers
        assert not [service for code, service in answers if code == "answered"], answers
