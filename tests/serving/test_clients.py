"""The official client, and requests made from the OpenAPI page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.home import Home
from tests.serving.gateway_server import CHAT, ask, call, content, eventually, promote


@pytest.fixture
def served(url: str, home: Home, checkpoints: dict[str, Path]) -> Iterator[str]:
    promote(home, "old", checkpoints["old"])
    eventually(lambda: call(f"{url}/health/ready")[0] == 200)
    yield url


def test_the_official_client_gets_whole_and_streamed_answers(served: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=f"{served}/v1", api_key="none", max_retries=0)
    expected = content(ask(served)[1])
    whole = client.chat.completions.create(model="champion", messages=CHAT, max_tokens=12)  # type: ignore[arg-type]
    stream = client.chat.completions.create(
        model="champion",
        messages=CHAT,  # type: ignore[arg-type]
        max_tokens=12,
        stream=True,
    )
    pieces = [piece.choices[0].delta.content or "" for piece in stream]  # type: ignore[union-attr]
    assert whole.choices[0].message.content == "".join(pieces) == expected


def test_the_official_client_lists_models_and_reads_logprobs(served: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=f"{served}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["champion", "old"]
    reply = client.completions.create(model="old", prompt="x = ", max_tokens=3, logprobs=2)
    logprobs = reply.choices[0].logprobs
    assert logprobs and "".join(logprobs.tokens or ()) == reply.choices[0].text


def test_the_official_client_raises_its_own_errors(served: str) -> None:
    import openai

    client = openai.OpenAI(base_url=f"{served}/v1", api_key="none", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="unknown model"):
        client.chat.completions.create(model="somebody", messages=CHAT)  # type: ignore[arg-type]


@pytest.mark.slow
def test_no_request_that_the_page_allows_ends_with_a_500(served: str) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served}/openapi.json"]
    options = ["--max-examples", "20", "--checks", "not_a_server_error,content_type_conformance"]
    more = ["--request-timeout", "20", "--seed", "1", "--no-color"]
    run = subprocess.run([*command, *options, *more], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-3000:]
