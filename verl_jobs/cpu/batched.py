"""verl's agent loop for single-turn tasks on CPU: handles a whole batch at once.

It tokenizes, decodes, judges and stores all rollouts of a batch together.

verl runs one task per rollout, which costs about 10 ms each in addition to the decoding: more than
half of a step at this size. The interface is verl's (verl/trainer/main_ppo.py: an agent-loop
manager has `generate_sequences` and puts its outputs into TransferQueue). Keys, fields and tags
follow the per-rollout code of verl/trainer/ppo/v1/agent_loop_tq.py. A rollout without a score is
left out, and its group gets the status "failure".
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import ray
import torch
import transfer_queue as tq
from tensordict import NonTensorData, NonTensorStack
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopMetrics,
    AgentLoopOutput,
    AgentLoopWorker,
)
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from rewards.scorer import NoScore
from verl_jobs import faults
from verl_jobs.cpu.rollout import server_name
from verl_jobs.samples import SampledTokens, weight_fields
from verl_jobs.trainer import progress
from verl_jobs.trainer.reward_manager import as_verl, job_of, overlong, scorer_of

logger = logging.getLogger(__name__)
GREEDY = {"temperature": 0.0, "top_p": 1.0}


class BatchedAgentLoopWorker(AgentLoopWorker):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tq.init()
        self.job = job_of(self.config)
        self.scorer = scorer_of(self.job)
        self.tasks: set[asyncio.Task[None]] = set()

    async def generate_sequences(self, batch: Any) -> None:
        """Start a batch and return immediately, as verl expects.

        The outputs arrive in TransferQueue.
        """
        validate = bool(batch["validate"]) if "validate" in batch else False
        batch.pop("validate", None)
        prompts = [{key: _row(value, i) for key, value in batch.items()} for i in range(len(batch))]
        task = asyncio.create_task(self._run(prompts, validate))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, prompts: list[dict[str, Any]], validate: bool) -> None:
        partition = "val" if validate else "train"
        uids = [prompt["uid"] for prompt in prompts]
        try:
            await tq.async_kv_batch_put(
                keys=uids, partition_id=partition, tags=[{"status": "running"}] * len(uids)
            )
            failed = await self._generate_batch(prompts, validate, partition)
        except (
            Exception
        ) as error:  # verl waits for a status of every prompt; without it a step never ends
            logger.exception("a batch of %d prompts failed", len(prompts))
            faults.record(
                self.job.path,
                f"no completion for {len(prompts)} prompts: {type(error).__name__}: {error}",
            )
            failed = set(uids)
        tags = [{"status": "failure" if uid in failed else "finished"} for uid in uids]
        await tq.async_kv_batch_put(keys=uids, partition_id=partition, tags=tags)

    async def _generate_batch(
        self, prompts: list[dict[str, Any]], validate: bool, partition: str
    ) -> set[str]:
        """Decode, judge and store; return the prompts with a completion that has no score."""
        step = int(prompts[0]["global_steps"])
        sampling, params = self._sampling(step, validate)
        ids = [
            self.tokenizer.apply_chat_template(
                list(p["raw_prompt"]), add_generation_prompt=True, return_dict=False
            )
            for p in prompts
        ]
        counts = [int(p.pop("__rollout_n__", sampling.n)) for p in prompts]
        greedy = self.job.training.method.greedy and not validate
        groups = await _complete(ids, counts, params, greedy)
        progress.touch(self.job.path)
        rows = [
            (prompt | {"session_id": session}, prompt_ids, completion)
            for prompt, prompt_ids, group in zip(prompts, ids, groups, strict=True)
            for session, completion in enumerate(group)
        ]
        texts = [
            self.tokenizer.decode(tokens, skip_special_tokens=True) for *_, (tokens, *_) in rows
        ]
        pairs = [
            (prompt["reward_model"]["ground_truth"], text)
            for (prompt, *_), text in zip(rows, texts, strict=True)
        ]
        scores = await asyncio.to_thread(self.scorer.score, pairs, step)
        progress.touch(self.job.path)
        fields, failed = [], set()
        for (prompt, prompt_ids, completion), text, score in zip(rows, texts, scores, strict=True):
            try:
                penalty = overlong(self.job.training, len(completion[0]), params["max_tokens"])
                reward = as_verl(score, text, penalty)
            except NoScore as error:
                logger.error("%s, completion %d: %s", prompt["uid"], prompt["session_id"], error)
                failed.add(prompt["uid"])
                continue
            fields.append(fields_of(prompt, _output(prompt_ids, completion, reward)))
        await store(fields, partition)
        return failed

    def _sampling(self, step: int, validate: bool) -> tuple[Any, dict[str, Any]]:
        """Return verl's section of sampling for this step, and the parameters of decoding."""
        rollout = self.config.actor_rollout_ref.rollout
        sampling, training = rollout.val_kwargs if validate else rollout, self.job.training
        temperature = sampling.temperature if validate else training.temperature_at(step)
        return sampling, {
            "max_tokens": training.answer_tokens if validate else training.answer_tokens_at(step),
            "temperature": float(temperature),
            "top_p": float(sampling.top_p),
        }


