"""Turn-taking: all conversations of a batch take each turn together.

A turn is one call of the Generator, one of the sandbox, one of the Reviewer.
"""

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
    Conversation,
    ExecutorResult,
    comment_of,
    correction_request,
    review_request,
    reviewer_prompt,
)
from verl_jobs.agents.tool import PythonTool


class Writer(Protocol):
    """A model that returns the next assistant message of each conversation.

    The message is None if no tokens are left. The model does not modify the conversations, except
    for `stream`, and for `ended` if the reason is not a lack of tokens.
    """

    async def write(self, conversations: Sequence[Conversation]) -> list[str | None]: ...


class Reports(Protocol):
    """Interface of the Executor."""

    def findings(self, conversations: Sequence[Conversation]) -> list[ExecutorResult]: ...


class Reviews(Protocol):
    """Interface of a Reviewer.

    Adds the messages between the Executor's finding and the next program. Sets `ended` of
    conversations that end there.
    """

    async def review(self, conversations: Sequence[Conversation]) -> None: ...


async def converse(
    conversations: Sequence[Conversation],
    generator: Writer,
    executor: Reports,
    reviewer: Reviews,
    turns: int,
    *,
    on_attempt: Callable[[Conversation], None] | None = None,
    tool: PythonTool | None = None,
) -> None:
    """Run each conversation to its end, with at most `turns` programs as answers.

    on_attempt: called after each finding. Raises the writer's exceptions.
    """
    active = list(conversations)
    for turns_left in reversed(range(turns)):
        active = await write_answers(active, generator, tool)
        findings = await asyncio.to_thread(executor.findings, active)
        for conversation, finding in zip(active, findings, strict=True):
            conversation.add_attempt(finding)
            conversation.ended = _end_reason(finding, turns_left)
            if on_attempt:
                on_attempt(conversation)
        active = [conversation for conversation in active if not conversation.ended]
        if not active:
            return
        await reviewer.review(active)
        active = [conversation for conversation in active if not conversation.ended]


async def write_answers(
    conversations: Sequence[Conversation], writer: Writer, tool: PythonTool | None
) -> list[Conversation]:
    """Append messages of the writer, and results of its calls, until each last one is an answer.

    A call after which nothing fits is an answer.
    """
    written = await write_messages(conversations, writer)
    calling = written
    while tool and (calling := await asyncio.to_thread(tool.run, calling)):
        going = await write_messages(calling, writer)
        for conversation in calling:
            if conversation.ended == ROOM:
                conversation.messages.pop()
                conversation.ended = ""
        calling = going
    return [conversation for conversation in written if not conversation.ended]


async def write_messages(
    conversations: Sequence[Conversation], writer: Writer
) -> list[Conversation]:
    """Append the writer's next message to each conversation; return those that got one."""
    texts = await writer.write(conversations) if conversations else []
    for conversation, text in zip(conversations, texts, strict=True):
        if text is None:
            conversation.ended = conversation.ended or ROOM
        else:
            conversation.messages.append({"role": "assistant", "content": text})
    return [conversation for conversation in conversations if not conversation.ended]


def _end_reason(finding: ExecutorResult, turns_left: int) -> str:
    if finding.verdict is Verdict.INFRA:
        return LOST
    return SOLVED if finding.solved else TURNS if not turns_left else ""


class NoReviewer:
    """No Reviewer: only the Executor's finding."""

    async def review(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            finding = conversation.attempts[-1].finding
            if finding.total == 0 and finding.verdict is not Verdict.CE:
                conversation.ended = SILENT
            else:
                conversation.add_request(correction_request(finding))


class SelfReview:
    """The Generator reviews its own program inside the conversation.

    Its comment is part of its own messages and is trained as such.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def review(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            conversation.add_request(review_request(conversation.attempts[-1].finding))
        for conversation in await write_messages(conversations, self.writer):
            conversation.set_comment(conversation.messages[-1]["content"])
            conversation.add_request(MEND)


class SeparateReviewer:
    """A separate Reviewer, prompted outside the conversation; the Generator gets its comment."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def review(self, conversations: Sequence[Conversation]) -> None:
        prompts = [
            Conversation(conversation.problem, reviewer_prompt(conversation))
            for conversation in conversations
        ]
        for conversation, text in zip(conversations, await self.writer.write(prompts), strict=True):
            conversation.set_comment(comment_of(text or ""))
            conversation.add_request(
                correction_request(
                    conversation.attempts[-1].finding, conversation.attempts[-1].comment
                )
            )
