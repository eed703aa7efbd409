"""A request for more tokens than a server has room for is sent again for those that fit."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from problems.synthesis.endpoint import Endpoint
from problems.synthesis.replies import ContextTooLong, NoReply, RequestRefused
from problems.synthesis.token_limit import limits_tokens, tokens_left, too_long

PROMPT, CONTEXT = 1540, 2048
ASKED, ROOM = 600, CONTEXT - PROMPT
# Each with 600 tokens asked for after a prompt of 1,540, in a context of 2,048.
REFUSALS = {
    "openai": "This model's maximum context length is 2048 tokens. However, you requested 2140 "
    "tokens (1540 in the messages, 600 in the completion).",
    "vllm 0.8": "'max_tokens' or 'max_completion_tokens' is too large: 600. This model's maximum "
    "context length is 2048 tokens and your request has 1540 input tokens (600 > 2048 - 1540).",
    "vllm 0.12": "You passed 1540 input tokens and requested 600 output tokens. However, the "
    "model's context length is only 2048 tokens, resulting in a maximum input length of 1448.",
    "vllm 0.15": "This model's maximum context length is 1448 tokens. However, your request has "
    "1540 input tokens. Please reduce the length of the input messages.",
    "vllm 0.16": "This model's maximum context length is 2048 tokens. However, your request has "
    "1540 input tokens plus 600 'max_tokens'. Please reduce one or the other.",
    "sglang": "Requested token count exceeds the model's maximum context length of 2048 tokens. "
    "You requested a total of 2140 tokens: 1540 tokens from the input messages and 600 tokens for "
    "the completion.",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: "
    "1540 `inputs` tokens and 600 `max_new_tokens`",
    "llama.cpp": "the request exceeds the available context size, try increasing it "
    '"n_prompt_tokens": 1540, "n_ctx": 2048',
    "anthropic": "input length and `max_tokens` exceed context limit: 1540 + 600 > 2048",
    "openai, text": "This model's maximum context length is 2,048 tokens, however you requested "
    "2,140 tokens (1,540 in your prompt; 600 for the completion).",
    "tensorrt-llm": "The sum of prompt length (1540.0), query length (0) and max_tokens (600) "
    "should not exceed max_seq_len (2048)",
    "mistral": "Prompt contains 1540 tokens and 0 draft tokens, too large for model with 2048 "
    "maximum context length",
    "deepspeed": "Requested maximum length 2140 exceeds the max_length 2048 in tokens",
}
# The prompt alone, of 3,000 tokens, does not fit.
PROMPTS = {
    "vllm": "This model's maximum context length is 2048 tokens. However, your request has 3000 "
    "input tokens. Please reduce the length of the input messages.",
    "vllm offline": "The decoder prompt (length 3000) is longer than the maximum model length of "
    "2048. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "openai": "This model's maximum context length is 2048 tokens. However, your messages resulted "
    "in 3000 tokens. Please reduce the length of the messages.",
    "sglang": "The input (3000 tokens) is longer than the model's context length (2048 tokens).",
    "llama.cpp": "request (3000 tokens) exceeds the available context size (2048 tokens), try "
    "increasing it",
    "tgi": "Input validation error: `inputs` must have less than 2048 tokens. Given: 3000",
}
NO_NUMBERS = "context_length_exceeded"
CAP = "`max_tokens` must be less than or equal to `512`"
OTHER_KEY = "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
OTHER_KEY += "'max_completion_tokens' instead."


@pytest.mark.parametrize("server", REFUSALS)
def test_the_room_is_read_from_a_refusal(server: str) -> None:
    assert too_long(REFUSALS[server])
    assert tokens_left(REFUSALS[server], ASKED) == ROOM


@pytest.mark.parametrize("server", PROMPTS)
def test_a_prompt_that_does_not_fit_leaves_no_room(server: str) -> None:
    assert too_long(PROMPTS[server])
    assert tokens_left(PROMPTS[server], ASKED) == 0


def test_a_prompt_that_is_a_little_too_long_is_asked_for_once_more() -> None:
    refusal = PROMPTS["vllm"].replace("3000", "2100")
    assert tokens_left(refusal, ASKED) == 548  # the room, if the context were without what is asked
    assert tokens_left(refusal, 548, refusal) == 0


@pytest.mark.parametrize(
    "refusal",
    [
        "temperature must be at most 2",
        "413 Request Entity Too Large",
        "{'loc': ('body', 'temperature'), 'msg': 'Input should be less than or equal to 1'}",
        "Invalid prompt: it exceeds the limits of our usage policy",
        OTHER_KEY,
    ],
)
def test_another_refusal_is_not_of_the_context(refusal: str) -> None:
    assert not limits_tokens(refusal)


@pytest.mark.parametrize(
    "refusal",
    [
        "max_tokens is too large: 600. This model supports at most 512 completion tokens",
        "Invalid max_tokens value, the valid range of max_tokens is [1,512]",
        "max_tokens: 600 > 512, the maximum allowed number of output tokens for claude-3",
    ],
)
def test_a_cap_on_completions_is_no_context(refusal: str) -> None:
    refusal = f"the server refuses the question (status 400): {refusal}"
    assert limits_tokens(refusal)
    assert not too_long(refusal)
    assert tokens_left(refusal, ASKED) == 512


def test_a_prompt_that_the_server_does_not_count_to_its_end_is_asked_for_half() -> None:
    refusal = "maximum context length is 2048 tokens. your prompt contains at least 1449 input "
    assert tokens_left(f"{refusal} tokens, you requested 600", ASKED) == 300


@pytest.mark.parametrize(
    ("refuse", "sent"),
    [
        (lambda body: REFUSALS["tgi"] if body["max_tokens"] > ROOM else "", [600, ROOM]),
        (lambda body: NO_NUMBERS if body["max_tokens"] > ROOM else "", [600, 300]),
        (lambda body: CAP if body["max_tokens"] > 512 else "", [600, 512]),
        (lambda body: OTHER_KEY if "max_tokens" in body else "", [600, 600]),
    ],
)
def test_the_request_is_sent_again(refuse: Callable[[Any], str], sent: list[int]) -> None:
    with _server(refuse) as (url, requests), Endpoint(url) as endpoint:
        assert endpoint.ask({"model": "m", "messages": [], "max_tokens": ASKED}).text == "yes"
    asked = [body.get("max_tokens") or body.get("max_completion_tokens") for body in requests]
    assert asked == sent


def test_the_key_that_a_server_takes_is_kept() -> None:
    with (
        _server(lambda body: OTHER_KEY if "max_tokens" in body else "") as (url, requests),
        Endpoint(url) as endpoint,
    ):
        for _ in range(3):
            endpoint.ask({"model": "m", "messages": [], "max_tokens": ASKED})
    assert ["max_tokens" in body for body in requests] == [True, False, False, False]


@pytest.mark.parametrize(
    ("refusal", "kind"), [(PROMPTS["vllm"], ContextTooLong), ("no such option", RequestRefused)]
)
def test_a_final_refusal_is_raised(refusal: str, kind: type[Exception]) -> None:
    with (
        _server(lambda body: refusal) as (url, requests),
        Endpoint(url) as endpoint,
        pytest.raises(kind),
    ):
        endpoint.ask({"model": "m", "messages": [], "max_tokens": ASKED})
    assert len(requests) == 1


@pytest.mark.parametrize("ended", ["content_filter", "abort", "error"])
def test_a_reply_that_the_server_broke_off_is_no_answer(ended: str) -> None:
    with (
        _server(lambda _: "", ended) as (url, _),
        Endpoint(url, pause_s=0) as endpoint,
        pytest.raises(NoReply, match=ended.replace("_", " ")),
    ):
        endpoint.ask({"model": "m", "messages": []}, sleep=lambda _: None)


@contextmanager
def _server(refuse: Callable[[Any], str], ended: str = "stop") -> Iterator[tuple[str, list[Any]]]:
    """Serve completions. refuse: body -> the text of a refusal, or "". Yields its requests, too."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            refusal = refuse(requests[-1])
            choice = {"message": {"content": "yes"}, "finish_reason": ended}
            body = json.dumps({"error": {"message": refusal}} if refusal else {"choices": [choice]})
            self.send_response(400 if refusal else 200)
            self.end_headers()
            self.wfile.write(body.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
        server.shutdown()
        thread.join()