class BatchedAgentLoopManager(AgentLoopManagerTQ):  # type: ignore[misc]  # verl has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(BatchedAgentLoopWorker)


def _row(value: Any, index: int) -> Any:
    if isinstance(value, torch.Tensor):
        return value[index]
    if isinstance(value, NonTensorStack):
        return value[index].data
    return value.data if isinstance(value, NonTensorData) else value[index]


async def _complete(
    ids: list[list[int]], counts: list[int], params: dict[str, Any], greedy: bool
) -> list[list[SampledTokens]]:
    """Return each prompt's completions.

    greedy: add a greedy completion as session 0 (verl_jobs/trainer/remax.py).
    """
    server = ray.get_actor(server_name(0))
    prompts = [list(map(int, prompt)) for prompt in ids]
    groups: list[list[SampledTokens]]
    groups = await server.generate_batch.remote(prompts, counts, params)
    if greedy:
        best = await server.generate_batch.remote(prompts, [1] * len(prompts), params | GREEDY)
        groups = [first + group for first, group in zip(best, groups, strict=True)]
    return groups


async def store(fields: list[dict[str, Any]], partition: str) -> None:
    """Put rollouts into TransferQueue, as verl's trainer reads them."""
    if fields:
        await tq.async_kv_batch_put(
            keys=[f"{field['uid']}_{field['session_id']}_0" for field in fields],
            fields=list_of_dict_to_tensordict(fields),
            tags=list(map(_tag, fields)),
            partition_id=partition,
        )


def _output(ids: list[int], completion: SampledTokens, reward: dict[str, Any]) -> AgentLoopOutput:
    tokens, log_probs, reason, weights = completion
    return AgentLoopOutput(
        prompt_ids=list(ids),
        response_ids=tokens,
        response_mask=[1] * len(tokens),
        response_logprobs=log_probs,
        reward_score=reward["score"],
        num_turns=2,
        metrics=AgentLoopMetrics(),
        extra_fields={
            "reward_extra_info": reward,
            **weight_fields([weights]),
            "stop_reason": reason,
            "turn_scores": [],
            "tool_rewards": [],
        },
    )


def fields_of(prompt: dict[str, Any], output: AgentLoopOutput) -> dict[str, Any]:
    """Return one rollout in the form that verl's trainer reads.

    Follows agent_loop_tq.py, `_agent_loop_postprocess`.
    """
    field: dict[str, Any] = output.as_dict() | prompt
    field["loss_mask"] = field["response_mask"]
    field["input_ids"] = torch.cat([field["prompts"], field["responses"]])
    field["position_ids"] = torch.arange(len(field["input_ids"]))
    field["multi_modal_inputs"] = {}
    return field


def _tag(field: dict[str, Any]) -> dict[str, Any]:
    prompt_tokens, response_tokens = field["prompts"].size(0), field["responses"].size(0)
    return {
        "status": "success",
        "prompt_len": prompt_tokens,
        "response_len": response_tokens,
        "seq_len": prompt_tokens + response_tokens,
        "global_steps": field["global_steps"],
        "min_global_steps": field["extra_fields"]["min_global_steps"],
        "max_global_steps": field["extra_fields"]["max_global_steps"],
    }
