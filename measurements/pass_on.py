"""A FastAPI route that passes requests on and does nothing else, to compare the gateway with:
`python -m measurements.pass_on PORT PORT_OF_THE_SERVER`.

It has the gateway's server (uvicorn) and client (aiohttp), and leaves everything else out: keys,
limits, deadlines, routing, a breaker, records, metrics.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Chat(BaseModel):
    model: str
    messages: list[dict[str, Any]]
    max_tokens: int | None = None


def app_of(url: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            app.state.client = client
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/v1/chat/completions")
    async def chat(body: Chat) -> dict[str, Any]:
        text = ""
        async with app.state.client.post(url, json=body.model_dump(exclude_none=True)) as reply:
            async for line in reply.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    text += "".join(each["delta"].get("content", "") for each in choices)
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}

    return app


if __name__ == "__main__":
    port, server = map(int, sys.argv[1:3])
    url = f"http://127.0.0.1:{server}/v1/chat/completions"
    uvicorn.run(app_of(url), port=port, log_level="warning", access_log=False)
