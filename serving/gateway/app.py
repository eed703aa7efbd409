"""The gateway as an ASGI application.

In: RATCHET_HOME, whose ledger names the champion. Out: the endpoints of `openai_routes`,
`response_routes` and `native_routes`. After a promotion or a rollback the new champion answers as
soon as it is loaded; requests under way finish with the version that they started with.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from artifacts.store import Store
from resources.config.production import Production
from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Ledger
from sandbox.config import SandboxConfig
from serving.engines import engine_of
from serving.gateway.candidates import Candidates
from serving.gateway.catalog import Catalog
from serving.gateway.direct import Direct
from serving.gateway.guard import Guard
from serving.gateway.keeper import Keeper
from serving.gateway.keys import Keys
from serving.gateway.metrics import Metrics
from serving.gateway.native_routes import native_routes
from serving.gateway.observations import Observation, Observations
from serving.gateway.openai_routes import Answers, openai_routes
from serving.gateway.pool import OpenEngine, VersionPool
from serving.gateway.recorder import Recorder
from serving.gateway.refusals import Refused, failure
from serving.gateway.response_routes import response_routes
from serving.gateway.routing import ChampionRouter, Router
from serving.gateway.server import is_loopback
from serving.gateway.service import Service
from serving.gateway.verified import Judge

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {}}}
    for status, text in {
        400: "Invalid for this endpoint or model.",
        401: "No valid API key.",
        403: "The key may not do this.",
        404: "Unknown model, version, response or path.",
        408: "The body did not arrive in time, or the request's own timeout passed.",
        409: "Not in the present state.",
        413: "The body is too large.",
        415: "The body is compressed.",
        429: "Too many requests; see Retry-After.",
        503: "No version can answer now; see Retry-After.",
        504: "The deadline passed.",
    }.items()
}


def champion_router(catalog: Catalog) -> Router:
    return ChampionRouter(catalog.champion)


def make_app(
    home: Home,
    settings: Serving | None = None,
    *,
    ledger: Ledger | None = None,
    sandbox: SandboxConfig | None = None,
    production: Production | None = None,
    router_of: Callable[[Catalog], Router] = champion_router,
    pages: Sequence[APIRouter] = (),
    open_engine: OpenEngine | None = None,
    store: Store | None = None,
) -> Guard:
    """Return the gateway. Without a champion it responds with 503.

    ledger: default, the home's own. production: what is kept of failed requests. router_of: makes
    the router of a release. pages: more endpoints, for operators below /releases and /experiments.
    open_engine: default, that of the settings. store: of the versions; default, the home.
    """
    settings = settings or Serving()
    catalog = Catalog(ledger or Ledger(home.ledger, home.path))
    pool = VersionPool(open_engine or engine_of(settings.engine), settings, store or home.store())
    router = router_of(catalog)
    keys = Keys(home.api_keys, needed=not is_loopback(settings.host), later=True)
    keeper = Keeper(catalog, pool, router, settings, keys.read)
    observations = Observations(home.observations, home.database)
    recorder = Recorder(observations, Candidates(home.candidates, production))
    metrics = Metrics(pool, router, lambda: recorder.lost)

    def observe(row: Observation) -> None:
        metrics.observe(row)
        recorder.add(row)

    service = Service(catalog, pool, router, settings, observe)
    judge = Judge(sandbox or SandboxConfig())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await keeper.start()
        yield
        service.draining = True
        await service.close()
        await keeper.stop()
        judge.close()
        recorder.close()

    app = FastAPI(
        title="Ratchet", version="1", docs_url=None, redoc_url=None, lifespan=lifespan,
        responses=ERRORS,
    )  # fmt: skip
    answers = Answers(service, judge, metrics, recorder.add)
    hot = openai_routes(answers), response_routes(answers)
    for routes in (*hot, native_routes(answers, keeper, recorder, observations), *pages):
        app.include_router(routes)
    _handle_errors(app, metrics)
    return Guard(Direct(app, *hot), keys, settings, metrics.refuse)


def _handle_errors(app: FastAPI, metrics: Metrics) -> None:
    """Give every error the form of OpenAI's, in one line."""

    @app.exception_handler(Refused)
    async def refused(_: Request, refusal: Refused) -> Response:
        metrics.refuse(refusal.code)
        return _json(refusal.body(), refusal.status, refusal.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        if errors[0]["type"] == "json_invalid":
            where, reason = errors[0]["loc"][1], errors[0]["ctx"]["error"]
            errors = [{"loc": ("body",), "msg": f"it is no JSON at character {where}: {reason}"}]
        texts = [(_field(e["loc"]), e["msg"].removeprefix("Value error, ")) for e in errors[:5]]
        message = "; ".join(dict.fromkeys(f"{field}: {text}" for field, text in texts))
        whole = any(tuple(e["loc"]) == ("body",) for e in errors)
        if whole and "json" not in request.headers.get("content-type", ""):
            message = "send JSON with the header `Content-Type: application/json`"
        metrics.refuse("invalid_request")
        param = next((str(e["loc"][1])[:80] for e in errors if len(e["loc"]) > 1), None)
        return _json(failure(message, "invalid_request_error", "invalid_request", param), 400)

    async def http(_: Request, error: Exception) -> Response:
        plain = cast(HTTPException, error)
        body = failure(str(plain.detail), "invalid_request_error", "invalid_request")
        return _json(body, plain.status_code, dict(plain.headers or {}))

    for status in (400, 404, 405):  # a body that is no JSON, an unknown path, another method
        app.add_exception_handler(status, http)


def _field(place: Sequence[str | int]) -> str:
    """Return the field of an error of validation, without pydantic's names of a type's variants."""
    parts = (str(part)[:80] for part in place[1:])
    return ".".join(p for p in parts if not p.startswith(("constrained-", "list["))) or "body"


def _json(body: Any, status: int, headers: dict[str, str] | None = None) -> Response:
    """Return JSON in ASCII: half a surrogate from a request may be part of a message."""
    return Response(json.dumps(body), status, headers, "application/json")
