"""Dagster's services on the settings of the profile `cluster`, with a real Postgres.

The host, the database's port and the run launcher differ: there is no Kubernetes here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.instance import ROOT, instance_settings, prepare
from resources.backup.databases import PASSWORD
from resources.config.load import load_profile
from resources.home import Home, NotReady
from resources.ray.head import free_ports
from tests.journeys.demo_run import wait_until
from tests.resources import postgres as database

PATIENCE_S = 180.0
LAUNCH = """mutation ($job: String!) { launchRun(executionParams: {selector: {jobName: $job,
repositoryName: "__repository__", repositoryLocationName: "ratchet"}, runConfigData: {}}) {
__typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STATUS = "query ($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"
TICKS = """query { sensorOrError(sensorSelector: {sensorName: "new_checkpoint", repositoryName:
"__repository__", repositoryLocationName: "ratchet"}) { __typename ... on Sensor { sensorState {
ticks(limit: 5) { tickId status } } } } }"""


class Interface:
    """Dagster's web interface, asked as a browser asks it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def ask(self, query: str, **variables: str) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                data = json.load(reply)["data"]
        except OSError:  # it starts, or its database is away
            return {}
        return data or {}

    def run(self, job: str) -> str:
        """Launch a job; return how its run ended."""
        end = time.monotonic() + PATIENCE_S
        while not (launched := self.ask(LAUNCH, job=job)):  # its connection was lost
            assert time.monotonic() < end
        assert "run" in launched["launchRun"], launched
        run, ended = launched["launchRun"]["run"]["runId"], ("SUCCESS", "FAILURE", "CANCELED")
        assert wait_until(lambda: self._status(run) in ended, PATIENCE_S)
        return self._status(run)

    def ticks(self) -> set[str]:
        """Return the ids of the latest ticks of a sensor that ended well."""
        state = self.ask(TICKS).get("sensorOrError", {}).get("sensorState", {"ticks": []})
        return {tick["tickId"] for tick in state["ticks"] if tick["status"] != "FAILURE"}

    def _status(self, run: str) -> str:
        return str((self.ask(STATUS, run=run).get("runOrError") or {}).get("status", ""))


@contextmanager
def process(environment: dict[str, str], log: Path, *command: str) -> Iterator[Any]:
    with log.open("wb") as file:
        started = subprocess.Popen(
            [sys.executable, "-m", *command], env=environment, stdout=file, stderr=file, cwd=ROOT
        )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def settings_of_cluster(server: database.Server) -> dict[str, Any]:
    settings = instance_settings(load_profile("cluster").orchestration)
    settings["run_launcher"] = instance_settings(load_profile("embedded").orchestration)[
        "run_launcher"
    ]
    server.fresh("dagster")
    settings["storage"]["postgres"]["postgres_db"] |= {
        "hostname": "127.0.0.1", "port": server.port, "username": "ratchet",
    }  # fmt: skip
    return settings


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_services_run_jobs_and_sensors_on_postgres_and_survive_its_crash(tmp_path: Path) -> None:
    grpc, web = free_ports(2)
    with database.postgres() as server, ExitStack() as stack:
        environment = os.environ | {
            PASSWORD: database.PASSWORD,
            "DAGSTER_HOME": str(tmp_path / "dagster"),
            "RATCHET_HOME": str(tmp_path / "home"),
        }
        (tmp_path / "dagster").mkdir()
        workspace = tmp_path / "dagster" / "workspace.yaml"
        (tmp_path / "dagster" / "dagster.yaml").write_text(
            yaml.safe_dump(settings_of_cluster(server))
        )
        location = {"host": "127.0.0.1", "port": grpc, "location_name": "ratchet"}
        workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": location}]}))
        code = ["dagster", "api", "grpc", "-m", "pipelines.definitions", "-p", str(grpc)]
        services = [
            stack.enter_context(process(environment, tmp_path / f"{command[0]}.log", *command))
            for command in (
                [*code, "--host", "127.0.0.1"],
                ["dagster_webserver", "-h", "127.0.0.1", "-p", str(web), "-w", str(workspace)],
                ["dagster._daemon", "run", "--workspace", str(workspace)],
            )
        ]
        interface = Interface(web)
        assert wait_until(lambda: bool(interface.ticks()), PATIENCE_S)
        assert interface.run("tell_mlflow") == "SUCCESS"
        before = interface.ticks()
        server.stop()  # as by a crash
        server.start()
        assert wait_until(lambda: bool(interface.ticks() - before), PATIENCE_S)
        assert interface.run("tell_mlflow") == "SUCCESS"
        assert [service.poll() for service in services] == [None, None, None]


def test_a_missing_password_of_the_database_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(NotReady, match=f"set its password in .* {PASSWORD}"):
        prepare(Home(tmp_path), load_profile("cluster").orchestration)
