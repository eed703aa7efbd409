"""The page for preference judgements as an application: the judge's next pair, and their choices.
It never shows which model wrote a completion.

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
from serving.page_headers import HEADERS
from serving.preference.round import AlreadyJudged, Round

FOLDER = Path(__file__).parent
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


class NextRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    judge: Name


class ChoiceRequest(NextRequest):
    pair: str
    chosen: Chosen


def make_app(round: Round, token: str) -> FastAPI:
    """Return the page over an open round. Its address is `/?token=...`; the script sends the token
    as a header.
    """
    app = FastAPI(title="Ratchet", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def require_token(request: Request, call: Callable[[Request], Any]) -> Response:
        request_token = (
            request.query_params.get("token", "")
            if request.url.path == "/"
            else request.headers.get("x-ratchet-token", "")
        )
        if request.url.path not in OPEN and not hmac.compare_digest(
            request_token.encode(), token.encode()
        ):
            message = "Missing or wrong token: open the full address that `ratchet prefer` printed."
            return PlainTextResponse(message, 403, HEADERS)
        response: Response = await call(request)
        response.headers.update(HEADERS)
        return response

    @app.get("/")
    def page() -> Response:
        return Response(
            (FOLDER / "page.html.jinja").read_text(encoding="utf-8"), media_type="text/html"
        )

    @app.get("/page.{kind}")
    def static_file(kind: str) -> Response:
        name = f"/page.{kind}"
        return (
            Response((FOLDER / name[1:]).read_text(encoding="utf-8"), media_type=OPEN[name])
            if name in OPEN
            else Response(status_code=404)
        )

    @app.post("/next")
    def next_pair(request: NextRequest) -> Response:
        return JSONResponse(_state(round, request.judge))

    @app.post("/choose")
    def choose(request: ChoiceRequest) -> Response:
        try:
            round.choose(request.judge, request.pair, request.chosen)
        except KeyError:
            return JSONResponse({"error": f"this round has no pair {request.pair!r}"}, 404)
        except AlreadyJudged as error:
            return JSONResponse({"error": str(error)}, 409)
        return JSONResponse(_state(round, request.judge))

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
        message = "; ".join(
            f"{'.'.join(str(static_file) for static_file in e['loc'][1:]) or 'body'}: {e['msg']}"
            for e in error.errors()
        )
        return JSONResponse({"error": message}, 400)

    return app


def _state(round: Round, judge: str) -> dict[str, Any]:
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


def serve(round: Round, token: str, sock: socket.socket) -> None:
    """Serve on a bound socket until stopped by SIGINT or SIGTERM."""
    import uvicorn

    uvicorn.Server(uvicorn.Config(make_app(round, token), log_level="warning")).run(sockets=[sock])
