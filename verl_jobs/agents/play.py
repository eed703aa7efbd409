"""Who speaks when. All conversations of a batch take each turn together: one call of the Generator, one of the sandbox, one of the Reviewer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from sandbox.protocol import Verdict
from verl_jobs.agents.conversation import (
    LOST,
    MEND,
    ROOM,
    SILENT,
    SOLVED,
    TURNS,
    Attempt,
    Conversation,
    Finding,
    comment_of,
    mend_request,
    review_request,
    reviewer_question,
)  # fmt: skip


class Writer(Protocol):
    """A model: gives the next assistant message of each conversation, None where no room is left.

    Does not change them, but for `stream`, and for `ended` where it is something else than room that was missing.
    """

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]: ...


class Reports(Protocol):
    """The Executor."""

    def findings(self, conversations: Sequence[Conversation]) -> list[Finding]: ...


class Reviews(Protocol):
    """Brings each conversation from the Executor's finding to the request to mend; those that end on the way say so."""

    async def review(self, conversations: Sequence[Conversation]) -> None: ...


async def converse(
    conversations: Sequence[Conversation],
    generator: Writer,
    executor: Reports,
    reviewer: Reviews,
    turns: int,
    on_attempt: Callable[[Conversation], None] | None = None,
) -> None:
    """Plays each to its end, at most so many programs. on_attempt: told after each finding. Raises what a writer raises."""
    going = list(conversations)
    for left in reversed(range(turns)):
        going = await spoken(going, generator)
        findings = await asyncio.to_thread(executor.findings, going)
        for conversation, finding in zip(going, findings, strict=True):
            conversation.attempts.append(Attempt(conversation.messages[-1]["content"], finding))
            conversation.ended = _over(finding, left)
            if on_attempt:
                on_attempt(conversation)
        going = [conversation for conversation in going if not conversation.ended]
        if not going:
            return
        await reviewer.review(going)
        going = [conversation for conversation in going if not conversation.ended]


async def spoken(conversations: Sequence[Conversation], writer: Writer) -> list[Conversation]:
    """The writer's next message goes into each; returned are those that got one."""
    texts = await writer.write(conversations) if conversations else []
    for conversation, text in zip(conversations, texts, strict=True):
        if text is None:
            conversation.ended = conversation.ended or ROOM
        else:
            conversation.messages.append({"role": "assistant", "content": text})
    return [conversation for conversation in conversations if not conversation.ended]


def _over(finding: Finding, left: int) -> str:
    if finding.verdict is Verdict.INFRA:
        return LOST
    return SOLVED if finding.solved else TURNS if not left else ""


class Nobody:
    """No Reviewer: the Executor's finding alone."""

    async def review(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            finding = conversation.attempts[-1].finding
            if finding.total == 0 and finding.verdict is not Verdict.CE:
                conversation.ended = SILENT
            else:
                conversation.hear(mend_request(finding))


class Itself:
    """The Generator reviews its own program, inside the conversation; its comment is its own words, and trained as such."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def review(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            conversation.hear(review_request(conversation.attempts[-1].finding))
        for conversation in await spoken(conversations, self.writer):
            conversation.commented(conversation.messages[-1]["content"])
            conversation.hear(MEND)


class Another:
    """A Reviewer with a voice of its own, who is asked outside the conversation; what it says is told to the Generator."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def review(self, conversations: Sequence[Conversation]) -> None:
        asked = [
            Conversation(conversation.problem, reviewer_question(conversation))
            for conversation in conversations
        ]
        for conversation, text in zip(conversations, await self.writer.write(asked), strict=True):
            conversation.commented(comment_of(text or ""))
            conversation.hear(
                mend_request(conversation.attempts[-1].finding, conversation.attempts[-1].comment)
            )
