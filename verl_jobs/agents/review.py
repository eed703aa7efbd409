"""Training of the Reviewer: the reward of a comment is the change that it causes.

Another model, which is not trained, writes a program and corrects it with the comment. As a control
it corrects the same program without a comment. The reward is half the difference of the two scores,
so a comment without effect earns 0 and a misleading one less. Both corrections are decoded
greedily, so they differ only because of the comment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import deepcopy

from rewards.score import Score
from sandbox.protocol import Verdict
from verl_jobs.agents.conversation import (
    UNANSWERED,
    Attempt,
    Conversation,
    begin,
    comment_of,
    mend_request,
    reviewer_question,
)
from verl_jobs.agents.play import Reports, Writer, spoken
from verl_jobs.agents.rollout import Asked, Rollout, Scores, transcript
from verl_jobs.agents.stream import stream_of


async def reviewed(
    asked: Sequence[Asked], policy: Writer, generator: Writer, executor: Reports, scores: Scores
) -> list[Rollout | None]:
    """Return the rollouts in the order of `asked`.

    None if the judge or the Generator's endpoint failed, or if no tokens were left. Rollouts of one
    problem share its first program and its control: if the control gets no reply, all of them are
    None.
    """
    keys = [one.truth for one in asked]
    firsts = await _first_programs({one.truth: one for one in asked}, generator, executor)
    controls = {truth: deepcopy(first) for truth, first in firsts.items()}
    for control in controls.values():
        control.hear(mend_request(control.attempts[-1].finding))
    comments = {
        at: Conversation(firsts[key].problem, reviewer_question(firsts[key]))
        for at, key in enumerate(keys)
        if key in firsts
    }
    await spoken(list(comments.values()), policy)
    mends = {
        at: _told(firsts[keys[at]], comment)
        for at, comment in comments.items()
        if not comment.ended
    }
    await spoken([*controls.values(), *mends.values()], generator)
    controls = {
        truth: control for truth, control in controls.items() if control.ended != UNANSWERED
    }
    mends = {
        at: mend for at, mend in mends.items() if mend.ended != UNANSWERED and keys[at] in controls
    }
    pairs = [(truth, last_of(control)) for truth, control in controls.items()] + [
        (keys[at], last_of(mend)) for at, mend in mends.items()
    ]
    found = await asyncio.to_thread(scores, pairs)
    without, with_comment = (
        dict(zip(controls, found, strict=False)),
        dict(zip(mends, found[len(controls) :], strict=True)),
    )
    return [
        _rollout(comments[at], mends[at], without[key], with_comment[at])
        if at in with_comment
        else None
        for at, key in enumerate(keys)
    ]


async def _first_programs(
    asked: dict[str, Asked], generator: Writer, executor: Reports
) -> dict[str, Conversation]:
    """Return the conversations with a first program, by ground truth.

    Leaves out problems whose first program could not be run, or had no tokens left.
    """
    begun = {truth: begin(one.problem, one.messages) for truth, one in asked.items()}
    written = await spoken(list(begun.values()), generator)
    for conversation, finding in zip(
        written, await asyncio.to_thread(executor.findings, written), strict=True
    ):
        conversation.attempts.append(Attempt(conversation.messages[-1]["content"], finding))
    return {
        truth: conversation
        for truth, conversation in begun.items()
        if conversation.attempts and conversation.attempts[-1].finding.verdict is not Verdict.INFRA
    }


def _told(first: Conversation, comment: Conversation) -> Conversation:
    mend = deepcopy(first)
    mend.commented(comment_of(comment.messages[-1]["content"]))
    mend.hear(mend_request(mend.attempts[-1].finding, mend.attempts[-1].comment))
    return mend


def last_of(conversation: Conversation) -> str:
    """Return the Generator's last message.

    That is its first program if no tokens were left for a correction.
    """
    return next(
        message["content"]
        for message in reversed(conversation.messages)
        if message["role"] == "assistant"
    )


def change(control: Score, commented: Score) -> float | None:
    """Return the reward of a comment, in [-1, 1]; None if either score is missing."""
    return (
        None
        if control.value is None or commented.value is None
        else (commented.value - control.value) / 2
    )


def _rollout(
    comment: Conversation, mend: Conversation, control: Score, commented: Score
) -> Rollout | None:
    changed = change(control, commented)
    if changed is None:
        return None
    stream = stream_of(comment)
    text = (
        f"{transcript(mend)}\n\n[control]\n{control.verdict}, with the comment {commented.verdict}"
    )
    return Rollout(
        stream,
        {len(stream.tokens) - 1: changed},
        commented,
        text,
        len(comment.messages),
        len(stream.tokens),
    )
