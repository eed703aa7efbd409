"""Dry runs of reward managers and agent loops."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from verl import DataProto

from verl_jobs.config.references import PluginError
from verl_jobs.plugins.dry_run import (
    check_signature,
    check_subclass,
    described,
    is_number,
    object_array,
    run_user_code,
)
from verl_jobs.plugins.tiny_training import TinyTraining

MANAGER = (
    "config",
    "tokenizer",
    "compute_score",
    "reward_router_address",
    "reward_model_tokenizer",
)


def reward_manager(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Score a correct, a wrong and an empty completion.

    The correct one must get the highest reward.
    """
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

    check_subclass(cls, reference, RewardManagerBase)
    check_signature(cls, reference, MANAGER)
    results = run_user_code(reference, lambda: asyncio.run(_scores(tiny_training)))
    for result in results:
        if not (
            isinstance(result, Mapping)
            and is_number(result.get("reward_score"))
            and isinstance(result.get("reward_extra_info"), Mapping)
        ):
            raise PluginError(
                f'{reference}: returned {result!r}: return {{"reward_score": number, '
                f'"reward_extra_info": {{"acc": 0 or 1, ...}}}}'
            )
        if "acc" not in result["reward_extra_info"]:
            raise PluginError(
                f'{reference}: reward_extra_info has no "acc": set it to 1.0 for a solved problem, '
                "else 0.0; checkpoints are selected by it"
            )
    if len({tuple(sorted(result["reward_extra_info"])) for result in results}) > 1:
        raise PluginError(
            f"{reference}: reward_extra_info has different keys for different completions: use the "
            "same keys"
        )
    right, wrong, empty = (float(result["reward_score"]) for result in results)
    if right <= max(wrong, empty):
        raise PluginError(
            f"{reference}: rewards a correct completion with {right:g}, a wrong one with "
            f"{wrong:g}, an empty one with {empty:g}: the correct one must get the most"
        )
    return f"rewards: correct completion {right:g}, wrong {wrong:g}, empty {empty:g}"


async def _scores(tiny_training: TinyTraining) -> list[Any]:
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(
        tiny_training.config,
        tiny_training.tokenizer,
        reward_router_address=None,
        reward_model_tokenizer=None,
    )
    problem = tiny_training.problems[0]
    completions = (
        f"```python\n{problem.solutions[0]}\n```",
        f"```python\ndef {problem.entry_point}(*_):\n    return None\n```",
        "",
    )
    return [
        await manager.run_single(_rollout(tiny_training, completion)) for completion in completions
    ]


def _rollout(tiny_training: TinyTraining, completion: str) -> DataProto:
    """Return a completion in the form that verl passes to a reward manager.

    Follows agent_loop.py, `_compute_score`.
    """
    row = tiny_training.dataset[0]
    prompt = tiny_training.tokenizer.apply_chat_template(
        list(row["raw_prompt"]), add_generation_prompt=True, return_dict=False
    )
    response = [
        *tiny_training.tokenizer.encode(completion, add_special_tokens=False),
        tiny_training.tokenizer.eos_token_id,
    ]
    prompts, responses = torch.tensor([prompt]), torch.tensor([response])
    ids = torch.cat([prompts, responses], dim=1)
    tensors = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
    }
    tensors["position_ids"] = torch.arange(ids.shape[1]).unsqueeze(0)
    fields = {key: value for key, value in row.items() if key != "dummy_tensor"}
    fields |= {
        "uid": "trial",
        "global_steps": 1,
        "__num_turns__": 2,
        "tool_extra_fields": {},
        "prompt_len": len(prompt),
        "response_len": len(response),
    }
    return DataProto(
        batch=TensorDict(tensors, batch_size=1),
        non_tensor_batch={key: object_array(value) for key, value in fields.items()},
    )


