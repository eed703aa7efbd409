"""Clients that read slowly, leave early or send much take nothing from the others."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from resources.config.serving import Breaker
from resources.home import Home
from serving.completion import Delta, EngineRequest
from serving.gateway.admission import Admission
from serving.gateway.observations import Observations
from tests.serving.faulty_engine import NoModel
from tests.serving.gateway_server import ask, call, eventually, fast, promote, running

LONG = {"at_once": 1, "deadline_s": 600}  # nobody loses a place because his time is over


class Flood(NoModel):
    """An engine whose pieces are 100 kB long: `pieces` of them for a prompt that says flood."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        for _ in range(self.pieces if "flood" in str(request.chat) else 1):
            yield Delta(0, "x" * 100_000, 1)
        yield Delta(0, "", 0, (), "stop", 1)


def flooded(home: Home, path: Path, pieces: int, **settings: Any) -> Any:
    from serving.gateway.app import make_app

    promote(home, "old", path)
    chosen = fast(**settings)
    return running(make_app(home, chosen, open_engine=lambda *_: Flood(pieces)), chosen)


def open_stream(url: str, text: str) -> socket.socket:
    """Send a request for a stream, and read nothing of it."""
    body = json.dumps({"messages": [{"role": "user", "content": text}], "stream": True}).encode()
    host, port = url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect((host, int(port)))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    connection.sendall(head.encode() + b"\r\nContent-Type: application/json\r\n\r\n" + body)
    return connection


def running_now(url: str) -> int:
    return int(call(f"{url}/models")[1]["versions"][0]["running"])


def test_a_client_that_reads_nothing_loses_its_turn(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(flooded(home, checkpoints["old"], 1000, stall_s=0.5, **LONG))
        stack.enter_context(open_stream(url, "flood"))
        eventually(lambda: running_now(url) == 1)
        eventually(lambda: running_now(url) == 0)
        assert ask(url)[0] == 200


def test_a_slow_client_is_no_failure_of_the_version(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    breaker = Breaker(consecutive=1, slow_s=2.0)
    with ExitStack() as stack:
        url = stack.enter_context(flooded(home, checkpoints["old"], 100, breaker=breaker))
        connection = stack.enter_context(open_stream(url, "flood"))
        time.sleep(3)
        while b"[DONE]" not in connection.recv(2**20):
            pass
        assert call(f"{url}/models")[1]["versions"][0]["breaker"] == "closed"
        rows = Observations(home.observations)
        eventually(lambda: list(rows.read()))
        assert [row.total_s < 2.0 for _, row in rows.read()] == [True]


@pytest.mark.slow
def test_a_client_that_reads_too_slowly_is_cut_off_at_the_deadline(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(flooded(home, checkpoints["old"], 10_000, deadline_s=1.0))
        connection = stack.enter_context(open_stream(url, "flood"))
        last = b""
        while part := connection.recv(2**18):
            last = (last + part)[-500:]
            time.sleep(0.01)
            if b"slow_client" in last:
                break
        assert b"slow_client" in last
        rows = Observations(home.observations)
        eventually(lambda: list(rows.read()))
        assert [row.error for _, row in rows.read()] == ["gone"]


def test_a_stream_that_leaves_the_queue_frees_its_place(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    def queued(url: str) -> int:
        return int(call(f"{url}/models")[1]["versions"][0]["queued"])

    with ExitStack() as stack:
        url = stack.enter_context(flooded(home, checkpoints["old"], 1000, **LONG))
        stack.enter_context(open_stream(url, "flood"))
        eventually(lambda: running_now(url) == 1)
        waiting = open_stream(url, "second")
        eventually(lambda: queued(url) == 1)
        waiting.close()
        eventually(lambda: queued(url) == 0)


def test_a_turn_given_at_the_deadline_is_given_back() -> None:
    async def scenario() -> int:
        admission = Admission(at_once=1, waiting=1)
        loop = asyncio.get_running_loop()
        first = admission.turn(0, loop.time() + 10)
        await first.__aenter__()

        async def second() -> None:
            with pytest.raises(TimeoutError):
                async with admission.turn(0, loop.time() + 0.05):
                    pass

        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        ending = asyncio.create_task(first.__aexit__(None, None, None))
        time.sleep(0.1)  # the loop is busy: turn and deadline come in the same round
        await asyncio.gather(waiting, ending)
        return admission.running

    assert asyncio.run(scenario()) == 0


@pytest.mark.slow
def test_a_long_prompt_does_not_stop_other_requests(
    home: Home, checkpoints: dict[str, Path]
) -> None:
    from serving.gateway.app import make_app

    promote(home, "old", checkpoints["old"])
    with running(make_app(home, fast())) as url, ThreadPoolExecutor(1) as pool:
        long = pool.submit(call, f"{url}/v1/completions", {"prompt": "a " * 150_000})
        answered = 0
        while not long.done():
            answered += call(f"{url}/health/live")[0] == 200
        assert long.result()[0] == 400
        assert answered > 5
