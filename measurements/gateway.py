"""The gateway's overhead and throughput: `python -m measurements.gateway`.

Overhead: requests to a trivial server (it answers with one token at once), directly, through a
FastAPI route that only passes them on, and through the gateway, in processes of their own. The
highest rate is that of 16 connections that send the next request after each answer; then requests
are sent at half of that rate, at fixed times, to each in turn, and each one's latency counts from
its time. Throughput: 16 clients, 64 tokens each, on the embedded model with random weights, batched
and one after another.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from resources.ray.head import free_ports

CONNECTIONS, CLIENTS, TOKENS, ROUNDS = 16, 16, 64, 8
SECONDS, TURNS = 4.0, 5
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    if sys.argv[1:2] == ["upstream"]:
        asyncio.run(upstream(int(sys.argv[2])))
        return
    if sys.argv[1:2] == ["route"]:
        route(*map(int, sys.argv[2:4]))
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}\n")
    with tempfile.TemporaryDirectory() as folder:
        overhead(Path(folder))
        throughput(Path(folder))


def overhead(folder: Path) -> None:
    server, plain = free_ports(2)
    settings = ["serving.engine=openai", f"serving.upstream=http://127.0.0.1:{server}/v1"]
    body = {"model": "champion", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    request, module = bytes_of(body), [sys.executable, "-m"]
    with (
        process([*module, "measurements.gateway", "upstream", str(server)], server),
        process([*module, "measurements.gateway", "route", str(plain), str(server)], plain),
        gateway(folder / "front", folder, settings) as (front, pid),
    ):
        asyncio.run(closed_loop(plain, request, 1.0))
        asyncio.run(closed_loop(front, request, 1.0))
        before = cpu_s(pid)
        highest = asyncio.run(closed_loop(front, request))
        cost = (cpu_s(pid) - before) / (highest * SECONDS)
        ports = {"server alone": server, "a route that only passes on": plain, "gateway": front}
        times: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(TURNS):  # the machine's speed changes meanwhile
            for name, port in ports.items():
                times[name] += asyncio.run(open_loop(port, request, highest / 2))
    print(
        f"highest rate through the gateway: {highest:.0f} requests/s, {1000 * cost:.2f} CPU ms a "
        f"request; sent at {highest / 2:.0f}/s\n\n"
        "| | p50 ms | p99 ms | overhead at p50 | at p99 |\n|---|---|---|---|---|"
    )
    alone = quantiles(times["server alone"])
    for name, taken in times.items():
        p50, p99 = quantiles(taken)
        print(f"| {name} | {p50:.2f} | {p99:.2f} | {p50 - alone[0]:.2f} | {p99 - alone[1]:.2f} |")


def throughput(folder: Path) -> None:
    from resources.config.profile import Profile
    from verl_jobs.sft.tiny_model import make

    model = folder / "model"
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "problems").glob("*.py"))]
    make(Profile().tiny_model, texts, model)
    body = {"model": "champion", "prompt": "def solve(x):\n", "max_tokens": TOKENS}
    print(
        f"\n{CLIENTS} clients, {TOKENS} new tokens each, {ROUNDS} requests a client\n\n"
        "| | tokens/s | tokens a CPU second | p50 ms | p99 ms |\n|---|---|---|---|---|"
    )
    for name, at_once in (("one at a time", 1), ("batched", CLIENTS)):
        with gateway(folder / f"home{at_once}", model, [f"serving.at_once={at_once}"]) as (
            port,
            server,
        ):
            request = bytes_of(body, "/v1/completions")
            asyncio.run(clients(port, request, 1))
            began, before = time.monotonic(), cpu_s(server)
            times, tokens = asyncio.run(clients(port, request, ROUNDS))
            rate = tokens / (time.monotonic() - began)
            economy = tokens / (cpu_s(server) - before)
        p50, p99 = quantiles(times)
        print(f"| {name} | {rate:.0f} | {economy:.0f} | {p50:.0f} | {p99:.0f} |", flush=True)


async def clients(port: int, request: bytes, rounds: int) -> tuple[list[float], int]:
    """Return seconds of each request, and the number of tokens."""
    times, tokens = [], 0

    async def client() -> None:
        nonlocal tokens
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(rounds):
            began = time.monotonic()
            usage = json.loads(await exchange(reader, writer, request))["usage"]
            times.append(time.monotonic() - began)
            tokens += usage["completion_tokens"]
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return times, tokens


async def closed_loop(port: int, request: bytes, seconds: float = SECONDS) -> float:
    """Return requests a second of connections that always have one under way."""
    end, count = time.monotonic() + seconds, 0

    async def connection() -> None:
        nonlocal count
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            await exchange(reader, writer, request)
            count += 1
        writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    return count / seconds


async def open_loop(port: int, request: bytes, rate: float) -> list[float]:
    """Return the latencies of requests that are due at fixed times, whatever the answers do."""
    idle: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    idle = asyncio.LifoQueue()
    for _ in range(CONNECTIONS):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    times: list[float] = []
    began = time.monotonic() + 0.1

    async def one(due: float) -> None:
        pair = await idle.get()
        await exchange(*pair, request)
        times.append(time.monotonic() - due)
        idle.put_nowait(pair)

    async with asyncio.TaskGroup() as group:
        for number in range(int(SECONDS * rate)):
            due = began + number / rate
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            group.create_task(one(max(due, time.monotonic()) if wait > 0 else due))
    return times[len(times) // 10 :]  # without the first tenth, which warms up


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> bytes:
    """Send a request on a connection that stays open; return the body of its answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        sys.exit(f"unexpected answer: {head[:80]!r}")
    if b"chunked" in head.lower():
        body = b""
        while size := int((await reader.readline()).strip(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return body
    at = head.lower().index(b"content-length:") + 15
    return await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


async def upstream(port: int) -> None:
    """A server that answers every request with one token, as a stream, without looking at it."""
    events = [
        {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    ]
    body = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    body += b"data: [DONE]\n\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                at = asked.find(b"content-length:")
                if at >= 0:
                    await reader.readexactly(int(asked[at + 15 : asked.index(b"\r\n", at)]))
                writer.write(head.encode() + b"\r\n\r\n" + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
        await server.serve_forever()


class Chat(BaseModel):
    model: str
    messages: list[dict[str, Any]]
    max_tokens: int | None = None


def route(port: int, server: int) -> None:
    """A route with the gateway's server and client that only passes requests on."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            app.state.client = client
            yield

    app, url = FastAPI(lifespan=lifespan), f"http://127.0.0.1:{server}/v1/chat/completions"

    @app.post("/v1/chat/completions")
    async def chat(body: Chat) -> dict[str, Any]:
        text = ""
        async with app.state.client.post(url, json=body.model_dump(exclude_none=True)) as reply:
            async for line in reply.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    text += "".join(each["delta"].get("content", "") for each in choices)
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def bytes_of(body: dict[str, object], path: str = "/v1/chat/completions") -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@contextmanager
def gateway(home: Path, checkpoint: Path, settings: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Run `ratchet serve` with the checkpoint as champion; yield its port and process id."""
    from artifacts.hashing import hash_folder
    from resources.registry.ledger import Ledger

    home.mkdir()
    Ledger(home / "promotions.db").append(
        "install", checkpoint="tiny", checkpoint_hash=hash_folder(checkpoint),
        path=str(checkpoint), decision={}, run_id="tiny", against=None,
    )  # fmt: skip
    [port] = free_ports(1)
    changes = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "cli.main", "serve", "--port", str(port), *changes]
    with process(command, port, {"RATCHET_HOME": str(home)}) as pid:
        yield port, pid


@contextmanager
def process(
    command: Sequence[str], port: int, environment: dict[str, str] | None = None
) -> Iterator[int]:
    running = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | (environment or {}), stdout=subprocess.DEVNULL
    )
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if running.poll() is not None:
                sys.exit("a server ended before it was ready")
            time.sleep(0.1)
        yield running.pid
    finally:
        running.terminate()
        running.wait()


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100)
    return 1000 * cuts[49], 1000 * cuts[98]


if __name__ == "__main__":
    main()