def agent_loop(cls: Any, reference: str, tiny_training: TinyTraining) -> str:
    """Run one rollout with an untrained model, decoded in this process by the CPU engine."""
    from verl.experimental.agent_loop import AgentLoopBase

    check_subclass(cls, reference, AgentLoopBase)
    engine = RecordingClient(tiny_training)
    outputs = run_user_code(reference, lambda: asyncio.run(_run_loop(cls, tiny_training, engine)))
    for output in outputs if isinstance(outputs, list) else [outputs]:
        _check_output(output, reference, tiny_training, engine)
    turns = f"{engine.calls} turn{'s' * (engine.calls != 1)}"
    return f"generated {len(engine.written)} tokens in {turns}"


class RecordingClient:
    """verl's engine client, served by our engine in this process.

    Records the tokens that the policy generated.
    """

    def __init__(self, tiny_training: TinyTraining) -> None:
        from verl_jobs.cpu.rollout import HFServer

        rollout = tiny_training.config.actor_rollout_ref.rollout
        keys = ("prompt_length", "response_length", "max_num_seqs", "seed")
        self.server = HFServer(
            str(tiny_training.model), {key: rollout[key] for key in keys}, threads=1
        )
        self.written: list[int] = []
        self.calls = 0

    async def generate(
        self, request_id: str, *, prompt_ids: Any, sampling_params: dict[str, Any], **more: Any
    ) -> Any:
        output = await self.server.generate(prompt_ids, sampling_params, request_id, **more)
        self.written += output.token_ids
        self.calls += 1
        return output


async def _run_loop(cls: Any, tiny_training: TinyTraining, engine: RecordingClient) -> Any:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
    from verl.utils.dataset.rl_dataset import get_dataset_class

    loop = cls(
        name="own",
        trainer_config=DictConfigWrap(tiny_training.config),
        server_manager=engine,
        tokenizer=tiny_training.tokenizer,
        processor=None,
        hf_model_type="qwen2",
        dataset_cls=get_dataset_class(tiny_training.config.data),
        data_config=DictConfigWrap(tiny_training.config.data),
        tools=ToolListWrap([]),
    )
    row = {key: value for key, value in tiny_training.dataset[0].items() if key != "dummy_tensor"}
    sampling = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "logprobs": True,
    }
    return await loop.run(sampling, **row, uid="trial", global_steps=1, session_id=0)


def _check_output(
    output: Any, reference: str, tiny_training: TinyTraining, engine: RecordingClient
) -> None:
    from verl.experimental.agent_loop import AgentLoopOutput

    if not isinstance(output, AgentLoopOutput):
        raise PluginError(
            f"{reference}: run() returned {described(output)}: return verl's AgentLoopOutput, or a "
            "list of them"
        )
    tokens, mask, limit = (
        output.response_ids,
        output.response_mask,
        tiny_training.training.answer_tokens,
    )
    if len(tokens) != len(mask) or not 0 < len(tokens) <= limit:
        raise PluginError(
            f"{reference}: {len(tokens)} response_ids, {len(mask)} in response_mask: return "
            f"equal numbers, from 1 to rollout.response_length ({limit})"
        )
    if len(output.prompt_ids) > tiny_training.training.prompt_tokens:
        raise PluginError(
            f"{reference}: {len(output.prompt_ids)} prompt_ids, more than rollout.prompt_length "
            f"({tiny_training.training.prompt_tokens}): shorten the prompt"
        )
    own_tokens = [token for token, inside in zip(tokens, mask, strict=True) if inside]
    written = iter(engine.written)
    if not own_tokens or not all(token in written for token in own_tokens):
        raise PluginError(
            f"{reference}: response_mask must be 1 on the tokens that the model generated, and 0 "
            "on all others"
        )
    if output.response_logprobs is None or len(output.response_logprobs) != len(tokens):
        raise PluginError(
            f"{reference}: response_logprobs needs one value for each of response_ids, 0.0 for "
            "tokens that the model did not generate"
        )
    if output.reward_score is not None:
        raise PluginError(
            f"{reference}: sets reward_score, which would bypass the verified reward: remove it"
        )
