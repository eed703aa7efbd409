"""Runs the gateway: sockets, TLS, signals, slow connections.

SIGTERM and Ctrl-C: no new connections, requests under way get DRAIN_S seconds to finish.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import re
import socket
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from resources.config.serving import DRAIN_S, Serving
from resources.home import NotReady
from serving.gateway.guard import Guard
from serving.gateway.liveness import Liveness

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
H2C = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection whose request head does not arrive within `head_s` or is larger than
    about `head_bytes`, or whose client reads nothing for `read_s`.

    An offer to speak HTTP/2 is ignored, as the standard allows: uvicorn would lose the body of such
    a request. Java's own client makes it with its first one.
    """

    head_s = 10.0
    read_s = 20.0
    head_bytes = 65_536

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        self._arrived += len(data)
        if self._head is None and self.cycle is not None and self.cycle.response_complete:
            self._expect_head()
        if self._head and b"h2c" in data:
            head, end, body = data.partition(b"\r\n\r\n")
            data = H2C.sub(b"", head + end[:2]) + end[2:] + body
        super().data_received(data)
        # Before it is known whose request it is, no more is kept than a head needs.
        if self._head and self._arrived > self.head_bytes and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        if self._head:
            self._head.cancel()
            self._head = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._unread):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread = self.loop.call_later(self.read_s, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._unread:
            self._unread.cancel()
        super().resume_writing()

    def _expect_head(self) -> None:
        self._head = self.loop.call_later(self.head_s, self.transport.close)
        self._arrived = 0


class Server(uvicorn.Server):
    """Once started, leaves what is loaded out of garbage collection: every request would wait while
    a full collection walks all modules. `liveness`: where that is answered from its own thread.
    """

    liveness: tuple[str, int] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Raises NotReady if the port of `liveness` is in use."""
        with ExitStack() as stack:
            if self.liveness:
                loop = asyncio.get_running_loop()
                stack.enter_context(closing(Liveness(self.liveness, loop)))
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(settings: Serving, port: int, has_keys: bool) -> socket.socket:
    """Return a socket that listens. Raises NotReady: the port is in use, or people on the network
    could send requests without a key.
    """
    host = settings.host
    if not has_keys and not is_loopback(host):
        raise NotReady(
            f"serving.host is {host}, and there are no API keys: make one with `ratchet keys add`, "
            "or listen on 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With protocol 0, asyncio would not switch off Nagle's algorithm: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise NotReady(
            f"cannot bind port {port} on {host} ({error.strerror}): choose another with --port"
        ) from error
    listener.listen(1024)
    return listener


def server_of(app: Guard, settings: Serving) -> uvicorn.Server:
    """Return the server; `run(sockets=[...])` serves until a signal. Raises NotReady if a file of
    TLS is missing.
    """
    for file in (settings.tls_certificate, settings.tls_key):
        if file and not Path(file).is_file():
            raise NotReady(f"serving: no TLS file {file}")
    protocol = type(
        "Protocol", (PatientProtocol,), {"head_s": settings.body_s, "read_s": settings.stall_s}
    )
    server = Server(
        uvicorn.Config(
            app,
            http=protocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=DRAIN_S + 1,
            ssl_certfile=settings.tls_certificate or None,
            ssl_keyfile=settings.tls_key or None,
        )
    )
    if settings.liveness_port:
        server.liveness = settings.host, settings.liveness_port
    return server
