"""`kill -9` of a gateway, its engines, Ray's replicas and its database, at random moments under
load: with one retry no request is lost, and the records are whole.

RATCHET_KILLS: kills of all parts together, 100 by default; a quarter of them with Ray.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases, deployed
from serving.gateway.observations import Observations
from tests.children import children
from tests.resources.postgres import PASSWORD, postgres
from tests.sandbox.engines import ray_cluster
from tests.serving import vllm_stand_in
from tests.serving.gateway_server import call, eventually, promoted
from tests.serving.test_replicas import replicas
from tests.serving.test_serve_process import ROOT, free_port, ready
from tests.serving.traffic import SETTINGS, open_release

KILLS = int(os.environ.get("RATCHET_KILLS", "100"))
CLIENTS, PAUSE_S = 3, 0.1  # seconds between two requests of a client
FAILURES = (OSError, HTTPException, ValueError, KeyError)  # of a request
PATIENCE_S = 300.0  # until everything runs again on a busy machine
STEPS = SETTINGS.model_copy(update={"shares": (0.5,), "min_pairs": 20, "errors_margin": 0.9})


class Gateway:
    """`ratchet serve` on one port; started again after it was killed, as a supervisor does."""

    def __init__(self, home: Home, profile: Path, environment: dict[str, str]) -> None:
        self.port, self.home = free_port(), home
        self.url = f"http://127.0.0.1:{self.port}"
        arguments = ["serve", "--port", str(self.port), "--profile", str(profile)]
        self.command = [sys.executable, "-m", "cli.main", *arguments]
        self.environment = os.environ | environment | {"RATCHET_HOME": str(home.path)}
        self.start()

    def start(self) -> None:
        with (self.home.path / "gateway.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )
        eventually(lambda: ready(self.url), PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.start()

    def kill_engine(self) -> None:
        """Kill one of the engine's processes; the gateway starts it again."""
        random.choice(self.engines()).kill()

    def engines(self) -> list[psutil.Process]:
        """Return the engines' processes that run."""
        return children(" serve ", self.process.pid)

    def loaded(self) -> int:
        """Return how many versions are loaded."""
        with suppress(OSError, ValueError, KeyError):
            versions = call(f"{self.url}/models")[1]["versions"]
            return sum(version["loaded"] for version in versions)
        return 0


