"""The gateway: an OpenAI-compatible endpoint on 127.0.0.1 that always serves the champion.

In: RATCHET_HOME, whose ledger names the champion. Out: /v1/chat/completions, /v1/completions,
/v1/models, /health. After a promotion or a rollback the next request goes to the new champion;
running requests finish with the model that they started with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from resources.home import Home
from resources.registry.ledger import Ledger
from serving.champion import Champion, NoChampion
from serving.engines import Engine, TooLong, engine_of
from serving.engines.hf import HfEngine
from serving.openai import ChatRequest, TextRequest, completion, failure, models

HOST = "127.0.0.1"  # without authentication, only this machine may send requests
DEFAULT_TOKENS = 256


def make_app(home: Home, open_engine: Callable[[Path], Engine] = HfEngine) -> FastAPI:
    """Return the gateway as an ASGI application. Without a champion it responds with 503."""
    app = FastAPI(title="Ratchet", docs_url=None, redoc_url=None)
    champion = Champion(Ledger(home.ledger), open_engine)

    @app.get("/health")
    async def health() -> dict[str, str]:
        entry = champion.entry()
        return {
            "status": "ok",
            "champion": entry.checkpoint,
            "checkpoint_hash": entry.checkpoint_hash,
        }

    @app.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        return models(champion.entry())

    @app.post("/v1/chat/completions")
    def chat(
        request: ChatRequest,
    ) -> Any:  # not async: it runs in a thread, so that /health stays responsive
        return complete(request)

    @app.post("/v1/completions")
    def text(request: TextRequest) -> Any:
        return complete(request)

    def complete(request: ChatRequest | TextRequest) -> Any:
        entry, engine = champion.engine()
        if request.model not in ("champion", entry.checkpoint):
            return _refuse(
                404,
                f"unknown model {request.model!r}: use 'champion' (now {entry.checkpoint})",
                "model_not_found",
            )
        return completion(
            entry,
            engine.complete(request.engine_request(DEFAULT_TOKENS)),
            chat=isinstance(request, ChatRequest),
        )

    @app.exception_handler(NoChampion)
    async def no_champion(_: Request, error: NoChampion) -> JSONResponse:
        return JSONResponse(
            failure(str(error), "service_unavailable", "no_champion"), 503, {"Retry-After": "30"}
        )

    @app.exception_handler(TooLong)
    async def too_long(_: Request, error: TooLong) -> JSONResponse:
        return _refuse(400, str(error), "context_length_exceeded")

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
        message = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'][1:]) or 'body'}: {e['msg']}"
            for e in error.errors()
        )
        return _refuse(400, message, "invalid_request")

    return app


def _refuse(status: int, message: str, code: str) -> JSONResponse:
    return JSONResponse(failure(message, "invalid_request_error", code), status)


def serve(home: Home, port: int = 8000, engine: str = "hf") -> None:
    """Serve until stopped. engine: a file of serving/engines.

    Raises NotReady if the port is in use, ValueError for an unknown engine.
    """
    import socket

    import uvicorn

    from resources.home import NotReady

    app = make_app(home, engine_of(engine))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise NotReady(
                f"cannot bind port {port} on {HOST} ({error.strerror}): choose another with --port"
            ) from error
        probe.listen()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[probe])
