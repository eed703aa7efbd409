"""What the gateway asks an engine for, and what an engine returns: pieces of completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Chat = list[dict[str, Any]]
Ending = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True)
class EngineRequest:
    """One request for `n` completions. `temperature` 0 takes the most likely token each time, as
    the gate's evaluation does; `seed` None draws a new seed for each request.

    whole: nobody looks at single pieces, so that an engine may collect them.
    logprobs: None, or how many alternatives to report for each token. needs: OpenAI's fields
    `tools`, `tool_choice`, `parallel_tool_calls` and `response_format`, for engines that have them.
    """

    chat: Chat | str  # a string is continued unchanged, without a chat template
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    logprobs: int | None = None
    needs: dict[str, Any] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True)
class TokenLogprob:
    """A token's text with the natural logarithm of its probability, and the most likely tokens."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Delta:
    """The next piece of completion number `index`. tokens: new tokens, also those whose text is
    held back. prompt_tokens: of the request, in the first delta. ending: set in the completion's
    last delta. tool_calls: pieces in OpenAI's form.
    """

    index: int
    text: str = ""
    tokens: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    ending: Ending | None = None
    prompt_tokens: int = 0
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass
class EngineReply:
    """One whole completion with its token counts."""

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: Ending = "stop"
    logprobs: list[TokenLogprob] = field(default_factory=list)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)


class PromptTooLong(ValueError):
    """The prompt leaves no space for a completion within the model's positions."""


class Unsupported(ValueError):
    """This engine cannot do what the request needs."""


class EngineFailed(RuntimeError):
    """The engine broke off; the message is one line."""


class Engine(Protocol):
    def stream(self, request: EngineRequest) -> AsyncGenerator[Delta, None]:
        """Yield the completions' pieces. Closing the generator stops the work.

        Raises PromptTooLong, Unsupported, EngineFailed.
        """
        ...

    def healthy(self) -> bool:
        """Return whether it can answer. May take two seconds; called in a thread."""
        ...

    def close(self) -> None:
        """Release everything. No request is under way."""
        ...


async def complete(engine: Engine, request: EngineRequest) -> list[EngineReply]:
    """Return whole completions, in the order of their index."""
    replies = [EngineReply() for _ in range(request.n)]
    async for delta in engine.stream(request):
        gather(replies, delta)
    return replies


def gather(replies: Sequence[EngineReply], delta: Delta) -> None:
    """Add a piece to the reply that it belongs to."""
    reply = replies[delta.index]
    reply.text += delta.text
    reply.completion_tokens += delta.tokens
    reply.logprobs += delta.logprobs
    reply.tool_calls += delta.tool_calls
    if delta.prompt_tokens:
        for each in replies:
            each.prompt_tokens = delta.prompt_tokens
    if delta.ending:
        reply.finish_reason = delta.ending


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, else its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
