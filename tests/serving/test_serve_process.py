"""`ratchet serve` as a process: what a signal and a kill do to requests."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from resources.home import Home
from serving.gateway.observations import Observations
from tests.serving.gateway_server import ask, call, eventually, promote

ROOT = Path(__file__).parents[2]


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
        eventually(lambda: ready(f"http://127.0.0.1:{port}"), 60)
        yield process
    finally:
        process.kill()
        process.wait()


def ready(url: str) -> bool:
    with suppress(OSError):
        return call(f"{url}/health/ready")[0] == 200
    return False


def more_than(answered: list[int], number: int) -> None:
    eventually(lambda: answered[0] > number)


@pytest.mark.slow
def test_sigterm_lets_requests_under_way_finish(home: Home, checkpoints: dict[str, Path]) -> None:
    promote(home, "old", checkpoints["old"])
    port = free_port()
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 100, "stream": True}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with serving(home, port) as process:
        with urllib.request.urlopen(request, timeout=60) as reply:
            first = reply.readline()
            process.terminate()
            rest = reply.read()
        assert first.startswith(b"data: {") and rest.endswith(b"data: [DONE]\n\n")
        assert process.wait(20) == 0


@pytest.mark.slow
def test_after_kill_9_the_record_is_whole_and_clients_with_a_retry_lose_nothing(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    promote(home, "old", checkpoints["old"])
    port, stop, answered = free_port(), threading.Event(), [0]
    url = f"http://127.0.0.1:{port}"

    def client() -> None:
        while not stop.is_set():
            end = time.monotonic() + 60
            while time.monotonic() < end:  # the retry
                with suppress(OSError, ValueError, ConnectionError):
                    if ask(url, max_tokens=8)[0] == 200:
                        answered[0] += 1
                        break
                time.sleep(0.05)
            else:
                raise AssertionError("a request was lost")

    threads = [threading.Thread(target=client) for _ in range(3)]
    for kill in range(3):
        with serving(home, port) as process:
            if kill == 0:
                for thread in threads:
                    thread.start()
            more_than(answered, answered[0] + 5)
            if kill == 2:
                stop.set()
                for thread in threads:
                    thread.join()
            process.send_signal(signal.SIGKILL)
            process.wait()
    rows = list(Observations(home.observations).read())
    with closing(sqlite3.connect(home.observations)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    # Rows of about the last 50 ms before a kill may be missing.
    assert answered[0] >= 15 and len(rows) >= answered[0] - 3 * 12
