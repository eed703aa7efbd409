"""verl agent loop that runs one conversation at a time.

For engines that batch requests themselves (vLLM). It uses the same parts as the batched loop on a
CPU (verl_jobs/cpu/conversing.py). It has not been run with an engine on a GPU.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache, partial
from threading import Lock
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from rewards.scorer import NoScore, Scorer
from verl_jobs.agents.executor import Executor
from verl_jobs.agents.participants import Participants, request_of
from verl_jobs.agents.rollout import BONUS, Rollout
from verl_jobs.agents.stream import Ask, PolicyWriter, Template
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.samples import BY_LENGTH, WEIGHTS, EngineWeights, SampledTokens, weight_fields
from verl_jobs.trainer.reward_manager import as_verl, job_of, overlong, scorer_of


def output_of(rollout: Rollout, training: Training, limit: int) -> AgentLoopOutput:
    """Return the output that verl trains on.

    The mask is 1 only on the policy's own tokens; verl puts the whole reward on the last one.
    limit: maximum tokens of one message.
    """
    stream = rollout.stream
    reward = reward_of(rollout, training, limit)
    return AgentLoopOutput(
        prompt_ids=stream.prompt,
        response_ids=stream.tokens,
        response_mask=stream.mask,
        response_logprobs=stream.log_probs,
        reward_score=reward["score"],
        num_turns=rollout.messages,
        metrics=AgentLoopMetrics(),
        extra_fields={
            "reward_extra_info": reward,
            **weight_fields(stream.weights),
            "stop_reason": stream.reason,
            "turn_scores": [],
            "tool_rewards": [],
        },
    )


def reward_of(rollout: Rollout, training: Training, limit: int) -> dict[str, Any]:
    """Return the reward fields, as for a single completion (verl_jobs/trainer/reward_manager.py).

    `score` includes the conversation's bonus; `trace` lists the bonus as `BONUS`.
    """
    score, bonus = rollout.score, rollout.reward - (rollout.score.value or 0.0)
    penalty = overlong(training, rollout.last_tokens, limit)
    fields = as_verl(score, rollout.text, bonus + penalty)
    return fields | {
        "trace": json.dumps(score.gave | {BONUS: bonus}),
        "messages": float(rollout.messages),
    }


def ask_of(server: Any, sampling_params: dict[str, Any]) -> Ask:
    """Return the sampling of one conversation by verl's engine client."""
    request_id = uuid4().hex  # one, so that the engine reuses the conversation's cache

    async def generate(prompts: list[list[int]], limits: list[int]) -> list[SampledTokens]:
        [ids], [limit] = prompts, limits
        params = sampling_params | {"max_tokens": limit}
        output = await server.generate(
            request_id=request_id, prompt_ids=ids, sampling_params=params
        )
        fields = output.extra_fields
        weights = EngineWeights(fields.get("global_steps") or 0, fields.get(WEIGHTS, ""))
        # verl's servers report "completed" here too
        reason = BY_LENGTH if len(output.token_ids) >= limit else output.stop_reason or ""
        log_probs = list(output.log_probs or [0.0] * len(output.token_ids))
        return [SampledTokens(list(output.token_ids), log_probs, reason, weights)]

    return generate


class ConversationLoop(AgentLoopBase):  # type: ignore[misc]  # verl has no types
    """Agent loop named in loops.yaml.

    Raises NoScore for a conversation without a score; verl drops it.
    """

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        job = job_of(self.config)
        participants, scorer = await asyncio.to_thread(_participants, job.model_dump_json())
        message_tokens = sampling_params.get("max_tokens", job.training.answer_tokens)
        policy = PolicyWriter(
            Template(self.tokenizer, job.training.agents.tool_calls > 0),
            ask_of(self.server_manager, sampling_params),
            message_tokens,
            job.training.response_tokens,
            job.training.prompt_tokens + job.training.response_tokens,
        )
        scores = partial(scorer.score, step=int(kwargs["global_steps"]))
        [rollout] = await participants.play([request_of(kwargs)], policy, Executor(scorer), scores)
        if rollout is None:
            raise NoScore("no verdict on this conversation: left out of the step")
        return output_of(rollout, job.training, message_tokens)


_ONE = Lock()


def _participants(job: str) -> tuple[Participants, Scorer]:
    """Return the participants and scorer, one of each per process.

    Rollouts call this from many threads.
    """
    with _ONE:
        return _create(job)


@cache
def _create(job: str) -> tuple[Participants, Scorer]:
    training_job = TrainingJob.model_validate_json(job)
    return Participants(training_job.training.agents), scorer_of(training_job)
