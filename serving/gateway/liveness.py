"""Liveness on a port and a thread of its own.

Under load the gateway's event loop answers late, and a probe that shares it would have a busy
gateway restarted. In: the loop. Out: `GET /health/live`, plain HTTP: 200 while the loop runs, 503
once it has been stuck for `STUCK_S`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from resources.home import NotReady

STUCK_S = 300.0


class Liveness(ThreadingHTTPServer):
    """Answers until `close`. Raises NotReady if the port is in use."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], loop: asyncio.AbstractEventLoop, stuck_s: float = STUCK_S
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise NotReady(
                f"cannot bind port {address[1]} on {address[0]} ({error.strerror}): choose another "
                "serving.liveness_port in the profile"
            ) from error
        self.loop, self.stuck_s = loop, stuck_s
        self._asked: float | None = None
        threading.Thread(target=self.serve_forever, name="liveness", daemon=True).start()

    def late_s(self) -> float:
        """Return the seconds since the oldest call that the loop has not run yet."""
        now, asked = time.monotonic(), self._asked  # the loop may reset it at any time
        if asked is None:
            asked = self._asked = now
            self.loop.call_soon_threadsafe(self._ran)
        return now - asked

    def _ran(self) -> None:
        self._asked = None

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Liveness

    def do_GET(self) -> None:
        if self.path != "/health/live":
            self._answer(404, "only /health/live is on this port")
        elif (late_s := self.server.late_s()) < self.server.stuck_s:
            self._answer(200, "ok")
        else:
            self._answer(503, f"the event loop has been stuck for {late_s:.0f} s")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a probe comes every few seconds."""
