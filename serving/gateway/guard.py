"""The first look at a request: who sends it, how large it is, how long its body takes.

An ASGI application around the gateway's. It hands over `caller` and `body` in `scope["state"]`, and
the body as one message too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from resources.config.serving import Serving
from serving.gateway.keys import ANYBODY, ApiKey, Keys, RateLimit
from serving.gateway.refusals import Refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Headers = Mapping[bytes, bytes]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
OPEN = (
    "/",  # leads to the page
    *("/health/live", "/health/ready", "/health"),  # for load balancers, which have no key
    # A browser has none either when it opens a page; what the page shows needs an operator's key.
    *("/releases/page", "/releases/page.css", "/releases/page.js"),
)
LOOPBACK = ("localhost", "127.0.0.1", "::1", "testserver")
OPERATORS = ("/metrics", "/models", "/releases", "/experiments")


class Guard:
    """An ASGI application that checks each request before the gateway sees it.

    app: the gateway. keys: read again from time to time by their owner. count: takes the code of
    each refusal.
    """

    def __init__(
        self, app: App, keys: Keys, settings: Serving, count: Callable[[str], None]
    ) -> None:
        self.app, self.keys, self.settings, self.count = app, keys, settings, count
        self.rate = RateLimit()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        send = _named(send, headers.get(b"x-request-id", b""))
        try:
            caller = self._caller(scope["path"], headers)
            body = await self._body(headers, receive, caller)
        except Refused as refusal:
            self.count(refusal.code)
            await respond(send, refusal)
            return
        if body is None:  # the client left
            return
        scope.setdefault("state", {}).update(caller=caller, body=body)
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self.app(scope, replay, send)

    def _caller(self, path: str, headers: Headers) -> ApiKey:
        if path in OPEN:
            return ANYBODY
        caller = self.keys.caller(headers.get(b"authorization", b"").decode("latin-1"))
        if caller is ANYBODY:
            _only_this_machine(headers)
            return caller
        needed = path.startswith(OPERATORS)
        if needed and caller.role != "operator":
            raise Refused(403, "not_an_operator", "this needs the key of an operator")
        self.rate.take(caller, caller.requests_per_minute or self.settings.requests_per_minute)
        return caller

    async def _body(self, headers: Headers, receive: Receive, caller: ApiKey) -> bytes | None:
        """Return the body; None if the client left. A body that is too large is read on without
        being kept: a client that still sends would not see the refusal.
        """
        most = int((caller.body_mib or self.settings.body_mib) * 2**20)
        if (encoding := headers.get(b"content-encoding", b"identity").lower()) != b"identity":
            message_ = f"the body is encoded as {encoding.decode('latin-1')[:40]!r}: send it plain"
            raise Refused(415, "unsupported_encoding", message_)
        length = headers.get(b"content-length", b"0")
        if b"expect" in headers and length.isdigit() and int(length) > most:
            raise _too_large(most)  # the client waits before it sends the body
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.settings.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= most:
                        parts.append(part)
                    else:
                        parts.clear()
                    if not message.get("more_body"):
                        break
        except TimeoutError as error:
            if size > most:
                raise _too_large(most) from error
            message_ = f"the body did not arrive within {self.settings.body_s:g} s"
            raise Refused(408, "body_timeout", message_) from error
        if size > most:
            raise _too_large(most)
        return b"".join(parts)


def _named(send: Send, given: bytes) -> Send:
    """Return `send` with the header `x-request-id`: the client's own, else a new one."""
    name = given if re.fullmatch(rb"[\w.:-]{1,128}", given) else b"req_" + token_hex(16).encode()

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", name)]
        await send(message)

    return named


def _too_large(most: int) -> Refused:
    return Refused(413, "body_too_large", f"the body is larger than {most} bytes")


def _only_this_machine(headers: Headers) -> None:
    """Refuse what a web page of another site sends through a browser of this machine."""
    hosts = [_host_of(b"//" + headers.get(b"host", b"localhost"))]
    if origin := headers.get(b"origin"):
        hosts.append(_host_of(origin))
    if any(host not in LOOPBACK for host in hosts):
        raise Refused(403, "other_site", "without API keys, only pages of this machine may ask")


@lru_cache
def _host_of(url: bytes) -> str | None:
    try:
        return urlsplit(url.decode("latin-1")).hostname
    except ValueError:  # half an IPv6 address
        return None


async def respond(send: Send, refusal: Refused) -> None:
    body = json.dumps(refusal.body()).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    headers |= {"connection": "close"} if refusal.status in (408, 413) else {}
    headers |= {name.lower(): value for name, value in refusal.headers.items()}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
