"""The participants of conversations besides the policy, and their rollouts with any engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from problems.schema import Problem
from problems.synthesis.endpoint import Endpoint
from rewards.question import task_from_ground_truth
from verl_jobs.agents.conversation import LOST, begin
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.play import (
    NoReviewer,
    Reviews,
    SelfReview,
    SeparateReviewer,
    Writer,
    converse,
)
from verl_jobs.agents.review import reviewer_rollouts
from verl_jobs.agents.rollout import Rollout, RolloutRequest, Scores, rollout_of
from verl_jobs.agents.stream import PolicyWriter
from verl_jobs.agents.tool import PythonTool
from verl_jobs.agents.writers import EndpointWriter, FrozenWriter
from verl_jobs.config.agents import Agents


class Participants:
    """The participants; one object per process."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self._open = ExitStack()

    @cached_property
    def other(self) -> Writer:
        """The model that is not trained, loaded or connected at its first use."""
        model_or_url = self.agents.generator or self.agents.reviewer
        if model_or_url.startswith(("http://", "https://")):
            address, _, model = model_or_url.partition("#")
            return EndpointWriter(
                self._open.enter_context(Endpoint(address)),
                model or "champion",
                self.agents.other_tokens,
                lenient=True,
            )
        return FrozenWriter(Path(model_or_url), self.agents.other_tokens)

    async def play(
        self,
        requests: Sequence[RolloutRequest],
        policy: PolicyWriter,
        executor: Executor,
        scores: Scores,
    ) -> list[Rollout | None]:
        """Return the rollouts in the order of `requests`.

        None if the judge or an endpoint failed, or if no tokens were left for a message.
        """
        if self.agents.trains == "reviewer":
            return await reviewer_rollouts(requests, policy, self.other, executor, scores)
        tool, agents = None, self.agents
        if agents.tool_calls:
            tool = PythonTool(executor.sandbox, agents.tool_calls, agents.tool_output)
        note = tool.request(bool(policy.template.tools)) if tool else ""
        conversations = [begin(request.problem, request.messages, note) for request in requests]
        reviewer = self._reviewer(policy)
        await converse(conversations, policy, executor, reviewer, agents.turns, tool=tool)
        scored_at = [
            at
            for at, conversation in enumerate(conversations)
            if conversation.attempts and conversation.ended != LOST
        ]
        program_scores = await asyncio.to_thread(
            scores,
            [(requests[at].truth, conversations[at].attempts[-1].completion) for at in scored_at],
        )
        scored = {
            at: score
            for at, score in zip(scored_at, program_scores, strict=True)
            if score.value is not None
        }
        return [
            rollout_of(request, scored[at], self.agents.shaping) if at in scored else None
            for at, request in enumerate(conversations)
        ]

    def _reviewer(self, policy: Writer) -> Reviews:
        match self.agents.reviewer:
            case "none":
                return NoReviewer()
            case "self":
                return SelfReview(policy)
            case _:
                return SeparateReviewer(self.other)

    def close(self) -> None:
        self._open.close()


def request_of(prompt: Mapping[str, Any]) -> RolloutRequest:
    """Convert a row of verl's batch. Raises ValueError for a question: it has no program to run."""
    truth = prompt["reward_model"]["ground_truth"]
    task = task_from_ground_truth(truth)
    if not isinstance(task, Problem):
        raise ValueError(
            f"{task.problem_id} is a question, and conversations are about programs: set "
            "training.agents.turns to 1 and training.agents.tool_calls to 0"
        )
    return RolloutRequest([dict(message) for message in prompt["raw_prompt"]], truth, task)
