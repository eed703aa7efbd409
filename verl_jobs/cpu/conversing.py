"""Multi-turn conversations on a CPU: all conversations of a batch take each turn together.

verl_jobs/cpu/batched.py does the same with single completions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ray
import transfer_queue as tq
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from verl_jobs.agents.executor import Executor
from verl_jobs.agents.loop import output_of
from verl_jobs.agents.participants import Cast, asked_of
from verl_jobs.agents.rollout import Rollout
from verl_jobs.agents.stream import PolicyWriter, Template, Written
from verl_jobs.cpu.batched import BatchedAgentLoopWorker, fields_of, tag_of
from verl_jobs.cpu.rollout import server_name

GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1}


class ConversingWorker(BatchedAgentLoopWorker):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.template = Template(self.tokenizer)
        self.cast = Cast(self.job.training.agents)

    async def _answer(
        self, prompts: list[dict[str, Any]], validate: bool, partition: str
    ) -> set[str]:
        """Run, judge and store conversations.

        Return the prompts with a conversation that has no score.
        """
        rollout = self.config.actor_rollout_ref.rollout
        sampling = rollout.val_kwargs if validate else rollout
        temperature = (
            sampling.temperature
            if validate
            else self.job.training.temperature_at(int(prompts[0]["global_steps"]))
        )
        params = {
            "temperature": float(temperature),
            "top_p": float(sampling.top_p),
            "top_k": int(sampling.top_k),
        }
        sessions = [
            prompt
            for prompt in prompts
            for _ in range(int(prompt.pop("__rollout_n__", sampling.n)))
        ]
        played, version = await self._play(sessions, params, int(prompts[0]["global_steps"]))
        rows = list(zip(_numbered(sessions), played, strict=True))
        if (
            self.job.training.method.greedy and not validate
        ):  # session 0 (verl_jobs/trainer/remax.py)
            best, _ = await self._play(prompts, GREEDY, int(prompts[0]["global_steps"]))
            rows = [
                ({**prompt, "session_id": 0}, one)
                for prompt, one in zip(prompts, best, strict=True)
            ] + [({**prompt, "session_id": prompt["session_id"] + 1}, one) for prompt, one in rows]
        failed = {prompt["uid"] for prompt, one in rows if one is None}
        fields = [self._fields(prompt, one, version) for prompt, one in rows if one is not None]
        if fields:
            keys = [f"{field['uid']}_{field['session_id']}_0" for field in fields]
            tags = [tag_of(field, field["global_steps"], version) for field in fields]
            await tq.async_kv_batch_put(
                keys=keys,
                fields=list_of_dict_to_tensordict(fields),
                tags=tags,
                partition_id=partition,
            )
        return failed

    def _fields(self, prompt: dict[str, Any], played: Rollout, version: int) -> dict[str, Any]:
        """Return a conversation's fields, with each part of the reward on the token that earned it.

        verl puts the whole reward on the last token.
        """
        fields = fields_of(prompt, output_of(played, self.job.training, version))
        for at, reward in played.rewards.items():
            if at != len(played.stream.tokens) - 1:
                fields["rm_scores"][at] += reward
                fields["rm_scores"][-1] -= reward
        return fields

    async def _play(
        self, prompts: list[dict[str, Any]], params: dict[str, Any], step: int
    ) -> tuple[list[Rollout | None], int]:
        server, versions, t = ray.get_actor(server_name(0)), [0], self.job.training

        async def ask(ids: list[list[int]], limits: list[int]) -> list[Written]:
            answers, versions[0] = await server.generate_batch.remote(
                ids, [1] * len(ids), params, limits
            )
            return [answer for [answer] in answers]

        policy = PolicyWriter(self.template, ask, t.answer_tokens, t.response_tokens)
        scores, asked = (
            partial(self.scorer.score, step=step),
            [asked_of(prompt) for prompt in prompts],
        )
        return await self.cast.play(asked, policy, Executor(self.scorer), scores), versions[0]


class ConversingManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ConversingWorker)


def _numbered(prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number the prompts' sessions: each row gets its `session_id` among the rows of its prompt."""
    seen: dict[str, int] = {}
    numbered = []
    for prompt in prompts:
        seen[prompt["uid"]] = seen.get(prompt["uid"], -1) + 1
        numbered.append(prompt | {"session_id": seen[prompt["uid"]]})
    return numbered
