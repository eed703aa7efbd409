"""Requests to an OpenAI-compatible endpoint, many at once, each completion cached before the next
request takes its place.

Transient errors (429, 5xx, timeouts, truncated or missing replies) are retried by
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

from evaluation.generation.completion_cache import CacheKey, CompletionCache
from evaluation.sampling import CompletionOutput, Progress, Prompt, Sampling
from problems.synthesis import endpoint
from problems.synthesis.replies import ContextTooLong, EndpointDown, NoReply, Reply, RequestRefused

MAX_STOPS = 4  # OpenAI's limit in a request; all stop words are applied to the reply
# consecutive requests that the server rejects as invalid: then the cause is not one request, and
# the pass ends
REFUSED = 3


class MissingCompletions(RuntimeError):
    """Some requests got no completion; the completions that arrived are cached."""


@dataclass(frozen=True)
class EndpointSource:
    """An OpenAI-compatible server that generates completions.

    `url` ends before /chat/completions. `form` base uses /completions with the raw prompt. Keys
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
    def identity(self) -> dict[str, Any]:
        """Return address, name, and the server's details of the model; of Ratchet's gateway, the
        hash of the weights. Raises EndpointDown.
        """
        with self.open() as client:
            try:
                description = client.describe(self.model)
            except NoReply as error:
                raise EndpointDown(
                    f"{self.url}: its list of models: {error}: check that the server is up, "
                    "then run again"
                ) from error
        return {"url": self.url.rstrip("/"), "model": self.model, "said": description}

    def open(self) -> endpoint.Endpoint:
        return endpoint.Endpoint(self.url, self.timeout_s, self.pause_s)


def request_all(
    source: EndpointSource,
    prompts: Sequence[Prompt],
    rows: Sequence[CacheKey],
    sampling: Sampling,
    cache: CompletionCache,
    on_progress: Progress | None = None,
) -> None:
    """Request every row that is not cached, once for each key.

    Raises EndpointDown, and MissingCompletions after all others were requested.
    """
    missing = {
        key: prompts[at // sampling.n]
        for at, key in enumerate(rows)
        if key not in cache.completions
    }
    weight = Counter(rows)
    done = sum(count for key, count in weight.items() if key in cache.completions)
    with source.open() as client, ThreadPoolExecutor(source.at_once) as pool:
        requests = _Requests(source, client, sampling, cache)
        futures = {pool.submit(requests.send, key, prompt): key for key, prompt in missing.items()}
        try:
            for future in as_completed(futures):
                future.result()
                done += weight[futures[future]]
                if on_progress:
                    on_progress(done, len(rows))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if requests.failures:
        raise MissingCompletions(
            f"{source.url}: {len(requests.failures)} of {len(missing)} requests got no completion, "
            f"the first: {requests.failures[0]}; the others are cached: run it again to repeat "
            "the failed ones"
        )


class _Requests:
    """One pass over the requests, from many threads."""

    def __init__(
        self,
        source: EndpointSource,
        client: endpoint.Endpoint,
        sampling: Sampling,
        cache: CompletionCache,
    ) -> None:
        self.source, self.client, self.sampling, self.cache = source, client, sampling, cache
        self.failures: list[str] = []
        self._model = next(iter(cache.models), "").partition(" ")[0]  # model of earlier replies
        self._lock, self._refused = threading.Lock(), 0

    def send(self, key: CacheKey, prompt: Prompt) -> None:
        began = time.perf_counter()
        try:
            reply = self.client.ask(self.body(key, prompt))
        except ContextTooLong:
            # The same result as for a checkpoint whose positions the prompt fills.
            return self.cache.add([(key, CompletionOutput("", 0, True))])
        except NoReply as error:
            return self._count_failure(error)
        self._check_model(reply)
        self._refused = 0
        self.cache.add(
            [(key, self._completion(reply, time.perf_counter() - began))],
            f"{reply.model} {reply.fingerprint}".strip(),
        )

    def body(self, key: CacheKey, prompt: Prompt) -> Mapping[str, Any]:
        """Return the request body. Settings that are not needed are left out, because servers
        reject options that they do not know.
        """
        from decoding.draws import nth_seed

        body: dict[str, Any] = (
            {"prompt": prompt} if isinstance(prompt, str) else {"messages": prompt}
        )
        body |= {
            "model": self.source.model,
            "max_tokens": self.sampling.max_new_tokens,
            "temperature": self.sampling.temperature,
        }
        if self.sampling.temperature > 0:
            body["seed"] = nth_seed(self.sampling.seed, key.number)
            if self.sampling.top_p < 1:
                body["top_p"] = self.sampling.top_p
        if self.sampling.stop:
            body["stop"] = list(self.sampling.stop[:MAX_STOPS])
        return body

    def _completion(self, reply: Reply, seconds: float) -> CompletionOutput:
        from decoding.text import before_stop

        text = before_stop(reply.text, self.sampling.stop)
        cut = (
            reply.ended == "length"
            if reply.ended
            else reply.written >= self.sampling.max_new_tokens
        )
        return CompletionOutput(text, reply.written, cut and text == reply.text, seconds)

    def _check_model(self, reply: Reply) -> None:
        """Check that the same model replied as before: a score is of one model. Raises
        EndpointDown.
        """
        with self._lock:
            self._model = self._model or reply.model
            if reply.model != self._model:
                raise EndpointDown(
                    f"{self.source.url}: earlier replies are from {self._model}, this one is from "
                    f"{reply.model}: give one of the two as the model, and run again"
                )

    def _count_failure(self, error: NoReply) -> None:
        with self._lock:
            self.failures.append(str(error))
            self._refused += isinstance(error, RequestRefused)
            if self._refused >= REFUSED:
                raise MissingCompletions(
                    f"{self.source.url}: {REFUSED} requests in a row were refused: {error}: "
                    "correct the setting that it names, and run again"
                )
