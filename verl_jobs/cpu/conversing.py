"""Multi-turn conversations on a CPU: all conversations of a batch take each turn together.

verl_jobs/cpu/batched.py does the same with single completions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ray
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ

from verl_jobs.agents.executor import Executor
from verl_jobs.agents.loop import output_of
from verl_jobs.agents.participants import Participants, request_of
from verl_jobs.agents.rollout import Rollout
from verl_jobs.agents.stream import PolicyWriter, Template
from verl_jobs.cpu.batched import GREEDY, BatchedAgentLoopWorker, fields_of, store
from verl_jobs.cpu.rollout import server_name
from verl_jobs.samples import SampledTokens
from verl_jobs.trainer import progress


class ConversingWorker(BatchedAgentLoopWorker):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.template = Template(self.tokenizer, self.job.training.agents.tool_calls > 0)
        self.participants = Participants(self.job.training.agents)

    async def _generate_batch(
        self, prompts: list[dict[str, Any]], validate: bool, partition: str
    ) -> set[str]:
        """Run, judge and store conversations.

        Return the prompts with a conversation that has no score.
        """
        step = int(prompts[0]["global_steps"])
        sampling, params = self._sampling(step, validate)
        sessions = [
            prompt
            for prompt in prompts
            for _ in range(int(prompt.pop("__rollout_n__", sampling.n)))
        ]
        rollouts = await self._play(sessions, params, step)
        rows = list(zip(_numbered(sessions), rollouts, strict=True))
        if self.job.training.method.greedy and not validate:
            # session 0 (verl_jobs/trainer/remax.py)
            greedy_rollouts = await self._play(prompts, params | GREEDY, step)
            rows = [
                ({**prompt, "session_id": 0}, rollout)
                for prompt, rollout in zip(prompts, greedy_rollouts, strict=True)
            ] + [
                ({**prompt, "session_id": prompt["session_id"] + 1}, rollout)
                for prompt, rollout in rows
            ]
        fields = [
            self._fields(prompt, rollout, params["max_tokens"])
            for prompt, rollout in rows
            if rollout is not None
        ]
        await store(fields, partition)
        return {prompt["uid"] for prompt, rollout in rows if rollout is None}

    def _fields(self, prompt: dict[str, Any], rollout: Rollout, limit: int) -> dict[str, Any]:
        """Return a conversation's fields, with each part of the reward on the token that earned it.

        verl puts the whole reward on the last token. limit: maximum tokens of one message.
        """
        fields = fields_of(prompt, output_of(rollout, self.job.training, limit))
        for position, reward in rollout.rewards.items():
            if position != len(rollout.stream.tokens) - 1:
                fields["rm_scores"][position] += reward
                fields["rm_scores"][-1] -= reward
        return fields

    async def _play(
        self, prompts: list[dict[str, Any]], params: dict[str, Any], step: int
    ) -> list[Rollout | None]:
        server, training = ray.get_actor(server_name(0)), self.job.training

        async def generate(ids: list[list[int]], limits: list[int]) -> list[SampledTokens]:
            completions = await server.generate_batch.remote(ids, [1] * len(ids), params, limits)
            progress.touch(self.job.path)
            return [completion for [completion] in completions]

        policy = PolicyWriter(
            self.template,
            generate,
            params["max_tokens"],
            training.response_tokens,
            training.prompt_tokens + training.response_tokens,
        )
        scores, requests = (
            partial(self.scorer.score, step=step),
            [request_of(prompt) for prompt in prompts],
        )
        return await self.participants.play(requests, policy, Executor(self.scorer), scores)


class ConversingManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ConversingWorker)


def _numbered(prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number the prompts' sessions: each row gets its `session_id` among the rows of its prompt."""
    sessions: dict[str, int] = {}
    numbered = []
    for prompt in prompts:
        sessions[prompt["uid"]] = sessions.get(prompt["uid"], -1) + 1
        numbered.append(prompt | {"session_id": sessions[prompt["uid"]]})
    return numbered
