"""The official client, and requests made from the OpenAPI page."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import openai
import pytest

from tests.serving.gateway_server import CHAT, ask, call, content


@pytest.fixture
def client(served: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served}/v1", api_key="none", max_retries=0)


def test_the_official_client_gets_whole_and_streamed_answers(
    client: openai.OpenAI, served: str
) -> None:
    expected = content(ask(served)[1])
    whole = client.chat.completions.create(model="champion", messages=CHAT, max_tokens=16)  # type: ignore[arg-type]
    stream = client.chat.completions.create(
        model="champion",
        messages=CHAT,  # type: ignore[arg-type]
        max_tokens=16,
        stream=True,
    )
    pieces = [piece.choices[0].delta.content or "" for piece in stream]  # type: ignore[union-attr]
    assert whole.choices[0].message.content == "".join(pieces) == expected


def test_the_official_client_lists_models_and_reads_logprobs(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["champion", "old"]
    reply = client.completions.create(model="old", prompt="x = ", max_tokens=3, logprobs=2)
    logprobs = reply.choices[0].logprobs
    assert logprobs
    assert "".join(logprobs.tokens or ()) == reply.choices[0].text


def test_the_official_client_finds_one_model_by_its_name(client: openai.OpenAI) -> None:
    assert client.models.retrieve("champion").id == "champion"
    with pytest.raises(openai.NotFoundError, match="loaded: champion, old"):
        client.models.retrieve("gpt-4")


@pytest.mark.parametrize("given", ["text", "list"])
def test_the_official_client_gets_a_response_whole_and_streamed(
    client: openai.OpenAI, served: str, given: str
) -> None:
    expected = content(ask(served)[1])
    text: Any = CHAT[0]["content"] if given == "text" else CHAT
    whole = client.responses.create(model="champion", input=text, max_output_tokens=16)
    stream = client.responses.create(
        model="champion", input=text, max_output_tokens=16, stream=True
    )
    events = list(stream)
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert whole.output_text == "".join(pieces) == expected
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.incomplete"
    assert last.response.output_text == expected
    assert whole.status == "incomplete"
    assert last.response.usage == whole.usage


def test_a_conversation_continues_with_the_output_of_the_first_response(
    client: openai.OpenAI,
) -> None:
    first = client.responses.create(
        model="old", input="double", instructions="Be short.", max_output_tokens=3
    )
    conversation: Any = [{"role": "user", "content": "double"}, *first.output]
    second = client.responses.create(
        model="old", input=conversation, instructions="Be short.", max_output_tokens=3
    )
    assert first.usage
    assert second.usage
    assert second.usage.input_tokens > first.usage.input_tokens + 3


def test_the_streaming_helper_of_the_official_client_collects_the_text(
    client: openai.OpenAI,
) -> None:
    with client.responses.stream(model="champion", input="double", max_output_tokens=4) as stream:
        pieces = [event for event in stream if event.type == "response.output_text.delta"]
    assert pieces[-1].snapshot == "".join(piece.delta for piece in pieces)


@pytest.mark.parametrize("field", [{"previous_response_id": "r"}, {"store": True}, {"tools": [{}]}])
def test_a_response_with_what_is_not_supported_is_refused_by_name(
    served: str, field: dict[str, Any]
) -> None:
    status, reply = call(f"{served}/v1/responses", {"input": "x"} | field)
    assert status == 400
    assert next(iter(field)) in reply["error"]["message"]


@pytest.mark.slow
def test_no_request_that_the_page_allows_ends_with_a_500(served: str) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served}/openapi.json"]
    options = ["--max-examples", "10", "--checks", "not_a_server_error,content_type_conformance"]
    more = ["--request-timeout", "20", "--seed", "1", "--no-color"]
    run = subprocess.run([*command, *options, *more], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-3000:]
