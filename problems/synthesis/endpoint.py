"""Send requests to an OpenAI-compatible server, retried until a complete reply or a final error.

Retried with growing pauses: 408, 409, 429, 5xx, timeouts, broken connections, and bodies that are
truncated or are no completion. Not retried: requests that the server rejects as wrong (400, 413,
422), which is the fault of the request. If the server does not know the model, or denies access,
the pass ends.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import httpx

from problems.synthesis.replies import EndpointDown, NoReply, NoRoom, Refused, Reply

# Environment variables; the first that is set is used. Without any, no key is sent.
KEYS = ("RATCHET_OPENAI_API_KEY", "OPENAI_API_KEY")
AGAIN = {408, 409, 429}
WRONG = {400, 413, 422}
NONE_SUCH = {404, 405, 501}  # status of a server without a list of its models
TRIES = 8
PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
LONGEST_WAIT_S = 600.0  # longest wait that a server may ask for
# Volatile fields of a model's description: vLLM creates them anew for each request.
PASSING = ("created", "permission")
# As worded by OpenAI, vLLM and others.
TOO_LONG = ("context_length_exceeded", "maximum context length", "context window")
# after so many unanswered requests in a row, each with all its tries, the server counts as down
DOWN = 3
MOST_BYTES = 4 * 2**20  # maximum size of a body
Found = TypeVar("Found")


class Fault(NamedTuple):
    """A fault that may pass, and the seconds that the server asks to wait."""

    why: str
    wait_s: float = 0.0


@dataclass
class Endpoint:
    """A client: `with Endpoint(url) as endpoint: endpoint.ask({...})`; thread-safe.

    `url` is the address up to, not including, /chat/completions.
    """

    url: str
    timeout_s: float = 120.0
    pause_s: float = PAUSE_S
    sent: int = 0  # HTTP requests, including retries
    faults: dict[str, int] = field(default_factory=dict)  # reasons for retries, with counts

    def __enter__(self) -> Endpoint:
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=self.timeout_s, headers=headers)
        self._lock, self._unanswered = threading.Lock(), 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def ask(
        self, question: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep
    ) -> Reply:
        """Send one request and return the reply.

        question: the body of a chat completion, or, with `prompt`, of a completion. Raises NoReply,
        or EndpointDown naming the address and the fix.
        """
        return self._insist(lambda: self._answer(question), sleep)

    def describe(self, model: str, sleep: Callable[[float], None] = time.sleep) -> dict[str, Any]:
        """Return the server's description of a model, without volatile fields.

        Returns {} if the server has no list of models or does not name this one. Raises as `ask`
        does.
        """
        found = next(
            (each for each in self._insist(self._models, sleep) if each.get("id") == model), {}
        )
        return {name: value for name, value in found.items() if name not in PASSING}

    def reach(self) -> None:
        """Check once whether the server listens, for a user who waits at a terminal.

        Raises EndpointDown if no server listens or access is denied.
        """
        with suppress(NoReply):  # the server is up, but has no list of models
            if (found := self._send("GET", "models")) in (
                Fault("ConnectError"),
                Fault("ConnectTimeout"),
            ):
                raise EndpointDown(
                    f"{self.url}: {found.why}: see whether the server is up, and the address"
                )

    def _insist(
        self, attempt: Callable[[], Found | Fault], sleep: Callable[[float], None]
    ) -> Found:
        """Call `attempt` until it returns no fault.

        Between tries it pauses for a growing time, or as long as the server asks for.
        """
        fault, wait = Fault("not tried"), 0.0
        for number in range(TRIES if self._unanswered < DOWN else 0):
            if number:
                sleep(wait)
            with self._lock:
                self.sent += 1
            found = attempt()
            if not isinstance(found, Fault):
                self._unanswered = 0
                return found
            fault = found
            with self._lock:
                self.faults[fault.why] = self.faults.get(fault.why, 0) + 1
            pause = min(LONGEST_PAUSE_S, self.pause_s * 2**number * random.uniform(0.5, 1.5))
            wait = max(min(fault.wait_s, LONGEST_WAIT_S), pause)
        with self._lock:
            self._unanswered += 1
        if self._unanswered >= DOWN:
            raise EndpointDown(
                f"{self.url}: {fault.why}, {TRIES} times for each of {DOWN} questions: see "
                "whether the server is up, then run again"
            )
        raise NoReply(f"{self.url}: no whole answer in {TRIES} tries: {fault.why}")

    def _answer(self, question: Mapping[str, Any]) -> Reply | Fault:
        sent = self._send(
            "POST", "completions" if "prompt" in question else "chat/completions", question
        )
        return sent if isinstance(sent, Fault) else _read(sent or b"")

    def _models(self) -> list[dict[str, Any]] | Fault:
        sent = self._send("GET", "models")
        if isinstance(sent, Fault) or sent is None:
            return sent or []
        try:
            return [each for each in json.loads(sent)["data"] if isinstance(each, dict)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return Fault("a list of models that is none")

    def _send(
        self, method: str, path: str, question: Mapping[str, Any] | None = None
    ) -> bytes | Fault | None:
        """Return the body, or None if the server has no such list.

        Raises NoReply and EndpointDown for errors that a retry will not fix.
        """
        try:
            with self._client.stream(
                method, f"{self.url.rstrip('/')}/{path}", json=question
            ) as response:
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise NoReply(f"an answer of more than {MOST_BYTES >> 20} MiB")
        except httpx.HTTPError as error:
            return Fault(type(error).__name__)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise EndpointDown(
                f"{self.url}: no address ({error}): give one like http://127.0.0.1:8000/v1"
            ) from error
        said, status = " ".join(body[:300].decode("utf-8", "replace").split()), response.status_code
        if status == 200:
            return body
        if question is None and status in NONE_SUCH:
            return None
        if status in AGAIN or status >= 500:
            return Fault(f"status {status}", _seconds(response.headers.get("Retry-After")))
        if status in WRONG:
            kind = NoRoom if any(words in said.lower() for words in TOO_LONG) else Refused
            raise kind(f"the server refuses the question (status {status}): {said}")
        raise EndpointDown(
            f"{self.url}: status {status}: {said}: check the address, the model's name, and "
            f"the key in {KEYS[0]}"
        )


def _seconds(text: str | None) -> float:
    """Parse Retry-After: a number, or a date (RFC 9110)."""
    if text and text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text or "") - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _read(body: bytes) -> Reply | Fault:
    try:
        told = json.loads(body)
        choice, usage = told["choices"][0], told.get("usage") or {}
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        ended, tokens, written = (
            choice.get("finish_reason"),
            usage.get("total_tokens"),
            usage.get("completion_tokens"),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return Fault("no body" if not body.strip() else "a body that is no completion")
    if text is None and isinstance(ended, str):
        text = ""  # all its tokens went into hidden output
    if not isinstance(text, str):
        return Fault("a body that is no completion")
    return Reply(
        text.encode("utf-8", "replace").decode("utf-8"),
        _count(tokens),
        _count(written),
        _text(ended),
        _text(told.get("model")),
        _text(told.get("system_fingerprint")),
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
