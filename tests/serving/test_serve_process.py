"""`ratchet serve` as a process: what a signal and a kill do to requests."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from serving.gateway.observations import Observations
from tests.serving.clients import Clients
from tests.serving.gateway_server import call, eventually, promote
from tests.serving.traffic import SETTINGS, open_release

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0  # for what takes seconds on an idle machine


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(home: Home, port: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `ratchet serve`, and yield it once it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "serve", "--port", str(port), *options],
        cwd=ROOT,
        env=os.environ | {"RATCHET_HOME": str(home.path)},
    )
    try:
        eventually(lambda: ready(f"http://127.0.0.1:{port}"), PATIENCE_S)
        yield process
    finally:
        process.kill()
        process.wait()


def ready(url: str) -> bool:
    with suppress(OSError):
        return call(f"{url}/health/ready")[0] == 200
    return False


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_cost_no_request_and_a_stop_not_the_one_under_way(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    """Two `kill -9` during a release, clients with one retry; then SIGTERM during a stream."""
    for name in ("old", "new"):
        promote(home, name, checkpoints[name])
    releases = Releases(home.ledger)
    steps = SETTINGS.model_copy(update={"bake_s": 3.0, "shares": (0.5,)})
    open_release(Ledger(home.ledger), releases, steps, 2)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with Clients(url) as clients:
        for _ in range(2):
            with serving(home, port):  # killed at the end
                clients.get_answers(10)
        with serving(home, port) as process:
            eventually(lambda: not releases.all()[-1].open, PATIENCE_S)
            clients.end()
            stop_during_a_stream(url, process)
    kinds = [(event.kind, event.step) for event in releases.all()[-1].events]
    assert kinds == [("opened", 0), ("step", 1), ("promoted", 1)]  # the last step is the watch
    assert set(clients.statuses) == {200}
    rows = list(Observations(home.observations).read())
    with closing(sqlite3.connect(home.observations)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    # Rows of about the last 50 ms before a kill may be missing.
    assert len(rows) >= clients.statuses.total() - 2 * 12


def stop_during_a_stream(url: str, process: subprocess.Popen[bytes]) -> None:
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 100, "stream": True}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        first = reply.readline()
        process.terminate()
        rest = reply.read()
    assert first.startswith(b"data: {")
    assert rest.endswith(b"data: [DONE]\n\n")
    assert process.wait(PATIENCE_S) == 0
