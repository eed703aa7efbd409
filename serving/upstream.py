"""A client of OpenAI-compatible servers for engines: streams, token counts, errors.

In: an `EngineRequest`. Out: `Delta`s, as the server sends them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from serving.completion import (
    Delta,
    EngineFailed,
    EngineRequest,
    PromptTooLong,
    TokenLogprob,
    Unsupported,
)

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 5.0
KEEP_S = 4.0  # of an idle connection: uvicorn closes it after 5 s
logger = logging.getLogger(__name__)
ENDINGS = ("stop", "length", "tool_calls")


class Upstream:
    """A client of one OpenAI-compatible server.

    url: of the server, up to /v1. model: its name there. key: "" for none.

    How long an answer may take is for the caller to limit. The client is aiohttp's: httpx' pool
    looks at every connection for each request, which was two thirds of the gateway's own time.
    """

    def __init__(self, url: str, model: str, key: str = "") -> None:
        self.url, self.model = url.rstrip("/"), model
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        """Yield the completions' pieces. Raises PromptTooLong, Unsupported, EngineFailed."""
        import aiohttp

        chat = not isinstance(request.chat, str)
        path = "/chat/completions" if chat else "/completions"
        counted, open_, prompt_tokens = 0, request.n, 0
        try:
            async with await self._posted(path, self._body(request)) as reply:
                if reply.status != 200:
                    raise _error(reply.status, await reply.read())
                async for event in _events(reply.content.iter_any()):
                    if "error" in event:
                        raise EngineFailed(f"the server broke off: {_message(event)}")
                    if usage := event.get("usage"):
                        prompt_tokens = int(usage.get("prompt_tokens") or 0)
                        tokens = int(usage.get("completion_tokens") or counted) - counted
                        yield Delta(0, tokens=tokens, prompt_tokens=prompt_tokens)
                    for choice in event.get("choices") or ():
                        delta = _delta(choice, chat)
                        counted += delta.tokens
                        open_ -= delta.ending is not None
                        yield delta
        except aiohttp.ClientError as error:
            # The client need not know where the server is.
            logger.warning("%s does not answer: %s", self.url, str(error) or type(error).__name__)
            raise EngineFailed("the engine's server does not answer") from error
        if open_ > 0:
            raise EngineFailed("the server ended the stream too early")

    def healthy(self) -> bool:
        """Return True: another process, which nobody here can restart. Its failures are counted by
        the circuit breaker.
        """
        return True

    def close(self) -> None:
        if self._client and self._loop and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(CONNECT_S)

    async def _posted(self, path: str, body: dict[str, Any]) -> aiohttp.ClientResponse:
        """Return the head of the reply. A connection that was kept, and that the server has closed
        meanwhile, is replaced once: it says nothing of the version.
        """
        import aiohttp

        kept: list[bool] = []
        post = partial(self._connected().post, json=body, allow_redirects=False)
        try:
            return await post(f"{self.url}{path}", trace_request_ctx=kept)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not kept:
                raise
        return await post(f"{self.url}{path}", trace_request_ctx=kept)

    def _connected(self) -> aiohttp.ClientSession:
        import aiohttp

        async def reused(_client: Any, context: Any, _request: Any) -> None:
            context.trace_request_ctx.append(True)

        if self._client is None:
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(reused)
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                headers=self.headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[trace],
            )
            self._loop = asyncio.get_running_loop()
        return self._client

    def _body(self, request: EngineRequest) -> dict[str, Any]:
        """Return the request in OpenAI's form; defaults are left out."""
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            **request.needs,
        }
        optional: dict[str, Any] = {"seed": request.seed, "stop": list(request.stop) or None}
        optional |= {"top_p": request.top_p if request.top_p < 1 else None}
        optional |= {"n": request.n if request.n > 1 else None}
        if isinstance(request.chat, str):
            body["prompt"] = request.chat
            optional |= {"logprobs": request.logprobs}
        else:
            body["messages"] = request.chat
            if request.logprobs is not None:
                body |= {"logprobs": True, "top_logprobs": request.logprobs}
        return body | {name: value for name, value in optional.items() if value is not None}


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream. It is read to its end, so that the connection stays open."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")  # lines of any length
        for line in lines:
            if event := _event(line):
                yield event
    if event := _event(rest):  # no newline needs to follow the last line
        yield event


def _event(line: bytes) -> dict[str, Any] | None:
    data = line[5:].strip()
    if not line.startswith(b"data:") or data == b"[DONE]":
        return None
    try:
        event = json.loads(data)
    except ValueError as error:
        raise EngineFailed("the server sent an event that is no JSON") from error
    return event if isinstance(event, dict) else None


def _delta(choice: Mapping[str, Any], chat: bool) -> Delta:
    piece = choice.get("delta") or {} if chat else choice
    text = piece.get("content" if chat else "text") or ""
    ending = choice.get("finish_reason")
    logprobs = _logprobs(choice.get("logprobs") or {}, chat)
    return Delta(
        int(choice.get("index", 0)),
        text,
        len(logprobs) or bool(text),
        logprobs,
        (ending if ending in ENDINGS else "stop") if ending else None,
        tool_calls=tuple(piece.get("tool_calls") or ()) if chat else (),
    )


def _logprobs(data: Mapping[str, Any], chat: bool) -> tuple[TokenLogprob, ...]:
    if chat:
        return tuple(
            TokenLogprob(
                token["token"],
                token["logprob"],
                tuple((top["token"], top["logprob"]) for top in token.get("top_logprobs") or ()),
            )
            for token in data.get("content") or ()
        )
    tokens, values = data.get("tokens") or (), data.get("token_logprobs") or ()
    tops = data.get("top_logprobs") or [{}] * len(tokens)
    return tuple(
        TokenLogprob(token, value, tuple((top or {}).items()))
        for token, value, top in zip(tokens, values, tops, strict=False)
        if value is not None
    )


def _error(status: int, body: bytes) -> Exception:
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    message = _message(data) if isinstance(data, dict) else ""
    message = message or f"status {status}"
    if status in (400, 413, 422):
        too_long = "context_length" in str(data) or "maximum context" in message
        return PromptTooLong(message) if too_long else Unsupported(message)
    return EngineFailed(f"the server refused: {message}")


def _message(data: Mapping[str, Any]) -> str:
    error = data.get("error")
    text = str(error.get("message", "") if isinstance(error, dict) else error or "")
    return (text.strip().splitlines() or [""])[0][:500]
