"""A gateway with real models, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_folder
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Entry, Ledger

CHAT = [{"role": "user", "content": "double the number"}]


def fast(**changes: Any) -> Serving:
    """Return settings for tests: the ledger is looked at often."""
    return Serving(poll_s=0.05, **changes)


@contextmanager
def running(app: Any, settings: Serving | None = None) -> Iterator[str]:
    """Run an application as `ratchet serve` does, in a thread; yield its address."""
    from serving.gateway.server import listen, server_of

    settings = settings or fast()
    server = server_of(app, settings)
    with listen(settings, 0, has_keys=True) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive(), "the gateway ended instead of starting"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            # otherwise, if a test fails, its thread never ends
            server.should_exit = True
            thread.join()


def promote(home: Home, name: str, path: Path) -> Entry:
    return promoted(Ledger(home.ledger), name, path)


def promoted(ledger: Ledger, name: str, path: Path) -> Entry:
    """Record a real checkpoint as the new champion."""
    champion = ledger.champion()
    return ledger.append(
        "promote",
        checkpoint=name,
        checkpoint_hash=hash_folder(path),
        path=str(path),
        decision={},
        run_id=f"chain-{name}-{time.monotonic_ns()}",
        against=champion.checkpoint_hash if champion else None,
    )


def call(
    url: str,
    body: Any = None,
    key: str = "",
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json"} | dict(headers or {})
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def ask(url: str, key: str = "", **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"messages": CHAT, "max_tokens": 16} | more
    return call(f"{url}/v1/chat/completions", body, key)


def content(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["message"]["content"])


def eventually(condition: Callable[[], Any], seconds: float = 100.0) -> Any:
    """Return the condition's value once it is true. Raises AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.02)
    return value


def raw(url: str, data: bytes, seconds: float = 60.0) -> bytes:
    """Send bytes and return all that comes back until the server closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)
