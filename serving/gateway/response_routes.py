"""OpenAI's responses, streamed or whole."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from serving.completion import Delta, EngineReply, gather
from serving.gateway.openai_routes import EVENTS, LEFT, Answers, streamed, unless_gone
from serving.gateway.refusals import Refused
from serving.gateway.service import AdmittedRequest
from serving.gateway.verified import whole as whole_replies
from serving.responses import ResponseRequest, message, part, response


def response_routes(answers: Answers) -> APIRouter:
    routes = APIRouter(tags=["OpenAI"])

    @routes.post("/v1/responses", responses=EVENTS)
    async def respond(body: ResponseRequest, request: Request) -> Any:
        """Answer a text or a conversation. With `stream`, server-sent events."""
        admitted, created_at = answers.admit(body, request), int(time.time())
        if body.stream:
            events = partial(_events, admitted=admitted, body=body, created_at=created_at)
            return await streamed(answers.service, admitted, request, events)
        replies = await unless_gone(request, whole_replies(answers.service, admitted))
        if replies is None:
            return Response(status_code=LEFT)
        assert admitted.entry is not None
        return JSONResponse(response(admitted.id, admitted.entry, body, created_at, replies[0]))

    return routes


async def _events(
    deltas: AsyncGenerator[Delta, None],
    first: Delta,
    admitted: AdmittedRequest,
    body: ResponseRequest,
    created_at: int,
) -> AsyncGenerator[bytes, None]:
    """Yield the events of one message with one part. A failure is a last event `error`."""
    assert admitted.entry is not None
    numbers, reply, delta = count(), EngineReply(), first
    whole = partial(response, admitted.id, admitted.entry, body, created_at)
    at = {"item_id": message(admitted.id, None)["id"], "output_index": 0, "content_index": 0}

    def event(kind: str, **data: Any) -> bytes:
        named = {"type": kind, "sequence_number": next(numbers), **data}
        return f"event: {kind}\ndata: {json.dumps(named, separators=(',', ':'))}\n\n".encode()

    async with aclosing(deltas):
        yield event("response.created", response=whole(None))
        yield event("response.in_progress", response=whole(None))
        yield event("response.output_item.added", output_index=0, item=message(admitted.id, None))
        yield event("response.content_part.added", part=part(""), **at)
        try:
            while True:
                gather([reply], delta)
                if delta.text:
                    more = {"delta": delta.text, "logprobs": []}
                    yield event("response.output_text.delta", **more, **at)
                delta = await anext(deltas)
        except StopAsyncIteration:
            pass
        except Refused as refusal:
            yield event("error", code=refusal.code, message=refusal.message, param=None)
            return
    ended = whole(reply)
    yield event("response.output_text.done", text=reply.text, logprobs=[], **at)
    yield event("response.content_part.done", part=part(reply.text), **at)
    yield event("response.output_item.done", output_index=0, item=message(admitted.id, reply))
    yield event(f"response.{ended['status']}", response=ended)
