"""Send requests to an OpenAI-compatible server, retried until a complete reply or a final error.

Retried with growing pauses: 408, 409, 429, 5xx, timeouts, broken connections, and bodies that are
truncated or are no completion. A request for more tokens than the context has room for is sent
again for those that fit. Not retried: other requests that the server rejects as wrong (400, 413,
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
from functools import partial
from typing import Any, NamedTuple, TypeVar

import httpx

from problems.synthesis import token_limit
from problems.synthesis.replies import ContextTooLong, EndpointDown, NoReply, Reply, RequestRefused

# Environment variables; the first that is set is used. Without any, no key is sent.
KEYS = ("RATCHET_OPENAI_API_KEY", "OPENAI_API_KEY")
AGAIN = {408, 409, 429}
WRONG = {400, 413, 422}
NONE_SUCH = {404, 405, 501}  # status of a server without a list of its models
TRIES = 8
PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
LONGEST_WAIT_S = 600.0  # longest wait that a server may ask for
# Volatile fields of a model's description: vLLM creates new ones for each request.
PASSING = ("created", "permission")
# after so many unanswered requests in a row, each with all its tries, the server counts as down
DOWN = 3
MAX_BYTES = 4 * 2**20  # maximum size of a body
MAX_EXCERPT = 500  # characters of a refusal
BROKEN_OFF = ("abort", "error")  # reasons for which vLLM and SGLang end a reply of status 200
OTHER_LIMIT = "max_completion_tokens"  # OpenAI's newer name
Result = TypeVar("Result")


class EndpointFault(NamedTuple):
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
    _limit: str = "max_tokens"  # the key that this server takes

    def __enter__(self) -> Endpoint:
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=self.timeout_s, headers=headers)
        self._lock, self._unanswered = threading.Lock(), 0
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, request: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep) -> Reply:
        """Send one request and return the reply.

        request: the body of a chat completion, or, with `prompt`, of a completion. `max_tokens` is
        the most: fewer are asked for if the context has no room for them. Raises NoReply, of it
        ContextTooLong if the prompt alone does not fit, or EndpointDown naming the address and the
        fix.
        """
        tokens, rest, before = request.get("max_tokens"), dict(request), ""
        rest.pop("max_tokens", None)
        while True:
            key = self._limit
            body = rest if tokens is None else {**rest, key: tokens}
            try:
                return self._retry(partial(self._complete, body), sleep)
            except RequestRefused as refusal:
                said = str(refusal)
                if key != OTHER_LIMIT and token_limit.wants_other_key(said):
                    self._limit = OTHER_LIMIT
                    continue
                if not tokens or not token_limit.limits_tokens(said):
                    raise
                if not (tokens := token_limit.tokens_left(said, tokens, before)):
                    raise
                before = said

    def describe(self, model: str, sleep: Callable[[float], None] = time.sleep) -> dict[str, Any]:
        """Return the server's description of a model, without volatile fields.

        Returns {} if the server has no list of models or does not name this one. Raises as `ask`
        does.
        """
        description: dict[str, Any] = next(
            (entry for entry in self._retry(self._models, sleep) if entry.get("id") == model), {}
        )
        return {name: value for name, value in description.items() if name not in PASSING}

    def reach(self) -> None:
        """Check once whether the server listens, for a user who waits at a terminal.

        Raises EndpointDown if no server listens or access is denied.
        """
        with suppress(NoReply):  # the server is up, but has no list of models
            if (response := self._send("GET", "models")) in (
                EndpointFault("ConnectError"),
                EndpointFault("ConnectTimeout"),
            ):
                raise EndpointDown(
                    f"{self.url}: {response.why}: check the address and that the server runs"
                )

    def _retry(
        self, attempt: Callable[[], Result | EndpointFault], sleep: Callable[[float], None]
    ) -> Result:
        """Call `attempt` until it returns no fault.

        Between tries it pauses for a growing time, or as long as the server asks for.
        """
        fault, wait = EndpointFault("not tried"), 0.0
        for number in range(TRIES if self._unanswered < DOWN else 0):
            if number:
                sleep(wait)
            with self._lock:
                self.sent += 1
            result = attempt()
            if not isinstance(result, EndpointFault):
                self._unanswered = 0
                return result
            fault = result
            with self._lock:
                self.faults[fault.why] = self.faults.get(fault.why, 0) + 1
            pause = min(LONGEST_PAUSE_S, self.pause_s * 2**number * random.uniform(0.5, 1.5))
            wait = max(min(fault.wait_s, LONGEST_WAIT_S), pause)
        with self._lock:
            self._unanswered += 1
        if self._unanswered >= DOWN:
            raise EndpointDown(
                f"{self.url}: {fault.why}, {TRIES} times for each of {DOWN} requests: check "
                "that the server runs, then run again"
            )
        raise NoReply(f"{self.url}: no whole reply in {TRIES} tries: {fault.why}")

    def _complete(self, request: Mapping[str, Any]) -> Reply | EndpointFault:
        body = self._send(
            "POST", "completions" if "prompt" in request else "chat/completions", request
        )
        return body if isinstance(body, EndpointFault) else _read(body or b"")

    def _models(self) -> list[dict[str, Any]] | EndpointFault:
        body = self._send("GET", "models")
        if isinstance(body, EndpointFault) or body is None:
            return body or []
        try:
            return [entry for entry in json.loads(body)["data"] if isinstance(entry, dict)]
        except (ValueError, KeyError, TypeError, RecursionError):
            return EndpointFault("an invalid list of models")

    def _send(
        self, method: str, path: str, request: Mapping[str, Any] | None = None
    ) -> bytes | EndpointFault | None:
        """Return the body, or None if the server has no such list.

        Raises NoReply and EndpointDown for errors that a retry will not fix.
        """
        try:
            with self._client.stream(
                method, f"{self.url.rstrip('/')}/{path}", json=request
            ) as response:
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > MAX_BYTES:
                        raise NoReply(f"a reply of more than {MAX_BYTES >> 20} MiB")
        except httpx.HTTPError as error:
            return EndpointFault(type(error).__name__)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise EndpointDown(
                f"{self.url}: not a valid address ({error}): give one like http://127.0.0.1:8000/v1"
            ) from error
        excerpt, status = (
            " ".join(body[:MAX_EXCERPT].decode("utf-8", "replace").split()),
            response.status_code,
        )
        if status == 200:
            return body
        if request is None and status in NONE_SUCH:
            return None
        if status in AGAIN or status >= 500:
            return EndpointFault(f"status {status}", _seconds(response.headers.get("Retry-After")))
        if status in WRONG:
            kind = ContextTooLong if token_limit.too_long(excerpt) else RequestRefused
            raise kind(f"the server refuses the question (status {status}): {excerpt}")
        raise EndpointDown(
            f"{self.url}: status {status}: {excerpt}: check the address, the model's name, and "
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


def _read(body: bytes) -> Reply | EndpointFault:
    try:
        reply = json.loads(body)
        choice, usage = reply["choices"][0], reply.get("usage") or {}
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        ended, tokens, written = (
            choice.get("finish_reason"),
            usage.get("total_tokens"),
            usage.get("completion_tokens"),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return EndpointFault("no body" if not body.strip() else "a body that is no completion")
    if ended in BROKEN_OFF:
        return EndpointFault(f"a reply that ended by {ended}")
    if ended == "content_filter":
        raise RequestRefused("the server's content filter refuses the question or its answer")
    if text is None and isinstance(ended, str):
        text = ""  # all its tokens went into hidden output
    if not isinstance(text, str):
        return EndpointFault("a body that is no completion")
    return Reply(
        text.encode("utf-8", "replace").decode("utf-8"),
        _count(tokens),
        _count(written),
        _text(ended),
        _text(reply.get("model")),
        _text(reply.get("system_fingerprint")),
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
