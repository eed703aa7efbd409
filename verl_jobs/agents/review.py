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
    Conversation,
    begin,
    comment_of,
    correction_request,
    reviewer_prompt,
)
from verl_jobs.agents.play import Reports, Writer, write_messages
from verl_jobs.agents.rollout import Rollout, RolloutRequest, Scores, transcript
from verl_jobs.agents.stream import stream_of


async def reviewer_rollouts(
    requests: Sequence[RolloutRequest],
    policy: Writer,
    generator: Writer,
    executor: Reports,
    scores: Scores,
) -> list[Rollout | None]:
    """Return the rollouts in the order of `requests`.

    None if the judge or the Generator's endpoint failed, or if no tokens were left. Rollouts of one
    problem share its first program and its control: if the control gets no reply, all of them are
    None.
    """
    keys = [request.truth for request in requests]
    firsts = await _first_programs(
        {request.truth: request for request in requests}, generator, executor
    )
    controls = {truth: deepcopy(first) for truth, first in firsts.items()}
    for control in controls.values():
        control.add_request(correction_request(control.attempts[-1].finding))
    comments = {
        at: Conversation(firsts[key].problem, reviewer_prompt(firsts[key]))
        for at, key in enumerate(keys)
        if key in firsts
    }
    await write_messages(list(comments.values()), policy)
    corrections = {
        at: _with_comment(firsts[keys[at]], comment)
        for at, comment in comments.items()
        if not comment.ended
    }
    await write_messages([*controls.values(), *corrections.values()], generator)
    controls = {
        truth: control for truth, control in controls.items() if control.ended != UNANSWERED
    }
    corrections = {
        at: correction
        for at, correction in corrections.items()
        if correction.ended != UNANSWERED and keys[at] in controls
    }
    pairs = [(truth, last_program(control)) for truth, control in controls.items()] + [
        (keys[at], last_program(correction)) for at, correction in corrections.items()
    ]
    program_scores = await asyncio.to_thread(scores, pairs)
    control_scores, comment_scores = (
        dict(zip(controls, program_scores, strict=False)),
        dict(zip(corrections, program_scores[len(controls) :], strict=True)),
    )
    return [
        _rollout(comments[at], corrections[at], control_scores[key], comment_scores[at])
        if at in comment_scores
        else None
        for at, key in enumerate(keys)
    ]


async def _first_programs(
    requests: dict[str, RolloutRequest], generator: Writer, executor: Reports
) -> dict[str, Conversation]:
    """Return the conversations with a first program, by ground truth.

    Leaves out problems whose first program could not be run, or had no tokens left.
    """
    conversations = {
        truth: begin(request.problem, request.messages) for truth, request in requests.items()
    }
    written = await write_messages(list(conversations.values()), generator)
    for conversation, finding in zip(
        written, await asyncio.to_thread(executor.findings, written), strict=True
    ):
        conversation.add_attempt(finding)
    return {
        truth: conversation
        for truth, conversation in conversations.items()
        if conversation.attempts and conversation.attempts[-1].finding.verdict is not Verdict.INFRA
    }


def _with_comment(first: Conversation, comment: Conversation) -> Conversation:
    correction = deepcopy(first)
    correction.set_comment(comment_of(comment.messages[-1]["content"]))
    correction.add_request(
        correction_request(correction.attempts[-1].finding, correction.attempts[-1].comment)
    )
    return correction


def last_program(conversation: Conversation) -> str:
    """Return the Generator's last message.

    That is its first program if no tokens were left for a correction.
    """
    return next(
        message["content"]
        for message in reversed(conversation.messages)
        if message["role"] == "assistant"
    )


def comment_reward(control: Score, commented: Score) -> float | None:
    """Return the reward of a comment, in [-1, 1]; None if either score is missing."""
    return (
        None
        if control.value is None or commented.value is None
        else (commented.value - control.value) / 2
    )


def _rollout(
    comment: Conversation, correction: Conversation, control: Score, commented: Score
) -> Rollout | None:
    reward = comment_reward(control, commented)
    if reward is None:
        return None
    stream = stream_of(comment)
    verdicts = f"{control.verdict}, with the comment {commented.verdict}"
    text = f"{transcript(correction)}\n\n[control]\n{verdicts}"
    return Rollout(
        stream,
        {len(stream.tokens) - 1: reward},
        commented,
        text,
        len(comment.messages),
        len(stream.tokens),
    )
