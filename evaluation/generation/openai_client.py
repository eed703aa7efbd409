"""Requests to an OpenAI-compatible endpoint, many at once, each completion cached before the next
request takes its place.

Transient errors (429, 5xx, timeouts, truncated or missing answers) are retried by
problems/synthesis/endpoint.py, after the wait that the server asks for.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from evaluation.generation.completion_cache import CompletionCache, Key
from evaluation.generation.decoder import before_stop
from evaluation.sampling import Answer, Progress, Prompt, Sampling
from problems.synthesis import endpoint
from problems.synthesis.replies import ContextTooLong, EndpointDown, NoReply, Refused, Reply

MOST_STOPS = 4  # OpenAI's limit in a request; all stop words are applied to the reply
# consecutive requests that the server rejects as invalid: then the cause is not one request, and
# the pass ends
REFUSED = 3
SEEDS = 2**31


class Unanswered(RuntimeError):
    """Some requests got no completion; the completions that arrived are cached."""


@dataclass(frozen=True)
class Endpoint:
    """`url` ends before /chat/completions. `form` base uses /completions with the raw prompt. Keys
    come from the environment alone.
    """

    url: str
    model: str
    form: Literal["chat", "base"] = "chat"
    at_once: int = 16
    timeout_s: float = 300.0
    pause_s: float = endpoint.PAUSE_S  # before the first retry; doubled for each further one

    @property
    def chats(self) -> bool:
        return self.form == "chat"

    @cached_property
    def who(self) -> dict[str, Any]:
        """Return address, name, and the server's details of the model; of Ratchet's gateway, the
        hash of the weights. Raises EndpointDown.
        """
        with self.open() as client:
            try:
                said = client.describe(self.model)
            except NoReply as error:
                raise EndpointDown(
                    f"{self.url}: its list of models: {error}: see whether the server is up, "
                    "then run again"
                ) from error
        return {"url": self.url.rstrip("/"), "model": self.model, "said": said}

    def open(self) -> endpoint.Endpoint:
        return endpoint.Endpoint(self.url, self.timeout_s, self.pause_s)


def ask_all(
    source: Endpoint,
    prompts: Sequence[Prompt],
    rows: Sequence[Key],
    sampling: Sampling,
    kept: CompletionCache,
    on_progress: Progress | None = None,
) -> None:
    """Request every row that is not cached, once for each key. Raises EndpointDown, and Unanswered
    after all others were requested.
    """
    missing = {
        key: prompts[at // sampling.n] for at, key in enumerate(rows) if key not in kept.answers
    }
    weight = Counter(rows)
    done = sum(count for key, count in weight.items() if key in kept.answers)
    with source.open() as client, ThreadPoolExecutor(source.at_once) as pool:
        asker = _Asker(source, client, sampling, kept)
        futures = {pool.submit(asker.ask, key, prompt): key for key, prompt in missing.items()}
        try:
            for future in as_completed(futures):
                future.result()
                done += weight[futures[future]]
                if on_progress:
                    on_progress(done, len(rows))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if asker.without:
        raise Unanswered(
            f"{source.url}: {len(asker.without)} of {len(missing)} questions have no answer, "
            f"the first: {asker.without[0]}; "
            "what was answered is kept: run again, and those alone are asked"
        )


class _Asker:
    """One pass over the requests, from many threads."""

    def __init__(
        self, source: Endpoint, client: endpoint.Endpoint, sampling: Sampling, kept: CompletionCache
    ) -> None:
        self.source, self.client, self.sampling, self.kept = source, client, sampling, kept
        self.without: list[str] = []
        self._name = next(iter(kept.models), "").partition(" ")[0]  # model that answered so far
        self._lock, self._refused = threading.Lock(), 0

    def ask(self, key: Key, prompt: Prompt) -> None:
        began = time.perf_counter()
        try:
            reply = self.client.ask(self.question(key, prompt))
        except ContextTooLong:
            # The same result as for a checkpoint whose positions the prompt fills.
            return self.kept.add([(key, Answer("", 0, True))])
        except NoReply as error:
            return self._left(error)
        self._same(reply)
        self._refused = 0
        self.kept.add(
            [(key, self._answer(reply, time.perf_counter() - began))],
            f"{reply.model} {reply.fingerprint}".strip(),
        )

    def question(self, key: Key, prompt: Prompt) -> Mapping[str, Any]:
        """Return the request body. Settings that are not needed are left out, because servers
        reject options that they do not know.
        """
        body: dict[str, Any] = (
            {"prompt": prompt} if isinstance(prompt, str) else {"messages": prompt}
        )
        body |= {
            "model": self.source.model,
            "max_tokens": self.sampling.max_new_tokens,
            "temperature": self.sampling.temperature,
        }
        if self.sampling.temperature > 0:
            body["seed"] = (self.sampling.seed + key.number) % SEEDS
            if self.sampling.top_p < 1:
                body["top_p"] = self.sampling.top_p
        if self.sampling.stop:
            body["stop"] = list(self.sampling.stop[:MOST_STOPS])
        return body

    def _answer(self, reply: Reply, seconds: float) -> Answer:
        text = before_stop(reply.text, self.sampling.stop)
        cut = (
            reply.ended == "length"
            if reply.ended
            else reply.written >= self.sampling.max_new_tokens
        )
        return Answer(text, reply.written, cut and text == reply.text, seconds)

    def _same(self, reply: Reply) -> None:
        """Check that the same model replied as before: a score is of one model. Raises
        EndpointDown.
        """
        with self._lock:
            self._name = self._name or reply.model
            if reply.model != self._name:
                raise EndpointDown(
                    f"{self.source.url}: {self._name} answered before, {reply.model} answers "
                    "now: ask for one of them by its own name, and run again"
                )

    def _left(self, why: NoReply) -> None:
        with self._lock:
            self.without.append(str(why))
            self._refused += isinstance(why, Refused)
            if self._refused >= REFUSED:
                raise Unanswered(
                    f"{self.source.url}: {REFUSED} questions in a row were refused: {why}: "
                    "fix what it names, and run again"
                )
