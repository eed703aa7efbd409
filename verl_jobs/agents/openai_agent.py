"""An agent loop around an agent that speaks OpenAI's API, which is trained unchanged.

The rollout worker serves the agent an address of its own for each rollout (chat_endpoint.py).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from verl_jobs.agents.chat_endpoint import ChatSession, serve
from verl_jobs.agents.conversation import Message, begin
from verl_jobs.agents.loop import ask_of
from verl_jobs.agents.participants import request_of
from verl_jobs.agents.stream import PolicyWriter, Template, stream_of
from verl_jobs.samples import weight_fields


class OpenAIAgent(AgentLoopBase):  # type: ignore[misc]  # verl has no types
    """Base of an agent loop: implement `act`, and name the class as `training.plugins.agent_loop`.

    The reward is that of the last program in the conversation.
    """

    @abstractmethod
    def act(self, base_url: str, messages: list[Message]) -> None:
        """Run the agent on a problem's messages with a client of this address; in a thread."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        messages = [dict(message) for message in kwargs["raw_prompt"]]
        rollout = self.rollout_config
        writer = PolicyWriter(
            Template(self.tokenizer),
            ask_of(self.server_manager, sampling_params),
            rollout.response_length,
            rollout.response_length,
            rollout.prompt_length + rollout.response_length,
        )
        conversation = begin(request_of(kwargs).problem, [])
        async with serve(ChatSession(conversation, writer)) as base_url:
            await asyncio.to_thread(self.act, base_url, messages)
        stream = stream_of(conversation)
        return AgentLoopOutput(
            prompt_ids=stream.prompt,
            response_ids=stream.tokens,
            response_mask=stream.mask,
            response_logprobs=stream.log_probs,
            num_turns=len(conversation.messages),
            metrics=AgentLoopMetrics(),
            extra_fields={
                **weight_fields(stream.weights),
                "stop_reason": stream.reason,
                "turn_scores": [],
                "tool_rewards": [],
            },
        )
