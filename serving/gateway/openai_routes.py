"""OpenAI's endpoints: chat completions, completions and models, streamed or whole."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from serving.completion import Delta, EngineReply
from serving.gateway.candidates import Candidate
from serving.gateway.keys import ApiKey
from serving.gateway.metrics import Metrics
from serving.gateway.refusals import Refused
from serving.gateway.service import CHAMPION, AdmittedRequest, Service
from serving.gateway.verified import Judge, Verified, verified, whole
from serving.openai import (
    ChatRequest,
    GenerateRequest,
    Tests,
    TextRequest,
    chunk,
    completion,
    head,
    models,
    usage,
)
from serving.responses import ResponseRequest

Answer = TypeVar("Answer")
LEFT = 499  # nginx' status for a client that closed the connection; nobody reads it
EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
DONE = b"data: [DONE]\n\n"


class Answers:
    """What the routes of completions share. keep: takes tasks that no answer solved."""

    def __init__(
        self, service: Service, judge: Judge, metrics: Metrics, keep: Callable[[Candidate], None]
    ) -> None:
        self.service, self.judge, self.metrics, self.keep = service, judge, metrics, keep

    def admit(
        self, body: ChatRequest | TextRequest | GenerateRequest | ResponseRequest, request: Request
    ) -> AdmittedRequest:
        caller: ApiKey = request.state.caller
        return AdmittedRequest(
            request=body.engine_request(self.service.settings.default_tokens),
            model=body.model or CHAMPION,
            user=body.user or "",
            key=caller.id,
            consent=caller.consent,
            tests=bool(getattr(body, "tests", None)),
            priority=caller.priority + (body.priority or 0),
            timeout_s=getattr(body, "timeout", None),
            version=self._version(request),
        )

    def _version(self, request: Request) -> int | None:
        """Return the version that a proxy in front has chosen."""
        name = self.service.settings.version_header
        value = request.headers.get(name, "") if name else ""
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None

    async def replies(
        self, admitted: AdmittedRequest, body: ChatRequest | TextRequest | GenerateRequest
    ) -> tuple[list[EngineReply], dict[str, Any]]:
        """Return whole completions, and the field `verdict` where the request has tests."""
        if isinstance(body, TextRequest) and len(body.prompts) > 1:
            return await self._of_each(admitted, body.prompts), {}
        if body.tests is None:
            return await whole(self.service, admitted), {}
        best = await self._best(admitted, body.tests)
        return [best.reply], {"verdict": best.verdict()}

    async def _of_each(
        self, admitted: AdmittedRequest, prompts: Sequence[str]
    ) -> list[EngineReply]:
        """Return the completions of several prompts, which one version answers."""
        first = await whole(self.service, admitted)
        assert admitted.entry is not None
        version = str(admitted.entry.version)
        others = [
            replace(
                admitted,
                request=replace(admitted.request, chat=prompt),
                id=f"{admitted.id}.{number}",
                model=version,
            )
            for number, prompt in enumerate(prompts[1:], 1)
        ]
        replies = await asyncio.gather(*(whole(self.service, each) for each in others))
        return [*first, *(reply for own in replies for reply in own)]

    async def _best(self, admitted: AdmittedRequest, tests: Tests) -> Verified:
        result = await verified(self.service, admitted, tests, self.judge)
        outcome = "first" if result.first else "another" if result.passed else "none"
        self.metrics.verified.labels(outcome).inc()
        failed = result.measured and not result.passed
        if admitted.consent and admitted.model == CHAMPION and failed:
            self.keep(Candidate(time.time(), admitted.key, admitted.request.chat, tests))
        return result


def openai_routes(answers: Answers) -> APIRouter:
    routes = APIRouter(tags=["OpenAI"])
    service = answers.service

    @routes.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        """List the champion, under two names, and the other loaded versions."""
        loaded = [each.entry for each in service.pool.loaded.values()]
        return models(service.answering(), loaded)

    @routes.get("/v1/models/{model}")
    async def one_model(model: str) -> dict[str, Any]:
        """Return one of these models."""
        listed = (await list_models())["data"]
        found: dict[str, Any] | None = next((each for each in listed if each["id"] == model), None)
        if found is None:
            names = ", ".join(each["id"] for each in listed)
            message = f"unknown model {model[:80]!r}: loaded: {names}"
            raise Refused(404, "model_not_found", message)
        return found

    @routes.post("/v1/chat/completions", responses=EVENTS)
    async def chat(body: ChatRequest, request: Request) -> Any:
        """Complete a chat. With `stream`, server-sent events."""
        return await complete(body, request)

    @routes.post("/v1/completions", responses=EVENTS)
    async def text(body: TextRequest, request: Request) -> Any:
        """Continue a text, without a chat template."""
        return await complete(body, request)

    async def complete(body: ChatRequest | TextRequest, request: Request) -> Any:
        admitted, chat_ = answers.admit(body, request), isinstance(body, ChatRequest)
        if body.stream:
            options = body.stream_options
            counted = bool(options and options.include_usage)
            events = partial(_events, admitted=admitted, chat=chat_, counted=counted)
            return await streamed(service, admitted, request, events)
        answer = await unless_gone(request, answers.replies(admitted, body))
        if answer is None:
            return Response(status_code=LEFT)
        replies, verdict = answer
        assert admitted.entry is not None
        made_by, prompts = (admitted.id, admitted.entry, admitted.weights), 1
        if isinstance(body, TextRequest):
            prompts = len(body.prompts)
        reply = completion(*made_by, replies, chat=chat_, prompts=prompts)
        return JSONResponse(reply | verdict)

    return routes


async def streamed(
    service: Service,
    admitted: AdmittedRequest,
    request: Request,
    events: Callable[[AsyncGenerator[Delta, None], Delta], AsyncGenerator[bytes, None]],
) -> Response:
    """Return the answer as server-sent events, which `events` makes of its pieces. What fails
    before the first piece is a refusal with its own status; a later failure is an event `error`,
    after which the stream ends without [DONE].
    """
    deltas = service.stream(admitted)
    first = await unless_gone(request, anext(deltas))
    if first is None:  # it left while it waited for its turn
        return Response(status_code=LEFT)
    return StreamingResponse(events(deltas, first), media_type="text/event-stream")


async def _events(
    deltas: AsyncGenerator[Delta, None],
    first: Delta,
    admitted: AdmittedRequest,
    chat: bool,
    counted: bool,
) -> AsyncGenerator[bytes, None]:
    assert admitted.entry is not None
    made_by = (admitted.id, admitted.entry, admitted.weights)
    begun: set[int] = set()
    tokens, prompt_tokens, delta = 0, first.prompt_tokens, first
    async with aclosing(deltas):
        try:
            while True:
                new = delta.index not in begun
                begun.add(delta.index)
                tokens += delta.tokens
                if delta.text or delta.ending or delta.logprobs or delta.tool_calls or new:
                    yield _event(chunk(*made_by, delta, chat=chat, first=new))
                delta = await anext(deltas)
        except StopAsyncIteration:
            pass
        except Refused as refusal:
            yield _event(refusal.body())
            return
    if counted:
        begin = head(*made_by, chat=chat, stream=True)
        yield _event({**begin, "choices": [], "usage": usage(prompt_tokens, tokens)})
    yield DONE


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


async def unless_gone(request: Request, work: Awaitable[Answer]) -> Answer | None:
    """Return the work's result; None, and the work is cancelled, if the client leaves before."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
