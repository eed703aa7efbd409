"""Unusual clients: each gets an answer, or an error with its reason."""

from __future__ import annotations

import gzip
import json

from tests.serving.gateway_server import CHAT, ask, call, raw

BODY = json.dumps({"messages": CHAT, "max_tokens": 4}).encode()
JSON = "Content-Type: application/json\r\n"


def posted(url: str, headers: str, body: bytes = BODY, length: int | None = None) -> bytes:
    """Return the raw reply to a chat. length: as the header says it."""
    lines = f"Host: localhost\r\nContent-Length: {length or len(body)}\r\n{headers}"
    return raw(url, f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + body)


def test_an_offer_of_http_2_loses_no_body(served: str) -> None:
    offer = "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
    reply = posted(served, f"{JSON}{offer}")
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b'"chat.completion"' in reply


def test_a_text_about_http_2_reaches_the_model_unchanged(served: str) -> None:
    text = "a\r\n\r\nUpgrade: h2c\r\nb"
    counts = [
        ask(served, messages=[{"role": "user", "content": each}])[1]["usage"]["prompt_tokens"]
        for each in (text, text.replace("h2c", "xyz"))
    ]
    assert counts[0] == counts[1]


def test_a_compressed_body_is_refused_by_name(served: str) -> None:
    reply = posted(
        served, f"{JSON}Content-Encoding: gzip\r\nConnection: close\r\n", gzip.compress(BODY)
    )
    assert reply.startswith(b"HTTP/1.1 415 ")
    assert b"'gzip': send it plain" in reply


def test_a_body_without_its_type_is_told_the_header(served: str) -> None:
    reply = posted(
        served, "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
    )
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/json" in reply


def test_a_client_that_asks_first_is_not_told_to_send_too_much(served: str) -> None:
    expects = f"{JSON}Expect: 100-continue\r\nConnection: close\r\n"
    assert posted(served, expects).startswith(b"HTTP/1.1 100 Continue")
    assert posted(served, expects, b"", 10**8).startswith(b"HTTP/1.1 413 ")


def test_a_vote_may_come_at_once(served: str) -> None:
    for _ in range(3):
        vote = {"response": ask(served, max_tokens=1)[1]["id"], "value": "accepted"}
        assert call(f"{served}/feedback", vote)[0] == 200
