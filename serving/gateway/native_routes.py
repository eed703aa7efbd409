"""The gateway's own endpoints: generate, feedback, health, metrics, loaded versions."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import suppress
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from resources.registry.ledger import Entry
from resources.registry.ledger_database import LedgerUnreachable
from serving.completion import one_line
from serving.gateway.keeper import Keeper
from serving.gateway.observations import Feedback, Observations
from serving.gateway.openai_routes import LEFT, Answers, unless_gone
from serving.gateway.pool import CannotLoad
from serving.gateway.recorder import PAUSE_S, Recorder
from serving.gateway.refusals import Refused
from serving.openai import GenerateRequest, Strict, Text

VALUES = {"accepted": 1.0, "edited": 0.5, "rejected": 0.0}


class Vote(Strict):
    """What a user did with a response."""

    response: Text
    value: Literal["accepted", "edited", "rejected"]


def native_routes(
    answers: Answers, keeper: Keeper, recorder: Recorder, observations: Observations
) -> APIRouter:
    routes = APIRouter(tags=["Ratchet"])
    service, pool, catalog = answers.service, keeper.pool, keeper.catalog

    @routes.post("/generate")
    async def generate(body: GenerateRequest, request: Request) -> Any:
        """Answer a problem; the reply has only the texts, the version and the verdict."""
        if body.stream:
            raise Refused(400, "unsupported", "stream: use /v1/completions for a stream")
        admitted = answers.admit(body, request)
        answer = await unless_gone(request, answers.replies(admitted, body))
        if answer is None:
            return Response(status_code=LEFT)
        replies, verdict = answer
        assert admitted.entry is not None
        completions = [
            {"text": r.text, "finish_reason": r.finish_reason, "tokens": r.completion_tokens}
            for r in replies
        ]
        named = {"version": admitted.entry.version, "checkpoint": admitted.entry.checkpoint}
        return JSONResponse({"id": admitted.id, **named, "completions": completions, **verdict})

    @routes.post("/feedback")
    async def feedback(body: Vote, request: Request) -> dict[str, str]:
        """Record what a user did with a response. The last vote of a key on a response counts."""
        response = body.response.rsplit("-", 1)[-1]
        try:
            row = await asyncio.to_thread(observations.of, response)
            if row is None:  # its row may not be written yet
                await asyncio.sleep(4 * PAUSE_S)
                row = await asyncio.to_thread(observations.of, response)
        except (sqlite3.Error, LedgerUnreachable) as error:
            reason = f"the observations cannot be read: {one_line(error)}"
            raise Refused(503, "not_recorded", reason, 5) from error
        if recorder.fault:
            raise Refused(503, "not_recorded", f"votes are not written: {recorder.fault}", 5)
        key = request.state.caller.id
        if row is None or row.key != key:
            raise Refused(404, "unknown_response", "this key has no response with that id")
        recorder.add(Feedback(response, time.time(), key, row.unit, VALUES[body.value]))
        return {"status": "recorded"}

    @routes.get("/health/live")
    async def live() -> dict[str, str]:
        """Answer while the process runs."""
        return {"status": "ok"}

    @routes.get("/health")
    @routes.get("/health/ready")
    async def ready() -> JSONResponse:
        """Answer 200 while requests get answers, with the version that gives them; `degraded` where
        another one answers in its place, or the ledger's champion cannot be loaded.
        """
        fault = catalog.fault
        if service.draining or catalog.serving is None:
            raise Refused(503, "not_ready", "draining" if service.draining else fault, 5)
        if catalog.out_of_service:
            raise Refused(503, "out_of_service", catalog.out_of_service, 5)
        entry = service.answering()
        able = service.backups(entry.version)
        if not able:
            raise Refused(503, "not_ready", fault or "no version is loaded", 5)
        if all(each.breaker.state == "open" for each in able):
            wait_s = min(each.breaker.opens_in_s for each in able)
            raise Refused(503, "breaker_open", "every version failed repeatedly", wait_s)
        if entry.version not in pool.loaded:
            known = catalog.faults.get(entry.version)
            reason = known.reason if known else "its engine is being started"
            fault = fault or f"version {entry.version} is deployed and does not answer: {reason}"
        elif pool.loaded[entry.version].breaker.state == "open":
            fault = fault or f"version {entry.version} failed repeatedly: another one answers"
        if recorder.fault:
            fault = fault or f"answers are not recorded: {recorder.fault}"
        state: dict[str, Any] = {"status": "degraded" if fault else "ok"}
        state |= {"champion": entry.checkpoint, "version": entry.version}
        state |= {"checkpoint_hash": entry.checkpoint_hash} | ({"fault": fault} if fault else {})
        return JSONResponse(state)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return counters for Prometheus."""
        return Response(answers.metrics.page(), media_type="text/plain; version=0.0.4")

    @routes.get("/models")
    async def versions() -> dict[str, Any]:
        """List the ledger's versions, which one answers as champion, and what is loaded."""
        return {"versions": [state(entry) for _, entry in sorted(catalog.entries.items())]}

    def state(entry: Entry) -> dict[str, Any]:
        loaded = pool.loaded.get(entry.version)
        named = {"version": entry.version, "checkpoint": entry.checkpoint}
        with suppress(Refused):
            named |= {"champion": service.answering().version == entry.version}
        if loaded is None:
            fault = catalog.faults.get(entry.version)
            return named | {"loaded": False} | ({"fault": fault.reason} if fault else {})
        queue = {"running": loaded.admission.running, "queued": loaded.admission.queued}
        return (
            named | {"loaded": True, "bytes": loaded.bytes, "breaker": loaded.breaker.state} | queue
        )

    @routes.post("/models/{version}/load")
    async def load(version: str) -> dict[str, Any]:
        """Load a version, by number or name, until it is unloaded."""
        entry = catalog.known(version)
        try:
            await pool.load(entry, pinned=True)
        except CannotLoad as error:
            raise Refused(409, "cannot_load", str(error)) from error
        return state(entry)

    @routes.post("/models/{version}/unload")
    async def unload(version: str) -> dict[str, Any]:
        """Unload a version after its last request. One that the router needs is refused."""
        entry = catalog.known(version)
        if entry.version in {each.version for each in keeper.wanted()}:
            raise Refused(409, "in_use", f"version {entry.version} is needed for routing")
        await pool.unload(entry.version)
        return state(entry)

    return routes
