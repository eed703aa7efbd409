"""What official clients send besides the question: nulls, neutral values, earlier answers."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

from serving.upstream import Upstream
from tests.serving.gateway_server import CHAT, ask, call, raw

NEUTRAL: dict[str, list[Any]] = {
    "n": [None, 1],
    "stream": [None, False],
    "stream_options": [None, {"include_usage": None, "include_obfuscation": False}],
    "stop": [None, []],
    "temperature": [None, 0],
    "top_p": [None, 1],
    "seed": [None],
    "user": [None],
    "priority": [None, 0],
    "max_completion_tokens": [None],
    "metadata": [None, {"team": "a"}],
    "service_tier": [None, "auto", "default"],
    "store": [None, False],
    "frequency_penalty": [None, 0],
    "presence_penalty": [None, 0.0],
    "logit_bias": [None, {}],
    "logprobs": [None, False],
    "top_logprobs": [None],
    "tools": [None, []],
    "tool_choice": [None, "none", "auto"],
    "parallel_tool_calls": [None, True, False],
    "response_format": [None, {"type": "text"}],
    "modalities": [None, ["text"]],
    "prompt_cache_key": ["k"],
    "safety_identifier": ["s"],
    "reasoning_effort": [None],
    "functions": [None, []],
    "function_call": [None, "none"],
    "top_k": [-1, 0, None],
    "min_p": [0.0],
    "repetition_penalty": [1.0],
    "length_penalty": [1.0],
    "min_tokens": [0],
    "best_of": [1],
    "use_beam_search": [False],
    "ignore_eos": [False],
    "skip_special_tokens": [True],
    "spaces_between_special_tokens": [True],
    "include_stop_str_in_output": [False],
    "add_generation_prompt": [True],
    "continue_final_message": [False],
    "echo": [False],
    "stop_token_ids": [[], None],
    "chat_template_kwargs": [{}],
    "guided_json": [None],
    "documents": [None],
    "a_field_of_next_year": [None],
    "request_id": ["r"],
}


def test_null_and_neutral_values_change_nothing(served: str) -> None:
    refused = {
        (name, str(value)): reply
        for name, values in NEUTRAL.items()
        for value in values
        for status, reply in [ask(served, max_tokens=2, **{name: value})]
        if status != 200
    }
    assert refused == {}


RESPONSE: dict[str, Any] = {
    "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "truncation": "disabled",
    "include": [], "background": False, "top_logprobs": 0, "service_tier": "auto", "store": False,
    "metadata": {}, "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "prompt_cache_key": "k", "reasoning": None, "previous_response_id": None, "temperature": 0,
}  # fmt: skip


def test_a_response_takes_null_and_neutral_values_too(served: str) -> None:
    for body in (RESPONSE, dict.fromkeys(RESPONSE)):
        item = {"role": "user", "content": "x", "cache_control": {"type": "ephemeral"}}
        reply = call(f"{served}/v1/responses", {"input": [item], "max_output_tokens": 2, **body})
        assert reply[0] == 200, reply


def test_a_value_that_would_change_something_is_refused_with_its_field(served: str) -> None:
    for name, value in (("top_k", 5), ("repetition_penalty", 1.2), ("guided_json", {"a": 1})):
        more: dict[str, Any] = {name: value}
        status, reply = ask(served, **more)
        assert (status, reply["error"]["param"]) == (400, name)
    status, reply = ask(served, response_format={"type": "json_object"})
    assert (status, reply["error"]["param"]) == (400, "response_format")


def test_an_error_names_the_field_as_the_client_wrote_it(served: str) -> None:
    def fault(body: Any) -> str:
        return str(call(f"{served}/v1/completions", body)[1]["error"]["message"])

    assert fault({"prompt": [1]}).startswith("prompt: ")
    assert "prompt.0: " in fault({"prompt": [1]})
    assert "constrained" not in fault({"prompt": [1]})
    assert fault(b'{"prompt": oops}').startswith("body: it is no JSON at character 11: ")


def test_the_official_client_sends_an_answer_back_as_it_came(served: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=f"{served}/v1", api_key="none")
    chat: list[Any] = [dict(CHAT[0])]
    for _ in range(2):
        reply = client.chat.completions.create(model="champion", messages=chat, max_tokens=4)
        chat += [reply.choices[0].message.model_dump(), {"role": "user", "content": "and now?"}]
        chat[-1]["cache_control"] = {"type": "ephemeral"}
    assert reply.choices[0].message.content is not None
    assert reply._request_id


def test_a_response_form_reaches_an_engine_that_has_it() -> None:
    from serving.openai import ChatRequest

    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    body = ChatRequest.model_validate({"messages": CHAT, "response_format": form})
    sent = Upstream("http://localhost", "m")._body(body.engine_request(8))
    assert sent["response_format"] == form


def test_several_prompts_get_an_answer_each(served: str) -> None:
    body = {"prompt": ["one", "two"], "max_tokens": 3, "n": 2, "temperature": 1.0, "seed": 1}
    status, reply = call(f"{served}/v1/completions", body)
    assert status == 200
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3]
    alone = [call(f"{served}/v1/completions", body | {"prompt": [p]})[1] for p in ("one", "two")]
    assert [c["text"] for c in reply["choices"]] == [
        c["text"] for each in alone for c in each["choices"]
    ]
    assert reply["usage"]["prompt_tokens"] == sum(a["usage"]["prompt_tokens"] for a in alone)


def test_a_prompt_that_is_too_long_is_refused_in_openais_words(served: str) -> None:
    status, reply = ask(served, messages=[{"role": "user", "content": "word " * 3000}])
    assert status == 400
    error = reply["error"]
    assert error["message"].startswith("This model's maximum context length is ")
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


def test_a_request_has_an_id_of_its_own_or_the_clients(served: str) -> None:
    def named(**headers: str) -> str:
        request = urllib.request.Request(f"{served}/health/live", headers=headers)
        with urllib.request.urlopen(request) as reply:
            return str(reply.headers["x-request-id"])

    assert named().startswith("req_")
    assert named(**{"X-Request-Id": "mine-1"}) == "mine-1"


def test_generate_uses_the_chat_template_and_takes_a_problem(served: str) -> None:
    def text(**body: Any) -> str:
        status, reply = call(f"{served}/generate", {"max_tokens": 8, **body})
        assert status == 200, reply
        return str(reply["completions"][0]["text"])

    problem = CHAT[0]["content"]
    chat = ask(served, max_tokens=8)[1]["choices"][0]["message"]["content"]
    assert text(problem=problem, model_version="latest", timeout=30) == chat
    assert text(prompt=problem) == chat
    plain = call(f"{served}/v1/completions", {"prompt": problem, "max_tokens": 8})[1]
    assert text(prompt=problem, raw=True) == plain["choices"][0]["text"]


def test_a_head_without_end_is_cut_off_early(served: str) -> None:
    head = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n" + b"x: " + b"a" * 2_000_000
    try:
        reply = raw(served, head)
    except (ConnectionResetError, BrokenPipeError):
        return  # it was closed while the client still sent
    assert reply.startswith(b"HTTP/1.1 4")


def test_an_engines_address_is_not_told() -> None:
    import asyncio

    from serving.completion import EngineFailed, EngineRequest

    async def asked() -> None:
        async for _ in Upstream("http://127.0.0.1:9", "m").stream(EngineRequest("a", 1)):
            pass

    with pytest.raises(EngineFailed) as failed:
        asyncio.run(asked())
    assert "127.0.0.1" not in str(failed.value)