class Client(threading.Thread):
    """Sends requests, half of them as streams, each with at most one retry. answered: ids."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.url, self.number, self.stop = url, number, stop
        self.answered: list[str] = []
        self.texts: Counter[tuple[str, str]] = Counter()
        self.lost: list[str] = []
        self.retries = 0

    def run(self) -> None:
        sent = 0
        while not self.stop.is_set() and not self.lost:
            sent += 1
            time.sleep(PAUSE_S)
            body = {
                "messages": [{"role": "user", "content": "double the number"}],
                "max_tokens": 8,
                "user": f"{self.number}-{sent}",
                "stream": sent % 2 == 0,
            }
            try:
                self.send(body)
            except FAILURES:
                self.retries += 1
                eventually(lambda: ready(self.url), PATIENCE_S)
                try:
                    self.send(body)
                except FAILURES as error:
                    detail = error.read() if hasattr(error, "read") else b""
                    self.lost.append(f"{error!r} {detail[:300]!r}")

    def send(self, body: dict[str, Any]) -> None:
        """Raises one of FAILURES unless the whole answer arrives."""
        request = urllib.request.Request(
            f"{self.url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as reply:
            data = reply.read().decode()
        if body["stream"]:
            *events, done = data.strip().split("\n\n")
            if done != "data: [DONE]":
                raise ValueError(data[-200:])
            chunks = [json.loads(event.removeprefix("data: ")) for event in events]
            text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks)
            name, model = chunks[0]["id"], chunks[0]["model"]
        else:
            whole = json.loads(data)
            text, name = whole["choices"][0]["message"]["content"], whole["id"]
            model = whole["model"]
        self.texts[model, text] += 1
        self.answered.append(name.rsplit("-", 1)[-1])


@contextmanager
def clients(url: str) -> Iterator[list[Client]]:
    stop = threading.Event()
    threads = [Client(url, number, stop) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)


def kill_under_load(
    gateway: Gateway,
    place: Path | str,
    kills: int,
    ways: dict[str, Callable[[], None]],
    whole: Callable[[], bool],
) -> None:
    """Kill in random ways, each time after every client has got answers again.

    whole: whether all engines run, so that never two of them are dead at once.
    """
    ledger, releases = Ledger(place, gateway.home.path), Releases(place)
    done: Counter[str] = Counter()
    with clients(gateway.url) as threads:
        for _ in range(kills):
            before = [len(each.answered) for each in threads]

            def settled(before: list[int] = before) -> bool:
                assert not any(each.lost for each in threads), [each.lost for each in threads]
                return whole() and all(
                    len(each.answered) > start + 2
                    for each, start in zip(threads, before, strict=True)
                )

            eventually(settled, PATIENCE_S)
            known = releases.all()
            if not (known and known[-1].open):
                challenger = 3 - (deployed(known) or 1)
                open_release(ledger, releases, STEPS, challenger)
            time.sleep(random.uniform(0, 0.5))
            way = random.choice(list(ways))
            ways[way]()
            done[way] += 1
            print(sum(done.values()), way, flush=True)
        eventually(lambda: ready(gateway.url), PATIENCE_S)
    gateway.process.terminate()
    gateway.process.wait(PATIENCE_S)
    assert not any(each.lost for each in threads)
    texts = {text for each in threads for text in each.texts}
    assert len(texts) <= 2, texts  # each version gives one text, never a part of it
    answered = [name for each in threads for name in each.answered]
    recorded = {row.response for _, row in Observations(gateway.home.observations).read()}
    missing = [name for name in answered if name not in recorded]
    ended = Counter(release.state for release in releases.all())
    retries = sum(each.retries for each in threads)
    print(
        f"{dict(done)}: {len(answered)} answers, {retries} retried, {len(missing)} not recorded, "
        f"releases {dict(ended)}"
    )
    assert len(missing) <= 4 * CLIENTS * done["gateway"]  # of the last 50 ms before each kill
    with closing(sqlite3.connect(gateway.home.observations)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        numbers = connection.execute("SELECT MAX(number), COUNT(*) FROM observations").fetchone()
        assert numbers[0] == numbers[1]
    assert len(ledger.history()) == 2


@pytest.mark.soak
def test_gateway_engines_and_database_are_killed(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    with postgres() as server:
        place = server.fresh("kills")
        ledger = Ledger(place, home.path)
        for name in ("old", "new"):
            promoted(ledger, name, checkpoints[name])
        profile = tmp_path / "kills.yaml"
        profile.write_text(
            f"extends: embedded\nstorage: {{ledger: '{place}'}}\n"
            "serving: {engine: vllm, poll_s: 0.2}\n"
        )
        bin_ = vllm_stand_in.install(tmp_path / "bin")
        path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
        gateway = Gateway(home, profile, {"PATH": path, "PGPASSWORD": PASSWORD})

        def restart_database() -> None:
            server.stop()
            time.sleep(random.uniform(0, 2))
            server.start()

        def whole() -> bool:
            return len(gateway.engines()) == 2 and gateway.loaded() == 2

        ways = {
            "gateway": gateway.kill,
            "engine": gateway.kill_engine,
            "database": restart_database,
        }
        try:
            kill_under_load(gateway, place, KILLS - KILLS // 4, ways, whole)
        finally:
            gateway.process.kill()


@pytest.mark.soak
def test_gateway_and_replicas_are_killed(
    home: Home, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    ledger = Ledger(home.ledger, home.path)
    for name in ("old", "new"):
        promoted(ledger, name, checkpoints[name])
    with ray_cluster() as cluster:
        profile = tmp_path / "kills.yaml"
        profile.write_text(
            "extends: embedded\nserving:\n  engine: ray\n  poll_s: 0.2\n  replicas:\n"
            f"    {{address: '{cluster.address}', min_replicas: 2, max_replicas: 2, cpus: 0.25}}\n"
        )
        gateway = Gateway(home, profile, {})

        def kill_replica() -> None:
            with suppress(IndexError, psutil.NoSuchProcess):
                random.choice(replicas()).kill()

        ways = {"gateway": gateway.kill, "replica": kill_replica}
        try:
            kill_under_load(gateway, home.ledger, KILLS // 4, ways, lambda: len(replicas()) == 4)
        finally:
            gateway.process.kill()
