"""The page for preference judgements as an application: the judge's next pair, and their choices.
It never shows which model wrote what.

In: a `Round` and a token. Out: an ASGI application in which every path except the page's own style
and script needs the token. Completions are sent as JSON and shown as text; the page may load
nothing from elsewhere and run nothing inline (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from evaluation.preference.pairs import Chosen
from serving.preference.round import Judged, Round

FOLDER = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
OPEN = {  # needs no token: the same for every judge, without data of the round
    "/page.css": "text/css",
    "/page.js": "text/javascript",
}
Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=40, pattern=r"^[^\x00-\x1f\x7f]+$"
    ),
]


class Ask(BaseModel):
    model_config = ConfigDict(extra="forbid")

    judge: Name


class Told(Ask):
    pair: str
    chosen: Chosen


def make_app(round: Round, token: str) -> FastAPI:
    """Return the page over an open round. Its address is `/?token=...`; the script sends the token
    as a header.
    """
    app = FastAPI(title="Ratchet", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guarded(request: Request, call: Callable[[Request], Any]) -> Response:
        given = (
            request.query_params.get("token", "")
            if request.url.path == "/"
            else request.headers.get("x-ratchet-token", "")
        )
        if request.url.path not in OPEN and not hmac.compare_digest(given.encode(), token.encode()):
            refused = (
                "This page needs its token: open the whole address that `ratchet prefer` printed."
            )
            return PlainTextResponse(refused, 403, HEADERS)
        response: Response = await call(request)
        response.headers.update(HEADERS)
        return response

    @app.get("/")
    def page() -> Response:
        return Response(
            (FOLDER / "page.html.jinja").read_text(encoding="utf-8"), media_type="text/html"
        )

    @app.get("/page.{kind}")
    def part(kind: str) -> Response:
        name = f"/page.{kind}"
        return (
            Response((FOLDER / name[1:]).read_text(encoding="utf-8"), media_type=OPEN[name])
            if name in OPEN
            else Response(status_code=404)
        )

    @app.post("/next")
    def next_pair(ask: Ask) -> Response:
        return JSONResponse(_shown(round, ask.judge))

    @app.post("/choose")
    def choose(told: Told) -> Response:
        try:
            round.choose(told.judge, told.pair, told.chosen)
        except KeyError:
            return JSONResponse({"error": "no such pair in this round"}, 404)
        except Judged as error:
            return JSONResponse({"error": str(error)}, 409)
        return JSONResponse(_shown(round, told.judge))

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> JSONResponse:
        told = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'][1:]) or 'body'}: {e['msg']}"
            for e in error.errors()
        )
        return JSONResponse({"error": told}, 400)

    return app


def _shown(round: Round, judge: str) -> dict[str, Any]:
    state: dict[str, Any] = {
        "done": round.done(judge),
        "total": len(round.pairs),
        "question": round.about.question,
        "pair": None,
    }
    if pair := round.next(judge):
        left, right = pair.sides(round.about.seed, judge)
        state["pair"] = {"id": pair.id, "statement": pair.statement, "left": left, "right": right}
    return state


def new_token() -> str:
    return secrets.token_urlsafe(18)


def serve(round: Round, token: str, door: socket.socket) -> None:
    """Serve on a bound socket until stopped by SIGINT or SIGTERM."""
    import uvicorn

    uvicorn.Server(uvicorn.Config(make_app(round, token), log_level="warning")).run(sockets=[door])
