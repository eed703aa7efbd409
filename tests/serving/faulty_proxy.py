"""A model behind the project's own gateway, and a faulty proxy in front of the gateway.

The proxy fails in every way that HTTP can. There are real sockets on both sides.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from resources.home import Home
from tests.serving.gateway_server import fast, promote, running

FAULTS = ("429", "500", "nonsense", "half", "nothing", "cut", "hang up")
FAULTY = {
    "429": (429, b"slow down"),
    "500": (500, b"oops"),
    "nonsense": (200, b"<html>hello</html>"),
    "half": (200, b'{"choices": [{"mess'),
    "nothing": (200, b""),
}


@dataclass
class FaultyProxy:
    """A proxy that forwards requests, or applies the next of `faults` to them.

    A fault costs the client another attempt.
    """

    server: str
    faults: list[str] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)  # request bodies that the model answered
    models: list[str] = field(default_factory=list)  # faults of the list of models
    retry_after: str = "0"
    wait_s: float = 0.0
    url: str = ""


@contextmanager
def served(folder: Path, home: Home) -> Iterator[str]:
    """Run the gateway with the checkpoint in `folder` as champion; yield host:port."""
    from serving.gateway.app import make_app

    home.make()
    promote(home, "tiny", folder)
    with running(make_app(home, fast())) as url:
        yield url.removeprefix("http://")


@contextmanager
def proxy_to(server: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(server)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fault = ""
            # each request has a thread of its own
            with contextlib.suppress(IndexError):
                fault = proxy.faults.pop(0)
            status, answer = (
                self._forward(body)
                if fault in ("", "cut")
                else FAULTY.get(fault, (500, b"out of order"))
            )
            self.close_connection = True
            if fault == "hang up":
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            if status == 429:
                self.send_header("Retry-After", proxy.retry_after)
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2] if fault == "cut" else answer)

        def do_GET(self) -> None:
            status, answer = (
                FAULTY[proxy.models.pop(0)] if proxy.models else self._forward(b"", "GET")
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _forward(self, body: bytes, method: str = "POST") -> tuple[int, bytes]:
            if method == "POST":
                proxy.heard[body.decode()] += 1
                time.sleep(proxy.wait_s)
            connection = http.client.HTTPConnection(proxy.server)
            connection.request(method, self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Listening(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore the error: a killed client is not a failure of the proxy."""

    listening = Listening(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}).start()
    proxy.url = f"http://127.0.0.1:{listening.server_address[1]}/v1"
    try:
        yield proxy
    finally:
        listening.shutdown()
        listening.server_close()
