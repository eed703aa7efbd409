"""Liveness is answered while the gateway's event loop is busy, and not once it is stuck."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing

import pytest

from resources.home import NotReady
from serving.gateway.guard import Send
from serving.gateway.liveness import Liveness
from tests.serving.gateway_server import eventually, fast, running
from tests.serving.test_serve_process import free_port


def status(port: int, path: str = "/health/live") -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_gateway_answers_while_its_loop_is_busy() -> None:
    busy, free = threading.Event(), threading.Event()

    async def app(scope: dict[str, object], receive: object, send: Send) -> None:
        assert scope["type"] == "http"
        busy.set()
        free.wait(60)  # holds the loop
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    port = free_port()
    with running(app, fast(liveness_port=port)) as url:
        asking = threading.Thread(target=status, args=(int(url.rsplit(":", 1)[1]),))
        asking.start()
        assert busy.wait(60)
        answered = [status(port) for _ in range(3)]
        free.set()
        asking.join()
    assert answered == [200, 200, 200]


def test_a_stuck_loop_is_not_alive_until_it_runs_again(loop: asyncio.AbstractEventLoop) -> None:
    free = threading.Event()
    with closing(Liveness(("127.0.0.1", 0), loop, stuck_s=0.1)) as server:
        port = server.server_address[1]
        assert status(port) == 200
        loop.call_soon_threadsafe(free.wait)
        eventually(lambda: status(port) == 503)
        free.set()
        eventually(lambda: status(port) == 200)


def test_a_port_in_use_is_named_with_the_key(loop: asyncio.AbstractEventLoop) -> None:
    with closing(Liveness(("127.0.0.1", 0), loop)) as server:
        assert status(server.server_address[1], "/metrics") == 404
        with pytest.raises(NotReady, match=r"serving\.liveness_port"):
            Liveness(("127.0.0.1", int(server.server_address[1])), loop)
