"""From a request to its answer: choose a version, wait for a turn, generate, fall back, record.

In: a request with its caller's rights. Out: the pieces of its completions, and one observation for
each version that was tried.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.completion import (
    Delta,
    EngineFailed,
    EngineRequest,
    PromptTooLong,
    Unsupported,
    one_line,
)
from serving.gateway.catalog import NO_CHAMPION, Catalog
from serving.gateway.declined import MAX_READ, asks_for_code, declined
from serving.gateway.observations import FALLBACK, NAMED, ErrorKind, Observation
from serving.gateway.pool import LoadedVersion, VersionPool
from serving.gateway.refusals import Refused
from serving.gateway.routing import Choice, Router, as_assigned
from serving.running_clock import RunningClock, running_clock

CHAMPION = "champion"
# Errors after which another version may answer.
UNSEEN = ("engine", "timeout", "unavailable", "suspended")
ANSWERED = ("", "declined", "shaped")
FEW = 16  # tokens; an answer of fewer is the beginning of one
logger = logging.getLogger(__name__)


@dataclass
class AdmittedRequest:
    """A request that was read and is allowed. user: as the client names it, "" for none. key: id of
    the API key. consent: of its owner, that a failed task may be trained on. tests: whether it
    carries tests. entry, weights: the version that answers and the hash of its tensors, known with
    the first piece. held: takes the observations, which the caller
    completes and records; None: they are recorded at once. version: that a proxy in front has
    chosen for this request; None: the router chooses. timeout_s: that the client allows.
    """

    request: EngineRequest
    model: str = CHAMPION
    user: str = ""
    key: str = ""
    consent: bool = False
    tests: bool = False
    priority: int = 0
    id: str = field(default_factory=partial(secrets.token_hex, 16))
    entry: Entry | None = None
    weights: str = ""
    held: list[Observation] | None = None
    version: int | None = None
    timeout_s: float | None = None

    @cached_property
    def unit(self) -> str:
        """Who is assigned to an arm: the user of this key, else the request alone."""
        named = f"{self.key}:{self.user}" if self.user else self.id
        return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass
class _Attempt:
    """What is measured while one version answers. client_s: seconds that the client took to read;
    they say nothing of the version. texts: beginning of each completion. cut: one was as long as
    the client allows.
    """

    clock: RunningClock
    client_s: float = 0.0
    first: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: ErrorKind = ""
    texts: dict[int, str] = field(default_factory=dict)
    cut: bool = False

    def __post_init__(self) -> None:
        self.began, self._stood_still = self.clock.now(), self.clock.stood_still

    @property
    def seconds(self) -> float:
        return self.clock.now() - self.began - self.client_s

    @property
    def suspended_s(self) -> float:
        """Seconds in which this process stood still meanwhile."""
        return self.clock.stood_still - self._stood_still

    def suspended(self) -> Refused | None:
        """Return the refusal of an attempt in which this process stood still, else None."""
        if not (seconds := self.suspended_s):
            return None
        return Refused(
            503, "suspended", f"the gateway stood still for {seconds:.0f} s: try again", 1
        )

    def add(self, delta: Delta) -> None:
        if self.first is None and delta.tokens:
            self.first = self.clock.now() - self.began
        self.prompt_tokens += delta.prompt_tokens
        self.completion_tokens += delta.tokens
        if len(text := self.texts.get(delta.index, "")) < MAX_READ:
            self.texts[delta.index] = text + delta.text
        self.cut |= delta.ending == "length"

    def ended(self, admitted: AdmittedRequest) -> ErrorKind:
        """Return the kind of a complete answer: whether no completion is one, and whether the
        client's tools, stop words or number of tokens have shaped it.
        """
        request = admitted.request
        if request.needs or request.stop or request.max_tokens < FEW:
            return "shaped"
        asked = admitted.tests or asks_for_code(request.chat)
        if not all(declined(text, asked) for text in self.texts.values()):
            return ""
        return "shaped" if self.cut else "declined"


class Service:
    """Answers requests: chooses a version, generates, falls back, records.

    observe: takes each observation; it must not wait.
    """

    def __init__(
        self,
        catalog: Catalog,
        pool: VersionPool,
        router: Router,
        settings: Serving,
        observe: Callable[[Observation], None],
    ) -> None:
        self.catalog, self.pool, self.router = catalog, pool, router
        self.settings, self.observe = settings, observe
        self.draining = False
        self.clock = running_clock()
        self._shadows: set[asyncio.Task[None]] = set()

    def route(self, admitted: AdmittedRequest) -> tuple[Choice, list[LoadedVersion]]:
        """Return the choice for a request, and the loaded versions that may answer it, best first.

        Raises Refused: draining, no champion, an unknown model.
        """
        if self.draining:
            raise Refused(503, "draining", "the gateway is being stopped: try again", 1)
        if admitted.model != CHAMPION:
            loaded = self.pool.require(self.catalog.known(admitted.model))
            return Choice(loaded.entry.version, NAMED), [loaded]
        try:
            choice = self.router.choose(admitted.unit)
            if admitted.version is not None:
                choice = as_assigned(choice, admitted.version, self.router.versions())
        except LookupError as error:
            message = str(error.args[0]) if error.args else "no champion"
            raise Refused(503, "no_champion", message, 5) from error
        if not (loaded_versions := self.backups(choice.version)):
            raise Refused(503, "not_loaded", self.catalog.fault or "no version is loaded", 5)
        return choice, loaded_versions

    def answering(self) -> Entry:
        """Return the version that answers requests for the champion: the ledger's, or the one that
        the releases left in front of users. Raises Refused without one.
        """
        try:
            return self.catalog.entries[self.router.versions()[0]]
        except LookupError as error:
            message = str(error.args[0]) if error.args else NO_CHAMPION
            raise Refused(503, "no_champion", message, 5) from error

    def backups(self, version: int) -> list[LoadedVersion]:
        """Return the loaded versions that may answer a request for this one, best first."""
        serving = self.catalog.serving
        others = [entry.version for entry in (serving, self.catalog.before(serving)) if entry]
        versions = dict.fromkeys([version, *others])
        return [self.pool.loaded[v] for v in versions if v in self.pool.loaded]

    async def stream(self, admitted: AdmittedRequest) -> AsyncGenerator[Delta, None]:
        """Yield the pieces of the completions. Closing the generator stops the work.

        A version that fails before its first piece is replaced by the next one. Raises Refused.
        """
        patience_s = min(admitted.timeout_s or inf, self.settings.deadline_s)
        deadline = asyncio.get_running_loop().time() + patience_s
        choice, versions = self.route(admitted)
        for at, loaded in enumerate(versions):
            own = loaded.entry.version == choice.version
            if not loaded.breaker.enter():
                if own:
                    self._skip(admitted, choice)
                continue
            here = choice if own else Choice(loaded.entry.version, FALLBACK)
            started = False
            try:
                async with aclosing(self._attempt(admitted, here, loaded, deadline)) as deltas:
                    async for delta in deltas:
                        started, admitted.entry = True, loaded.entry
                        admitted.weights = loaded.weights
                        yield delta
                self._start_shadows(admitted, choice)
                return
            except _Failed as failed:
                last = all(each.breaker.state == "open" for each in versions[at + 1 :])
                late = asyncio.get_running_loop().time() >= deadline
                if started or last or late:
                    raise failed.refusal from failed
        wait_s = min(each.breaker.opens_in_s for each in versions)
        raise Refused(503, "breaker_open", "the model failed repeatedly: try again", wait_s)

    async def _attempt(
        self,
        admitted: AdmittedRequest,
        choice: Choice,
        loaded: LoadedVersion,
        deadline: float,
        shadow: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """Yield one version's pieces, and record what happened. Raises Refused and _Failed."""
        attempt, breaker = _Attempt(self.clock), loaded.breaker
        attempt.error = "gone"  # unless the end is reached, or something else happens
        try:
            async with (
                self.pool.use(loaded),
                loaded.admission.turn(admitted.priority, deadline),
                aclosing(loaded.engine.stream(admitted.request)) as deltas,
            ):
                while (delta := await self._next(deltas, deadline)) is not None:
                    if asyncio.get_running_loop().time() >= deadline:
                        slow = Refused(408, "slow_client", "the answer was not read in time")
                        raise attempt.suspended() or slow
                    attempt.add(delta)
                    given = self.clock.now()
                    try:
                        yield delta
                    finally:
                        attempt.client_s += self.clock.now() - given
            attempt.error = attempt.ended(admitted)
        except (PromptTooLong, Unsupported) as error:
            attempt.error = "refused"
            chat, needs = admitted.request.chat, admitted.request.needs
            if isinstance(error, PromptTooLong):
                param = "prompt" if isinstance(chat, str) else "messages"
                raise Refused(400, "context_length_exceeded", str(error), param=param) from error
            raise Refused(400, "unsupported", str(error), param=next(iter(needs), None)) from error
        except Refused as refusal:
            kinds: dict[str, ErrorKind] = {"slow_client": "gone", "suspended": "suspended"}
            attempt.error = kinds.get(refusal.code, "overloaded")
            raise
        except TimeoutError as error:
            attempt.error = "timeout"
            late = Refused(504, "timeout", "the model did not answer in time")
            own = (admitted.timeout_s or inf) < self.settings.deadline_s
            if own and not isinstance(error, _Stalled):
                attempt.error = "gone"
                late = Refused(408, "timeout", "the request's timeout passed before the answer")
            else:
                late = attempt.suspended() or late
            raise _Failed(late) from error
        except Exception as error:  # EngineFailed, or a fault that the engine does not know
            attempt.error = "engine"
            if not isinstance(error, EngineFailed):
                logger.exception("version %d failed", choice.version)
            raise _Failed(Refused(503, "engine_failed", one_line(error), 1)) from error
        finally:
            seconds = attempt.seconds
            if attempt.error in ("engine", "timeout") and attempt.suspended_s:
                attempt.error = "suspended"
            if attempt.error in (*ANSWERED, "engine", "timeout"):
                breaker.record(attempt.error in ANSWERED, seconds)
            else:
                breaker.leave()
            self._record(admitted, choice, attempt, seconds, shadow)

    async def _next(self, deltas: AsyncGenerator[Delta, None], deadline: float) -> Delta | None:
        """Return the next piece; None at the end. Raises TimeoutError, and _Stalled."""
        stalls = asyncio.get_running_loop().time() + self.settings.stall_s
        try:
            async with asyncio.timeout_at(min(deadline, stalls)):
                return await anext(deltas, None)
        except TimeoutError as error:
            if stalls < deadline:
                raise _Stalled from error
            raise

    def _skip(self, admitted: AdmittedRequest, choice: Choice, shadow: bool = False) -> None:
        """Record that the version of a release is unavailable: without such a row, one that fails
        would be observed less the more it fails.
        """
        if choice.release:
            attempt = _Attempt(self.clock, error="unavailable")
            self._record(admitted, choice, attempt, 0.0, shadow)

    def _record(
        self,
        admitted: AdmittedRequest,
        choice: Choice,
        attempt: _Attempt,
        seconds: float,
        shadow: bool,
    ) -> None:
        hidden = bool(attempt.error in UNSEEN and attempt.first is None)
        observation = Observation(
            response=f"{admitted.id}-failed" if hidden else admitted.id,
            time=time.time(),
            version=choice.version,
            arm=choice.arm,
            share=choice.share,
            release=choice.release,
            step=choice.step,
            unit=admitted.unit,
            key=admitted.key,
            first_token_s=attempt.first,
            total_s=seconds,
            prompt_tokens=attempt.prompt_tokens,
            completion_tokens=attempt.completion_tokens,
            error=attempt.error,
            shadow=shadow,
        )
        if admitted.held is None:
            self.observe(observation)
        else:
            admitted.held.append(observation)

    def _start_shadows(self, admitted: AdmittedRequest, choice: Choice) -> None:
        """Send copies to the shadows where their version is idle: they never delay an answer."""
        for version in choice.shadows:
            loaded = self.pool.loaded.get(version)
            if loaded is None or not loaded.admission.idle:
                continue
            here = replace(choice, version=version, arm=loaded.entry.checkpoint)
            if loaded.breaker.enter():
                running = asyncio.create_task(self._shadow(admitted, here, loaded))
                self._shadows.add(running)
                running.add_done_callback(self._shadows.discard)
            else:
                self._skip(replace(admitted, held=None), here, shadow=True)

    async def _shadow(
        self, admitted: AdmittedRequest, choice: Choice, loaded: LoadedVersion
    ) -> None:
        deadline = asyncio.get_running_loop().time() + self.settings.deadline_s
        copy = replace(admitted, priority=-100, held=None)
        try:
            async for _ in self._attempt(copy, choice, loaded, deadline, shadow=True):
                pass
        except (Refused, _Failed):
            pass  # `_attempt` has recorded it, and nobody waits for the answer of a shadow

    async def close(self) -> None:
        for running in list(self._shadows):
            running.cancel()
        await asyncio.gather(*self._shadows, return_exceptions=True)


class _Stalled(TimeoutError):
    """No piece came for `stall_s`, before the deadline."""


class _Failed(Exception):
    """A version failed. refusal: what the client gets if no other version answers."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
