"""A web server that takes apprise's `json://` messages, on a free port of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Receiver:
    """bodies: of the messages. answer: the HTTP status of the next ones."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answer, self.port = 200, 0

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.port}/"

    @property
    def titles(self) -> list[str]:
        return [body["title"].removeprefix("ratchet: ") for body in self.bodies]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Yield a receiver that listens."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if state.answer == 200:
                state.bodies.append(json.loads(body))
            self.send_response(state.answer)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_port
        Thread(target=server.serve_forever, daemon=True).start()
        yield state
        server.shutdown()
