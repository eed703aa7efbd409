"""Engines: the one in this process, and servers behind OpenAI's API."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
import urllib.request
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from resources.config.serving import Serving
from resources.home import Home
from resources.registry.ledger import Entry
from serving.completion import (
    Delta,
    EngineFailed,
    EngineReply,
    EngineRequest,
    PromptTooLong,
    complete,
)
from serving.engines.transformers import TransformersEngine
from serving.gateway import pool
from serving.gateway.pool import CannotLoad, VersionPool
from serving.server_process import ServerProcess
from serving.server_versions import Served
from serving.upstream import Upstream
from tests.serving.faulty_engine import NoModel
from tests.serving.gateway_server import (
    CHAT,
    ask,
    call,
    content,
    eventually,
    fast,
    promote,
    running,
)

PROMPTS = ["a", "double the number", "x = [1, 2, 3]\n" * 3, "ü" * 20]


@pytest.fixture(scope="module")
def engine(checkpoints: dict[str, Path]) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(checkpoints["old"], rows=4)
    yield engine
    engine.close()


def request(text: str, **more: object) -> EngineRequest:
    return EngineRequest(text, 20, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_completion_does_not_depend_on_what_runs_beside_it(
    engine: TransformersEngine, temperature: float
) -> None:
    async def alone() -> list[list[EngineReply]]:
        return [
            await complete(engine, request(p, temperature=temperature, seed=1)) for p in PROMPTS
        ]

    async def together() -> list[list[EngineReply]]:
        async def later(number: int, prompt: str) -> list[EngineReply]:
            await asyncio.sleep(0.003 * number)
            return await complete(engine, request(prompt, temperature=temperature, seed=1))

        return await asyncio.gather(*(later(n, p) for n, p in enumerate(PROMPTS * 3)))

    assert asyncio.run(together()) == asyncio.run(alone()) * 3


def test_the_texts_are_those_of_the_evaluation(
    engine: TransformersEngine, checkpoints: dict[str, Path]
) -> None:
    from evaluation.generation.decoder import generate
    from evaluation.sampling import Sampling

    sampling = Sampling(n=1, temperature=0, max_new_tokens=20)
    expected = [each.text for each in generate(checkpoints["old"], PROMPTS, sampling)]

    async def texts() -> list[str]:
        return [(await complete(engine, request(prompt)))[0].text for prompt in PROMPTS]

    assert asyncio.run(texts()) == expected


def test_a_stop_string_never_appears_even_in_parts(engine: TransformersEngine) -> None:
    async def pieces(stop: tuple[str, ...]) -> list[str]:
        stream = engine.stream(request("a", stop=stop))
        return [delta.text async for delta in stream if delta.text]

    whole = "".join(asyncio.run(pieces(())))
    stop = whole[5:9]
    assert "".join(asyncio.run(pieces((stop, "never")))) == whole[: whole.index(stop)]


def test_a_closed_stream_frees_its_place(engine: TransformersEngine) -> None:
    async def leave() -> None:
        async with aclosing(engine.stream(EngineRequest("a", 100, n=4))) as deltas:
            await anext(deltas)
        assert (await complete(engine, request("b")))[0].completion_tokens == 20

    asyncio.run(leave())
    eventually(lambda: not engine._active)


def test_a_model_of_too_few_positions_is_named(engine: TransformersEngine) -> None:
    with pytest.raises(PromptTooLong, match="maximum context length is 128 tokens"):
        asyncio.run(complete(engine, request("x" * 200)))


@pytest.fixture
def server(home: Home, checkpoints: dict[str, Path]) -> Iterator[str]:
    from serving.gateway.app import make_app

    promote(home, "old", checkpoints["old"])
    with running(make_app(home, fast())) as url:
        yield url


def test_an_openai_server_gives_the_same_pieces_as_its_engine(
    server: str, engine: TransformersEngine
) -> None:
    asked = EngineRequest(CHAT, 12, temperature=1.0, seed=3, n=2, logprobs=1)

    async def both() -> tuple[list[EngineReply], list[EngineReply]]:
        return await complete(Upstream(f"{server}/v1", "old"), asked), await complete(engine, asked)

    over_http, here = asyncio.run(both())
    assert [(r.text, r.finish_reason, r.logprobs) for r in over_http] == [
        (r.text, r.finish_reason, r.logprobs) for r in here
    ]
    assert sum(r.completion_tokens for r in over_http) == sum(r.completion_tokens for r in here)


def test_a_gateway_can_stand_in_front_of_another(server: str, home: Home, tmp_path: Path) -> None:
    from serving.gateway.app import make_app

    front = Home(tmp_path / "front")
    promote(front, "old", Path(tmp_path))
    settings = fast(engine="openai", upstream=f"{server}/v1")
    with running(make_app(front, settings), settings) as url:
        assert content(ask(url)[1]) == content(ask(server)[1])
        status, reply = ask(url, messages=[{"role": "user", "content": "x" * 500}])
        assert (status, reply["error"]["code"]) == (400, "context_length_exceeded")


def test_a_server_that_is_gone_fails_in_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        upstream = Upstream(f"http://127.0.0.1:{free.getsockname()[1]}/v1", "old")
        with pytest.raises(EngineFailed, match="does not answer"):
            asyncio.run(complete(upstream, request("a")))


def test_a_server_process_that_ends_at_once_is_reported() -> None:
    with pytest.raises(EngineFailed, match="ended with 3"):
        ServerProcess([sys.executable, "-c", "raise SystemExit(3)"], 1, "old", "/health")


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_the_command_of_a_server_names_model_port_and_rank(name: str) -> None:
    command_of = importlib.import_module(f"serving.engines.{name}").command_of
    command = " ".join(command_of(Served("/models/a", "old"), Serving(at_once=8), 8123))
    flag = {"vllm": "--max-num-seqs", "sglang": "--max-running-requests"}[name]
    assert command.startswith(f"{name} serve ")
    assert " /models/a " in command
    assert "--port 8123" in command
    assert "--served-model-name old" in command
    assert f"{flag} 8" in command
    assert "lora" not in command
    command = " ".join(command_of(Served("/models/a", "base", 16), Serving(), 8123))
    assert "--enable-lora --max-lora-rank 16" in command


def test_the_gateway_lists_what_is_loaded(server: str) -> None:
    [version] = call(f"{server}/models")[1]["versions"]
    assert version["loaded"]
    assert version["champion"]
    assert version["bytes"] > 0


def test_a_server_process_is_reached_whatever_proxy_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxies of its first use
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", str(port), "--directory", str(tmp_path)]
    server = ServerProcess(command, port, "old", "/")
    assert server.healthy()
    server.close()


@pytest.mark.parametrize("error", [RuntimeError("no memory on the GPU"), KeyError("r")])
def test_a_library_that_fails_is_a_version_that_cannot_be_loaded(
    home: Home, checkpoints: dict[str, Path], error: Exception
) -> None:
    def opened(entry: Entry, settings: Serving) -> TransformersEngine:
        raise error

    entry = promote(home, "old", checkpoints["old"])
    with pytest.raises(CannotLoad, match="cannot load version 1"):
        asyncio.run(VersionPool(opened, Serving(), home.store()).load(entry))


class Silent(NoModel):
    """A server that takes requests and never answers."""

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        await asyncio.sleep(3600)
        yield Delta(0)


def test_a_server_that_never_answers_does_not_stop_the_pool(
    home: Home, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "WARM_UP_S", 0.1)
    entry = promote(home, "old", checkpoints["old"])
    with pytest.raises(CannotLoad, match="TimeoutError"):
        asyncio.run(VersionPool(lambda *_: Silent(), Serving(), home.store()).load(entry))


def test_a_server_may_close_a_connection_after_its_answer() -> None:
    answer = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"stream_options")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()

    async def asked() -> None:
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        upstream = Upstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "old")
        for _ in range(5):
            await complete(upstream, EngineRequest([{"role": "user", "content": "a"}], 4))
        await asyncio.to_thread(upstream.close)

    asyncio.run(asked())
