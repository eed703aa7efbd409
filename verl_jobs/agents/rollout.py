"""Training data of a conversation: the policy's tokens, their rewards, and the last score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from problems.schema import Problem
from rewards.score import Score
from verl_jobs.agents.conversation import Conversation, Message
from verl_jobs.agents.shaping import improvements
from verl_jobs.agents.stream import Stream, stream_of

BONUS = "conversation"  # key of a sample's trace: its reward less the value of its last program
# (ground truth, completion) of each -> scores, in order
Scores = Callable[[Sequence[tuple[str, str]]], list[Score]]


@dataclass(frozen=True)
class RolloutRequest:
    """One rollout that verl requests: its prompt, the ground truth, and the problem in it."""

    messages: Sequence[Message]
    truth: str
    problem: Problem


@dataclass(frozen=True)
class Rollout:
    """A finished conversation. `rewards`: token index -> reward; `text` is for a person."""

    stream: Stream
    rewards: dict[int, float]
    score: Score
    text: str
    messages: int
    last_tokens: int  # of the last message

    @property
    def reward(self) -> float:
        return sum(self.rewards.values())


def rollout_of(conversation: Conversation, score: Score, shaping: float) -> Rollout:
    """Return the rollout of a conversation.

    The score is on the last token; the bonus of an improvement is on the last token of its program.
    Raises ValueError if there is no score.
    """
    if score.value is None:
        raise ValueError(
            f"{conversation.problem.problem_id}: a conversation without a score is no sample"
        )
    stream = stream_of(conversation)
    last = len(stream.tokens) - 1
    rewards = {last: score.value}
    if shaping:
        gained = improvements([attempt.finding.share for attempt in conversation.attempts])
        for attempt, share in zip(conversation.attempts, gained, strict=True):
            end = attempt.end - 1
            rewards[end] = rewards.get(end, 0.0) + shaping * share
    begins = len(stream.tokens) - _trailing(stream.mask)
    return Rollout(
        stream,
        rewards,
        score,
        transcript(conversation),
        len(conversation.messages),
        last + 1 - begins,
    )


def _trailing(mask: Sequence[int]) -> int:
    """Return the number of ones at the end."""
    return next((at for at, one in enumerate(reversed(mask)) if not one), len(mask))


def transcript(conversation: Conversation) -> str:
    """Return all messages after the prompt as text."""
    return "\n\n".join(
        f"[{message['role']}]\n{message['content']}"
        for message in conversation.messages[conversation.opening :]
    )
