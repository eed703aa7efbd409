"""One question to an OpenAI-compatible server, asked until there is a whole answer or a reason why there is none.

Tried again, with growing pauses: 408, 409, 429, 5xx, timeouts, connections that break, bodies that are cut off or no completion. Not tried again: a
request that the server calls wrong (400, 413, 422), which is the proposal's fault. A server that does not know the model, or us, ends the pass.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from problems.synthesis.replies import EndpointDown, NoReply, Reply

KEYS = ("RATCHET_OPENAI_API_KEY", "OPENAI_API_KEY")  # of the environment, the first that is set; none: no key is sent
AGAIN = {408, 409, 429}
WRONG = {400, 413, 422}
TRIES = 8
PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
DOWN = 3  # questions in a row that the server left unanswered, after all tries: then it is down
MOST_BYTES = 4 * 2**20  # of a body


@dataclass
class Endpoint:
    """`with Endpoint(url) as endpoint: endpoint.ask({...})`; may be asked from several threads. `url` ends where /chat/completions begins."""

    url: str
    timeout_s: float = 120.0
    pause_s: float = PAUSE_S
    sent: int = 0  # HTTP requests, those tried again included
    faults: dict[str, int] = field(default_factory=dict)  # why requests were tried again, counted

    def __enter__(self) -> Endpoint:
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=self.timeout_s, headers=headers)
        self._lock, self._unanswered = threading.Lock(), 0
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def ask(self, question: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep) -> Reply:
        """question: the body of a chat completion. Raises NoReply, or EndpointDown naming address and mend."""
        fault, wait = "not tried", 0.0
        for attempt in range(TRIES if self._unanswered < DOWN else 0):
            if attempt:
                sleep(wait)
            with self._lock:
                self.sent += 1
            found = self._try(question)
            if isinstance(found, Reply):
                self._unanswered = 0
                return found
            fault, asked_to_wait = found
            with self._lock:
                self.faults[fault] = self.faults.get(fault, 0) + 1
            wait = min(LONGEST_PAUSE_S, max(asked_to_wait, self.pause_s * 2**attempt * random.uniform(0.5, 1.5)))
        with self._lock:
            self._unanswered += 1
        if self._unanswered >= DOWN:
            raise EndpointDown(f"{self.url}: {fault}, {TRIES} times for each of {DOWN} questions: see whether the server is up, then run again")
        raise NoReply(f"no whole answer in {TRIES} tries: {fault}")

    def _try(self, question: Mapping[str, Any]) -> Reply | tuple[str, float]:
        """The reply, or a fault that may pass and the seconds that the server asks for. Raises NoReply and EndpointDown where it will not."""
        try:
            with self._client.stream("POST", f"{self.url.rstrip('/')}/chat/completions", json=question) as response:
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise NoReply(f"an answer of more than {MOST_BYTES >> 20} MiB")
        except httpx.HTTPError as error:
            return type(error).__name__, 0.0
        except (httpx.InvalidURL, UnicodeError) as error:
            raise EndpointDown(f"{self.url}: no address ({error}): give one like http://127.0.0.1:8000/v1") from error
        said = " ".join(body[:300].decode("utf-8", "replace").split())
        if (status := response.status_code) in AGAIN or status >= 500:
            return f"status {status}", _seconds(response.headers.get("Retry-After"))
        if status in WRONG:
            raise NoReply(f"the server refuses the question (status {status}): {said}")
        if status != 200:
            raise EndpointDown(f"{self.url}: status {status}: {said}: check the address, the model's name, and the key in {KEYS[0]}")
        return _read(body)


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isdecimal() else 0.0


def _read(body: bytes) -> Reply | tuple[str, float]:
    try:
        told = json.loads(body)
        text, usage = told["choices"][0]["message"]["content"], told.get("usage") or {}
        tokens = usage.get("total_tokens", 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return ("no body" if not body.strip() else "a body that is no completion"), 0.0
    if not isinstance(text, str):
        return "a body that is no completion", 0.0
    return Reply(text.encode("utf-8", "replace").decode("utf-8"), tokens if type(tokens) is int and tokens > 0 else 0)
