"""A gateway that is killed and started again, and clients that send requests meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

from resources.home import Home
from tests.children import children
from tests.serving.gateway_server import call, eventually
from tests.serving.test_serve_process import ROOT, free_port, ready

CLIENTS, PAUSE_S = 3, 0.1  # seconds between two requests of a client
FAILURES = (OSError, HTTPException, ValueError, KeyError)  # of a request
PATIENCE_S = 600.0  # until everything runs again on a busy machine
KEEP_OFTEN = (  # the running sum, so that a gateway that starts again continues from it
    "from serving.release import arms; arms.EVERY = 25; import cli.main; cli.main.main()"
)


class Gateway:
    """`ratchet serve` on one port; started again after it was killed, as a supervisor does."""

    def __init__(self, home: Home, profile: Path, environment: dict[str, str]) -> None:
        self.port, self.home = free_port(), home
        self.url = f"http://127.0.0.1:{self.port}"
        arguments = ["serve", "--port", str(self.port), "--profile", str(profile)]
        self.command = [sys.executable, "-c", KEEP_OFTEN, *arguments]
        self.environment = os.environ | environment | {"RATCHET_HOME": str(home.path)}

    @contextmanager
    def runs(self) -> Iterator[None]:
        try:
            self.start()
            yield
        finally:
            self.process.kill()

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
    """Sends requests, half of them as streams, each with at most one retry. answered: id -> model
    that the answer names.
    """

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.url, self.number, self.stop = url, number, stop
        self.answered: dict[str, str] = {}
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
                "max_tokens": 16,  # fewer would shape the answer, which then is no evidence
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
        self.answered[name.rsplit("-", 1)[-1]] = model


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
